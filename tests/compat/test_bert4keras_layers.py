"""bert4keras' layers against what bert4keras itself gave (../shared/golden/bert4keras)."""

import json

import keras
import numpy as np
import pytest

from kerasattn.compat.bert4keras import ViterbiDecoder, layers
from kerasattn.testing import check_layer

CASES = [
    "crf",
    "crf_lr_multiplier",
    "efficient_global_pointer",
    "gau",
    "gau_cross",
    "gau_rotary_causal",
    "gau_softmax_plus",
    "global_pointer",
    "global_pointer_plain",
    "memm",
    "memm_low_rank",
    "position_hierarchical",
    "relative_position",
    "sinusoidal_add",
    "sinusoidal_concat",
    "sinusoidal_custom",
    "sinusoidal_mul",
    "sinusoidal_zero",
    "t5_relative_bidirectional",
    "t5_relative_causal",
]
RANDOM = np.random.default_rng(0)
ON_JAX = keras.backend.backend() == "jax"


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def same(got, expected, name, tolerance=1e-4):
    got = array(got)
    assert got.shape == expected.shape, name
    np.testing.assert_array_equal(np.isneginf(got), np.isneginf(expected), err_msg=name)
    finite = np.isfinite(expected)
    np.testing.assert_allclose(got[finite], expected[finite], rtol=0, atol=tolerance, err_msg=name)


def load(golden, name):
    """The layer with the stored weights, its inputs, and what its call takes."""
    folder = golden(f"bert4keras/layers/{name}")
    case = json.loads((folder / "case.json").read_text())
    data = dict(np.load(folder / "golden.npz"))
    layer = getattr(layers, case["layer"])(**case["constructor"])
    inputs, options = [data[key] for key in case["input_keys"]], {}
    if case["call"].get("a_bias"):
        inputs.append(data["a_bias"])
        options["a_bias"] = True
    if case["call"].get("p_bias"):
        width = case["constructor"]["key_size"]
        places = layers.SinusoidalPositionEmbedding(width, merge_mode="zero")
        inputs.append(places(inputs[0]))
        options["p_bias"] = case["call"]["p_bias"]
    if "mask" in data:
        options["mask"] = [data["mask"]] + [None] * (len(inputs) - 1)
    if len(inputs) == 1:
        inputs, options = inputs[0], {k: v[0] if k == "mask" else v for k, v in options.items()}
    layer(inputs, **options)
    weights = {k.removeprefix("w/"): v for k, v in data.items() if k.startswith("w/")}
    paths = [weight.path.split("/", 1)[1] for weight in layer.weights]
    paths = [path for path in paths if "seed" not in path]
    assert sorted(paths) == sorted(weights)
    for weight in layer.weights:
        path = weight.path.split("/", 1)[1]
        if path in weights:
            weight.assign(weights[path])
    return layer, inputs, options, data


@pytest.mark.parametrize("name", CASES)
def test_published_results(golden, name):
    layer, inputs, options, data = load(golden, name)
    output = layer(inputs, **options)
    same(output, data["out_0"], name)
    if "sparse_loss" in data:
        tags = data["y_true"]
        one_hot = np.eye(output.shape[-1], dtype="float32")[tags]
        same(layer.sparse_loss(tags, output), data["sparse_loss"], "sparse_loss")
        same(layer.dense_loss(one_hot, output), data["dense_loss"], "dense_loss")
        same(layer.sparse_accuracy(tags, output), data["sparse_accuracy"], "sparse_accuracy")
        same(layer.dense_accuracy(one_hot, output), data["dense_accuracy"], "dense_accuracy")
    if "trans_in_use" in data:
        same(layer.trans, data["trans_in_use"], "trans")
    if "bucket_ids" in data:
        np.testing.assert_array_equal(layer.compute_position_ids(inputs), data["bucket_ids"])


@pytest.mark.parametrize("name", ["crf", "crf_lr_multiplier"])
def test_published_paths(golden, name):
    layer, scores, _, data = load(golden, name)
    case = json.loads((golden(f"bert4keras/layers/{name}") / "case.json").read_text())
    limits = {k: case["extra"][k] for k in ("starts", "ends")}
    free, limited = ViterbiDecoder(array(layer.trans)), ViterbiDecoder(array(layer.trans), **limits)
    for i, length in enumerate(case["lengths"]):
        nodes = scores[i, :length].copy()
        np.testing.assert_array_equal(free.decode(nodes), data[f"viterbi_{i}"])
        np.testing.assert_array_equal(limited.decode(nodes), data[f"viterbi_limited_{i}"])
        np.testing.assert_array_equal(nodes, scores[i, :length])  # bert4keras writes into it
    with pytest.raises(ValueError, match="decode takes scores"):
        free.decode(scores)
    assert free.decode(np.zeros((0, layer.trans.shape[0]))).tolist() == []


# === Training, saving ===


def tagger(layer):
    token_ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(20, 8, mask_zero=True)(token_ids)
    return keras.Model(token_ids, layer(keras.layers.Dense(3)(x)))


@pytest.mark.parametrize(
    "kind, jit", [("ConditionalRandomField", True), ("MaximumEntropyMarkovModel", False)]
)
def test_chains_learn_in_fit(kind, jit, tmp_path):
    layer = getattr(layers, kind)(lr_multiplier=10)
    model = tagger(layer)
    token_ids = RANDOM.integers(1, 20, size=(64, 7))
    tags = token_ids % 3
    token_ids[:, 5:] *= RANDOM.integers(0, 2, size=(64, 1))  # some end before
    model.compile(
        keras.optimizers.Adam(0.05),
        loss=layer.sparse_loss,
        # On JAX a metric cannot read weights, and of this layer it does.
        metrics=[] if "Markov" in kind and ON_JAX else [layer.sparse_accuracy],
        jit_compile=jit,
    )
    before = array(layer.trans)
    losses = model.fit(token_ids, tags, epochs=8, verbose=0).history["loss"]
    assert np.isfinite(losses).all() and losses[-1] < 0.9 * losses[0]
    assert np.abs(array(layer.trans) - before).max() > 0.1
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    same(loaded(token_ids), array(model(token_ids)), "loaded")
    loss = array(loaded.loss(tags, loaded(token_ids)))
    same(loss, array(layer.sparse_loss(tags, model(token_ids))), "loss")
    loaded.layers[-1].set_weights([np.diag([0.0, 90.0, 30.0])])  # its loss reads its own weights
    assert np.abs(array(loaded.loss(tags, loaded(token_ids))) - loss).max() > 0.01


def x(batch, length):
    return RANDOM.normal(size=(batch, length, 6)).astype("float32")


NO_ERRORS = {"errors": "arguments are checked by the layer of kerasattn.layers"}


LIKE_THE_OTHER = "its few operations are those of the other of its kind"


@pytest.mark.parametrize(
    "kind, config",
    [
        ("GatedAttentionUnit", {"units": 10, "key_size": 4, "attention_scale": False}),
        ("GlobalPointer", {"heads": 2, "head_size": 4, "tril_mask": False}),
        ("EfficientGlobalPointer", {"heads": 2, "head_size": 4, "tril_mask": False}),
        ("PositionEmbedding", {"input_dim": 9, "output_dim": 6, "merge_mode": "mul"}),
        ("SinusoidalPositionEmbedding", {"output_dim": 5, "merge_mode": "concat"}),
    ],
)
def test_layer(kind, config):
    skip = NO_ERRORS
    if "Embedding" not in kind:
        skip = {**skip, "padding": "Keras' mask hides it, see the published results"}
        skip["causal"] = "they see all"
    if kind in ("EfficientGlobalPointer", "PositionEmbedding"):
        skip = {**skip, **dict.fromkeys(("precision", "jit", "saved_model"), LIKE_THE_OTHER)}
    check_layer(getattr(layers, kind), config, x, skip=skip)


def test_pointers_are_trained_over_minus_infinity():
    from kerasattn.compat.bert4keras import multilabel_categorical_crossentropy

    token_ids = keras.Input((None,), dtype="int32")
    h = keras.layers.Embedding(20, 8, mask_zero=True)(token_ids)
    model = keras.Model(token_ids, layers.GlobalPointer(2, 4)(h))

    def loss(y_true, y_pred):
        flat = lambda x: keras.ops.reshape(x, (-1, 25))
        return multilabel_categorical_crossentropy(flat(y_true), flat(y_pred))

    ids = RANDOM.integers(1, 20, size=(8, 5))
    ids[:, 3:] = 0
    spans = np.zeros((8, 2, 5, 5))
    spans[:, 0, 0, 1] = 1
    model.compile(keras.optimizers.Adam(0.05), loss=loss, jit_compile=False)
    losses = model.fit(ids, spans, epochs=20, verbose=0).history["loss"]
    assert np.isfinite(losses).all() and losses[-1] < 0.5 * losses[0]


def test_gated_attention_says_what_it_takes():
    layer = layers.GatedAttentionUnit(8, 4)
    with pytest.raises(ValueError, match="takes 2 inputs, got 1"):
        layer(x(1, 3), a_bias=True)


def test_a_loss_of_whatever_goes_through(tmp_path):
    token_ids, tags = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    h = keras.layers.Dense(3)(keras.layers.Embedding(20, 8, mask_zero=True)(token_ids))
    outputs = TagLoss(output_axis=1)([tags, h])
    model = keras.Model([token_ids, tags], outputs)
    model.compile(keras.optimizers.Adam(0.05), jit_compile=False)
    ids = RANDOM.integers(1, 20, size=(32, 5))
    losses = model.fit([ids, ids % 3], epochs=10, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]
    assert model.predict([ids, ids], verbose=0).shape == (32, 5, 3)


def test_a_loss_gets_numbers_and_a_list_of_masks():
    class CrossEntropy(layers.Loss):
        """As in scripts: ids of segments are weights."""

        def compute_loss(self, inputs, mask=None):
            tags, weights, scores = inputs
            assert mask == [None] * 3
            loss = keras.ops.sparse_categorical_crossentropy(tags, scores)
            return keras.ops.sum(loss * weights) / keras.ops.sum(weights)

    tags, weights = np.array([[2, 1, 0]]), np.array([[0, 1, 1]])
    scores = np.array([[[0.5, 0.25, 0.25]] * 3])
    layer = CrossEntropy([0, 2])
    kept = layer([tags, weights, scores])
    np.testing.assert_array_equal(kept[0], tags)
    np.testing.assert_allclose(array(layer.losses[0]), (np.log(4) + np.log(2)) / 2, rtol=1e-5)


def test_sequences_with_masks():
    ids = np.array([[1, 2, 0, 0], [3, 1, 2, 0]])
    x = keras.layers.Embedding(4, 3, mask_zero=True)
    pooled = layers.GlobalMaxPooling1D()
    found = pooled(x(ids))
    expected = [array(x(ids))[i, :n].max(0) for i, n in enumerate((2, 3))]
    np.testing.assert_array_equal(array(found), expected)
    both = layers.Concatenate1D()([x(ids), np.zeros((2, 2, 3), "float32")])
    # What has no mask counts, what is padding does not.
    np.testing.assert_array_equal(array(pooled(both)), np.maximum(expected, 0))


def test_keras_layers_stand_beside_them():
    assert layers.Dense is keras.layers.Dense
    assert layers.Embedding is not keras.layers.Embedding
    names = {}
    exec("from kerasattn.compat.bert4keras.models import *", names)
    assert names["Dropout"] is keras.layers.Dropout and names["Embedding"] is layers.Embedding
    assert names["BERT"].__name__ == "BERT" and "__all__" not in names


class TagLoss(layers.Loss):
    """Cross-entropy of the real steps."""

    def compute_loss(self, inputs, mask=None):
        y_true, y_pred = inputs
        loss = keras.ops.sparse_categorical_crossentropy(y_true, y_pred, from_logits=True)
        real = keras.ops.cast(mask[1], "float32")
        return keras.ops.sum(loss * real) / keras.ops.sum(real)
