"""build_transformer_model: what bert4keras cannot build, switches, classes, weights, errors."""

import functools

import keras
import numpy as np
import pytest
from keras import ops

from kerasattn.compat.bert4keras import build_transformer_model, set_gelu
from kerasattn.compat.bert4keras.attention import MultiHeadAttention
from kerasattn.compat.bert4keras.backend import K, search_layer
from kerasattn.compat.bert4keras.models import (
    BERT,
    GPT2,
    T5,
    GatedAttentionUnit,
    LM_Mask,
    RoFormerV2,
    UniLM_Mask,
    extend_with_language_model,
    extend_with_unified_language_model,
)
from kerasattn.compat.bert4keras.resizing import orthogonally_resize
from kerasattn.compat.bert4keras.snippets import delete_arguments, insert_arguments
from kerasattn.compat.bert4keras.transformer_layers import FeedForward

SIZES = dict(
    vocab_size=30,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=24,
    hidden_act="gelu",
)
TWO_LAYERS = {**SIZES, "num_hidden_layers": 2}  # where one stands on another
T5_SIZES = {**SIZES, "hidden_act": ["gelu", "linear"]}
TOKENS = np.array([[2, 7, 8, 9, 10, 3], [2, 11, 12, 3, 0, 0]], "int32")
SEGMENTS = np.array([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 0, 0]], "int32")
on_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="checkpoints are TensorFlow's"
)


def build(model="bert", application="encoder", sizes=SIZES, **kwargs):
    """A builder whose weights are all random, the same for the same weights."""
    built = build_transformer_model(None, None, model, application, False, **sizes, **kwargs)
    shuffle(built.model)
    return built


@functools.cache
def usual(model="bert", application="encoder"):
    """The model of `build` without options, which no test changes."""
    return build(model, application).model


def shuffle(model):
    for variable in model.weights:
        if variable.trainable:
            random = np.random.default_rng(sum(map(ord, variable.path)))
            variable.assign(random.normal(size=variable.shape, scale=0.3))


def tensors_of(built):
    """The weights under their names in a checkpoint, as it holds them."""
    found = {}
    for layer, names in built.variable_mapping().items():
        for variable, name in zip(getattr(built.layers.get(layer), "weights", ()), names):
            value = ops.convert_to_numpy(variable)
            turned = name == "cls/seq_relationship/output_weights" or name.endswith("_bias")
            found[name] = value.T if turned and value.ndim == 2 else value
    return found


# === What bert4keras fails to build ===


@pytest.mark.parametrize("name", ["gpt", "gpt2", "gpt2_ml"])
def test_decoders_are_language_models_already(run, name):
    inputs = [TOKENS, SEGMENTS] if name == "gpt" else [TOKENS]
    for found, value in zip(run(build(name, "lm").model, *inputs), run(usual(name), *inputs)):
        np.testing.assert_array_equal(found, value)


@pytest.mark.parametrize("name", ["bert", "gpt", "gpt2", "gpt2_ml", "roformer"])
def test_unilm_without_segments_reads_them_for_the_mask_alone(run, name):
    model = build(name, "unilm", segment_vocab_size=0).model
    assert [x.name for x in model.inputs] == ["Input-Token", "Input-Segment"]
    assert "Embedding-Segment" not in {layer.name for layer in model.layers}
    [before] = run(model, TOKENS, SEGMENTS)
    changed = TOKENS.copy()
    changed[0, 4] = 20  # written: what stands before does not see it
    [after] = run(model, changed, SEGMENTS)
    np.testing.assert_allclose(before[0, :4], after[0, :4], atol=1e-6)
    assert np.abs(before[0, 4:] - after[0, 4:]).max() > 1e-4
    changed = TOKENS.copy()
    changed[0, 2] = 20  # read: all see it
    [after] = run(model, changed, SEGMENTS)
    assert np.abs(before[0] - after[0]).max(axis=-1).min() > 1e-6


@pytest.mark.parametrize(
    "name, application", [("bert", "lm"), ("bert", "unilm"), ("gpt", "lm"), ("gpt2", "lm")]
)
def test_residual_scores_of_language_models(run, name, application):
    inputs = [TOKENS] if name == "gpt2" else [TOKENS, SEGMENTS]
    model = build(name, application, TWO_LAYERS, residual_attention_scores=True).model
    [before] = run(model, *inputs)
    [plain] = run(build(name, application, TWO_LAYERS).model, *inputs)
    assert np.abs(before - plain).max() > 1e-6  # probabilities
    changed = TOKENS.copy()
    changed[0, 5] = 20
    [after] = run(model, changed, *inputs[1:])
    np.testing.assert_allclose(before[0, :5], after[0, :5], atol=1e-6)


def test_residual_scores_of_both_attentions_of_t5(run):
    sizes = {**T5_SIZES, "num_hidden_layers": 2}
    with_scores = build("t5.1.1", sizes=sizes, residual_attention_scores=True)
    without = build("t5.1.1", sizes=sizes)
    [first], [second] = (run(x.model, TOKENS, TOKENS[:, :4]) for x in (with_scores, without))
    assert np.isfinite(first).all() and np.abs(first - second).max() > 1e-5


def test_nezha_with_keys_of_another_width(run):
    model = build("nezha", attention_key_size=6).model
    keys, values = (model.get_layer(f"Embedding-Relative-Position{end}") for end in ("", "-Value"))
    assert (keys.output.shape[-1], values.output.shape[-1]) == (6, 8)
    assert np.isfinite(run(model, TOKENS, SEGMENTS)).all()


@pytest.mark.parametrize("name, segments", [("nezha", 2), ("roformer", 0), ("roformer_v2", 2)])
def test_positions_of_your_own(run, name, segments):
    options = dict(segment_vocab_size=segments, custom_position_ids=True)
    model = build(name, **options).model
    inputs = [TOKENS, SEGMENTS][: 2 if segments else 1]
    places = np.broadcast_to(np.arange(6, dtype="int32"), TOKENS.shape)
    [counted] = run(model, *inputs, places)
    [usual] = run(build(name, segment_vocab_size=segments).model, *inputs)
    np.testing.assert_allclose(counted, usual, atol=1e-5)
    [moved] = run(model, *inputs, places + 11)  # the same distances
    np.testing.assert_allclose(counted, moved, atol=1e-4)
    [reversed_] = run(model, *inputs, places[:, ::-1])
    assert np.abs(counted - reversed_).max() > 1e-3


@pytest.mark.parametrize("name", ["gpt", "gpt2", "gpt2_ml"])
def test_decoders_with_narrow_embeddings(run, name):
    model = build(name, embedding_size=8, segment_vocab_size=0).model
    assert model.get_layer("Output-Mapping").kernel.shape == (16, 8)
    assert run(model, TOKENS)[0].shape == (2, 6, 30)


def test_roformer_v2_pools(run):
    model = build("roformer_v2", with_pool=True, with_mlm="linear").model
    pooled, logits = run(model, TOKENS, SEGMENTS)
    assert pooled.shape == (2, 16) and logits.shape == (2, 6, 30)
    layer = model.get_layer("Pooler-Dense")
    assert len(layer.weights) == 1
    [expected] = run(usual("roformer_v2"), TOKENS, SEGMENTS)
    expected = np.tanh(expected[:, 0] @ ops.convert_to_numpy(layer.kernel))
    np.testing.assert_allclose(pooled, expected, atol=1e-5)


def test_caches_stand_before_keys_and_values(run):
    cache = keras.Input((None, 16), name="cache")
    name = "Transformer-0-MultiHeadSelfAttention"
    options = dict(attention_caches={name: [cache, cache]}, additional_input_layers=cache)
    built, plain = build("bert", **options), build("bert")
    remembered = np.random.default_rng(1).normal(size=(2, 4, 16)).astype("float32")
    [found] = run(built.model, TOKENS, SEGMENTS, remembered)

    embedded = keras.Model(plain.inputs, plain.model.get_layer("Embedding-Norm").output)
    [x] = run(embedded, TOKENS, SEGMENTS)
    behind = np.concatenate([remembered, x], axis=1)
    real = np.concatenate([np.ones((2, 4), bool), TOKENS != 0], axis=1)
    attended = plain.layers[name]([x, behind, behind, real[:, None]], a_bias=True)
    y = plain.layers[f"{name}-Norm"](x + ops.convert_to_numpy(attended))
    y = y + plain.layers["Transformer-0-FeedForward"](y)
    expected = plain.layers["Transformer-0-FeedForward-Norm"](y)
    np.testing.assert_allclose(found, ops.convert_to_numpy(expected), atol=1e-5)


# === Switches ===


def test_residual_scores_that_accumulate(run):
    options = [
        dict(residual_attention_scores=how, sizes={**SIZES, "num_hidden_layers": count})
        for count in (2, 3)
        for how in (True, "accumulate")
    ]
    a, b, c, d = (run(build("bert", **o).model, TOKENS, SEGMENTS)[0] for o in options)
    np.testing.assert_array_equal(a, b)  # one residual is the sum of one
    assert np.abs(c - d).max() > 1e-4


def test_scale_of_the_output(run):
    inputs = TOKENS, TOKENS[:, :4]
    [scaled] = run(build("t5.1.1", sizes=T5_SIZES, with_lm="linear").model, *inputs)
    [plain] = run(
        build("t5.1.1", sizes=T5_SIZES, with_lm="linear", scale_output=False).model, *inputs
    )
    np.testing.assert_allclose(scaled * 4, plain, atol=1e-5)


def test_the_parts_of_t5_make_the_whole(run):
    t5 = build("t5.1.1", sizes=T5_SIZES, context_mask=True, with_lm="linear")
    written = TOKENS[:, :4]
    [whole] = run(t5.model, TOKENS, written)
    [context] = run(t5.encoder, TOKENS)
    [parts] = run(t5.decoder, context, written, TOKENS != 0)
    np.testing.assert_allclose(whole, parts, atol=1e-5)
    [unmasked] = run(t5.decoder, context, written, np.ones_like(TOKENS, bool))
    assert np.abs(whole[0] - unmasked[0]).max() < 1e-5 < np.abs(whole[1] - unmasked[1]).max()


def test_segments_that_are_no_padding(run):
    options = dict(shared_segment_embeddings=True)
    masked = build(**options).model
    plain = build(**options, mask_segments=False).model
    segments = np.full_like(TOKENS, 5)
    np.testing.assert_array_equal(run(masked, TOKENS, segments)[0], run(plain, TOKENS, segments)[0])
    segments[0, 2] = 0
    [before] = run(masked, TOKENS, segments)
    [after] = run(plain, TOKENS, segments)
    assert np.abs(before[0] - after[0]).max() > 1e-4
    np.testing.assert_array_equal(before[1], after[1])


def test_gelu_is_that_of_the_time_of_building(run):
    set_gelu("tanh")
    approximate = build().model
    set_gelu("erf")
    exact, named = usual(), build(sizes={**SIZES, "hidden_act": "gelu_tanh"}).model
    a, b, c = (run(model, TOKENS, SEGMENTS)[0] for model in (approximate, exact, named))
    np.testing.assert_array_equal(a, c)
    assert 1e-6 < np.abs(a - b).max() < 0.1
    with pytest.raises(ValueError, match="erf"):
        set_gelu("relu")


# === Classes, and what is made of models ===


def test_a_class_of_your_own(run):
    class Tagger(BERT):
        """BERT with a class for each token."""

        def __init__(self, num_tags, **kwargs):
            super().__init__(**kwargs)
            self.num_tags = num_tags

        def apply_final_layers(self, inputs):
            return self.apply(
                inputs=inputs, layer=keras.layers.Dense, units=self.num_tags, name="Tags"
            )

        def variable_mapping(self):
            return {**super().variable_mapping(), "Tags": ["tags/kernel", "tags/bias"]}

    built = build(Tagger, num_tags=5, prefix="Mine-")
    assert run(built.model, TOKENS, SEGMENTS)[0].shape == (2, 6, 5)
    assert built.layers["Mine-Tags"] is built.model.get_layer("Mine-Tags")
    arrays = {"tags/kernel": np.ones((16, 5)), "tags/bias": np.arange(5.0)}
    built.load_weights_from_checkpoint(arrays, {"Tags": ["tags/kernel", "tags/bias"]})
    assert built.model.get_layer("Mine-Tags").bias.numpy().tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "mask, extend, application",
    [
        (LM_Mask, extend_with_language_model, "lm"),
        (UniLM_Mask, extend_with_unified_language_model, "unilm"),
    ],
)
def test_classes_that_write(run, mask, extend, application):
    class Writer(mask, BERT):
        """BERT that writes."""

    [expected] = run(usual("bert", application), TOKENS, SEGMENTS)
    for built in (build(Writer, with_mlm=True), build(extend(BERT))):
        [found] = run(built.model, TOKENS, SEGMENTS)
        np.testing.assert_array_equal(found, expected)


def test_layers_in_the_old_convention(run):
    """A method as scripts write it: a list of inputs, and what they hold as arguments."""

    class Old(BERT):
        """BERT whose layers are one attention."""

        def apply_main_layers(self, inputs, index):
            x, name = inputs, f"Transformer-{index}-MultiHeadSelfAttention"
            attention_mask = self.compute_attention_bias(index)
            xi, x, arguments = x, [x, x, x], {"a_bias": None}
            if attention_mask is not None:
                arguments["a_bias"] = True
                x.append(attention_mask)
            x = self.apply(
                inputs=x,
                layer=MultiHeadAttention,
                arguments=arguments,
                heads=self.num_attention_heads,
                head_size=self.attention_head_size,
                out_dim=self.hidden_size,
                key_size=self.attention_key_size,
                attention_dropout=self.attention_dropout_rate,
                kernel_initializer=self.initializer,
                name=name,
            )
            return self.apply(inputs=[xi, x], layer=keras.layers.Add, name=f"{name}-Add")

    model = build(Old, "lm").model
    [before] = run(model, TOKENS, SEGMENTS)
    changed = TOKENS.copy()
    changed[0, 5] = 20
    [after] = run(model, changed, SEGMENTS)
    np.testing.assert_allclose(before[0, :5], after[0, :5], atol=1e-6)


def test_a_mask_of_your_own(run):
    class Causal(BERT):
        """BERT with a mask that is the same for all of a batch, and Keras' sums."""

        def compute_attention_bias(self, inputs=None):
            if self.attention_bias is None:

                def lower(ids):
                    places = K.arange(0, K.shape(ids)[1])
                    return places[None, :] <= places[:, None]

                self.attention_bias = self.apply(
                    inputs=self.inputs[0], layer=keras.layers.Lambda, function=lower, name="Mask"
                )
            return self.attention_bias

        def add(self, x, y, name):
            return self.apply(inputs=[x, y], layer=keras.layers.Add, name=f"{name}-Add")

        def embed(self, inputs):
            x = self.table(inputs[0], self.vocab_size, "Embedding-Token", mask_zero=True)
            y = self.table(inputs[1], self.segment_vocab_size, "Embedding-Segment")
            return self.add(x, y, "Embedding-Token-Segment")

    [found] = run(build(Causal, with_mlm=True).model, TOKENS, SEGMENTS)
    [expected] = run(usual("bert", "lm"), TOKENS, SEGMENTS)
    np.testing.assert_allclose(found, expected, atol=1e-6)  # padding stays hidden


def test_an_initializer_and_layers_of_your_own(run, tmp_path):
    class Gated(RoFormerV2):
        """RoFormerV2 whose layers are one gated attention unit; of eight only the first is made."""

        def initializer(self, shape, dtype=None, order=3, gain=1.0):
            return super().initializer(shape, dtype, order, gain)

        def apply_main_layers(self, inputs, index):
            if index:
                return inputs
            name = f"Transformer-{index}-GatedAttentionUnit"
            mask, positions = self.compute_attention_bias(index), self.compute_position_bias(inputs)
            x = self.apply(
                inputs=[inputs, mask, positions],
                layer=GatedAttentionUnit,
                arguments={"a_bias": True, "p_bias": "rotary"},
                units=self.intermediate_size,
                key_size=self.attention_key_size,
                activation=self.hidden_act,
                normalization="softmax_plus",
                kernel_initializer=self.initializer,
                name=name,
            )
            return self.norm(self.add(inputs, x, name), f"{name}-Norm")

    sizes = {**SIZES, "hidden_size": 64, "num_hidden_layers": 8}
    model = build_transformer_model(model=Gated, application="unilm", **sizes)
    kernel = ops.convert_to_numpy(
        model.get_layer("Transformer-0-GatedAttentionUnit").i_dense.kernel
    )
    np.testing.assert_allclose(kernel.std(), 8 ** (-1 / 3) / 64**0.5, rtol=0.1)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(run(model, TOKENS, SEGMENTS)[0], run(again, TOKENS, SEGMENTS)[0])


def test_arguments_of_your_own():
    class Tagger(BERT):
        """BERT without its heads, with another."""

        @insert_arguments(num_tags=3)
        @delete_arguments("with_pool", "with_mlm")
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)

        def apply_final_layers(self, inputs):
            return self.dense(inputs, self.num_tags, "Tags")

    assert build_transformer_model(model=Tagger, num_tags=7, **SIZES).output.shape[-1] == 7
    with pytest.raises(TypeError, match="Tagger does not take the argument 'with_pool'"):
        build_transformer_model(model=Tagger, with_pool=True, **SIZES)


def test_models_that_share_layers():
    first = build()
    second = build(layers=first.layers, with_pool=True)
    name = "Transformer-0-FeedForward"
    assert second.model.get_layer(name) is first.model.get_layer(name)


def test_layers_over_other_inputs(run):
    """The layers of two models in turn, as in BERT-of-Theseus."""
    teacher, student = build(prefix="A-"), build(prefix="B-", application="lm")
    x = teacher.apply_embeddings(teacher.inputs)
    y = student.apply_embeddings(teacher.inputs)
    x = teacher.apply_main_layers(keras.layers.Average()([x, y]), 0)
    y = student.apply_main_layers(x, 0)
    model = keras.Model(teacher.inputs, y)
    assert run(model, TOKENS, SEGMENTS)[0].shape == (2, 6, 16)


def test_keras_masks_reach_what_stands_on_the_model(run):
    model = usual()
    pooled = keras.layers.GlobalAveragePooling1D()(model.output)
    pooled = keras.Model(model.inputs, pooled)
    longer = [np.pad(x, ((0, 0), (0, 3))) for x in (TOKENS, SEGMENTS)]
    np.testing.assert_allclose(run(pooled, TOKENS, SEGMENTS)[0], run(pooled, *longer)[0], atol=1e-5)


def test_mixed_precision(run):
    expected = run(usual("roformer", "lm"), TOKENS, SEGMENTS)[0]
    for policy in ("mixed_float16", "mixed_bfloat16"):
        keras.config.set_dtype_policy(policy)
        [found] = run(build("roformer", "lm").model, TOKENS, SEGMENTS)
        assert found.dtype == "float32"
        np.testing.assert_allclose(found, expected, atol=0.05)


def test_training():
    model = build("roformer", "unilm").model
    # With XLA the script of the migration page trains.
    model.compile("adam", "sparse_categorical_crossentropy", jit_compile=False)
    before = model.get_layer("Transformer-0-FeedForward").i0_dense.kernel.numpy()
    history = model.fit([TOKENS, SEGMENTS], TOKENS, epochs=3, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0]
    after = model.get_layer("Transformer-0-FeedForward").i0_dense.kernel.numpy()
    assert np.abs(after - before).max() > 0


def test_the_builder_has_what_the_model_has():
    built = build(with_pool=True, name="named")
    assert built.model.name == "named"
    assert built.inputs == built.model.inputs and built.output is built.model.output
    assert isinstance(build(GPT2).input, keras.KerasTensor)
    t5 = build(T5, sizes={**T5_SIZES, "hidden_act": "relu"}, name="mine")
    assert (t5.encoder.name, t5.decoder.name) == ("mine_Encoder", "mine_Decoder")


def test_outputs_of_shared_layers(run):
    model = build("albert", sizes=TWO_LAYERS).model
    layer = model.get_layer("Transformer-FeedForward-Norm")
    inner = keras.Model(model.inputs, layer.get_output_at(0))
    [expected] = run(usual("albert"), TOKENS, SEGMENTS)
    np.testing.assert_allclose(run(inner, TOKENS, SEGMENTS)[0], expected, atol=1e-6)
    assert layer.get_output_at(-1) is layer.get_output_at(1) is model.output
    with pytest.raises(ValueError, match="called 2 times"):
        layer.get_output_at(2)


def test_layers_are_found_by_name():
    model = usual()
    x = keras.layers.Dense(2)(keras.layers.Dropout(0.1)(model.output))
    assert search_layer(x, "Embedding-Token") is model.get_layer("Embedding-Token")
    outer = keras.layers.Dense(2)(model(model.inputs))
    assert search_layer(outer, "Embedding-Token") is model.get_layer("Embedding-Token")
    assert search_layer(x, "Embedding-Word") is None


# === Weights ===


def test_tokens_that_are_kept_and_made(run):
    tensors = tensors_of(build(with_mlm="linear"))
    kept, made = [0, 5, 9, 2], [[1, 2], ([0, 3], [0.25, 0.75])]
    model = build_transformer_model(
        None, tensors, with_mlm="linear", keep_tokens=kept, compound_tokens=made, **SIZES
    )
    for path, name in (
        ("Embedding-Token/embeddings", "bert/embeddings/word_embeddings"),
        ("MLM-Bias/beta", "cls/predictions/output_bias"),
    ):
        layer, attribute = path.split("/")
        table = tensors[name][kept]
        expected = [*table, (table[1] + table[2]) / 2, 0.25 * table[0] + 0.75 * table[3]]
        found = getattr(model.get_layer(layer), attribute).numpy()
        np.testing.assert_allclose(found, np.stack(expected), rtol=1e-6)
    for options in (dict(keep_tokens=[0, 30]), dict(compound_tokens=[[30]])):
        with pytest.raises(ValueError, match="ids from 0 to 29"):
            build_transformer_model(None, tensors, **options, **SIZES)
    kept = build_transformer_model(None, tensors, keep_tokens=range(4), **SIZES)
    np.testing.assert_array_equal(
        kept.get_layer("Embedding-Token").embeddings,
        tensors["bert/embeddings/word_embeddings"][:4],
    )


def test_tensors_that_are_missing_or_of_another_shape(caplog):
    tensors = tensors_of(build())
    with pytest.raises(ValueError, match=r"(?s)MLM-Dense/kernel.*ignore_invalid_weights=True"):
        build_transformer_model(None, tensors, with_mlm=True, **SIZES)
    model = build_transformer_model(
        None, tensors, with_mlm=True, ignore_invalid_weights=True, **SIZES
    )
    assert "MLM-Dense/kernel" in caplog.text
    np.testing.assert_array_equal(
        model.get_layer("Embedding-Token").embeddings, tensors["bert/embeddings/word_embeddings"]
    )
    wider = {**SIZES, "intermediate_size": 48}
    with pytest.raises(ValueError, match=r"\(16, 48\)"):
        build_transformer_model(None, tensors, ignore_invalid_weights=True, **wider)


def test_resized_weights_compute_the_same_scale(run):
    tensors = tensors_of(build())
    wider = {**SIZES, "hidden_size": 32, "intermediate_size": 48}
    model = build_transformer_model(None, tensors, autoresize_weights=True, **wider)
    assert np.isfinite(run(model, TOKENS, SEGMENTS)).all()
    kernel = model.get_layer("Transformer-0-FeedForward").i0_dense.kernel.numpy()
    before = tensors["bert/encoder/layer_0/intermediate/dense/kernel"]
    np.testing.assert_allclose(np.linalg.norm(kernel), np.linalg.norm(before) * 2**0.5, rtol=1e-5)


def test_orthogonal_matrices_stay_so():
    matrix = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 8)))[0]
    for shape in ((8, 16), (16, 16), (24, 8)):
        wide = orthogonally_resize(matrix, shape)
        assert wide.shape == shape
        np.testing.assert_allclose(np.linalg.norm(wide), np.linalg.norm(matrix))
    product = wide.T @ wide
    np.testing.assert_allclose(product, np.eye(8), atol=1e-6)
    with pytest.raises(ValueError, match="multiples of 2"):
        orthogonally_resize(np.ones((3, 3)), (4, 3))
    with pytest.raises(ValueError, match="can't be resized"):
        orthogonally_resize(np.ones(3), (3, 3))


@on_tensorflow
@pytest.mark.parametrize("name", ["bert", "albert_unshared", "gpt2_ml", "mt5.1.1"])
def test_checkpoints_are_written_as_they_are_read(run, tmp_path, name):
    sizes = {"mt5.1.1": T5_SIZES, "albert_unshared": TWO_LAYERS}.get(name, SIZES)
    options = dict(with_nsp=True, with_mlm=True) if name == "bert" else {}
    if name == "albert_unshared":
        base = build("albert", sizes=sizes)  # its layers are one
        built = build_transformer_model(
            None, tensors_of(base), name, return_keras_model=False, **sizes
        )
    else:
        built = build(name, sizes=sizes, **options)
    built.save_weights_as_checkpoint(tmp_path / "model.ckpt")
    # A user may give the path of one of its files.
    again = build_transformer_model(None, tmp_path / "model.ckpt.index", name, **sizes, **options)
    for variable, twin in zip(built.model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(variable.numpy(), twin.numpy(), err_msg=variable.path)
    if name == "albert_unshared":
        shuffle(built.model)
        with pytest.raises(ValueError, match="share the tensor"):
            built.save_weights_as_checkpoint(tmp_path / "model.ckpt")


# === Errors ===


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(model="bart"), "'bart'"),
        (dict(application="seq2seq"), "'seq2seq'"),
        (dict(model="t5", application="unilm"), "T5 can't be used"),
        (dict(model="t5.1.1", application="lm"), "T5 can't be used"),
        (dict(model="electra", application="lm"), "ELECTRA can't be used"),
        (dict(model="gpt", with_mlm=True), "with_mlm"),
        (dict(wiht_mlm=True), "wiht_mlm"),
        (dict(vocab_size=None), "vocab_size"),
        (dict(model="t5", version="t5.2"), "t5.2"),
        (dict(model=7), "a class of such, got 7"),
        (dict(model=dict), "a class of such, got <class 'dict'>"),
        (dict(hidden_size="16"), "hidden_size must be a whole number from 1 on, got '16'"),
        (dict(num_hidden_layers=2.0), "num_hidden_layers must be a whole number from 0 on"),
        (dict(num_attention_heads=0), "num_attention_heads must be a whole number from 1 on"),
        (dict(vocab_size=True), "vocab_size must be a whole number from 1 on, got True"),
        (dict(dropout_rate=1), r"dropout_rate must be a number in \[0, 1\), got 1"),
        (dict(attention_dropout_rate="0.1"), "attention_dropout_rate must be a number"),
        (dict(hidden_act={"class_name": "Lambda"}), "hidden_act must be a name or a function"),
        (dict(hidden_act=[]), "hidden_act must be a name or a function"),
        (dict(keep_tokens=5), "keep_tokens takes a list of ids, got 5"),
        (dict(keep_tokens=[]), "keep_tokens takes a list of ids"),
        (dict(keep_tokens=[0, 1.5]), "keep_tokens takes a list of ids"),
        (dict(keep_tokens=[[0], [1]]), "keep_tokens takes a list of ids"),
        (dict(compound_tokens=3), "compound_tokens takes a list of lists"),
        (dict(compound_tokens=[3]), "compound_tokens takes lists of ids"),
        (dict(compound_tokens=[[]]), "compound_tokens takes lists of ids"),
        (dict(compound_tokens=[[-1]]), "compound_tokens takes lists of ids"),
        (dict(compound_tokens=[([1, 2], [1.0])]), "as many weights"),
        (dict(compound_tokens=[([1, 2], [1, -1])]), "as many weights"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        build_transformer_model(**{**SIZES, **arguments})


@on_tensorflow
def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match="no folder"):
        build().save_weights_as_checkpoint(tmp_path / "none" / "model.ckpt")


def test_a_missing_config_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"config\.json does not exist"):
        build_transformer_model(tmp_path / "config.json")


def test_kinds_of_positions_and_activations():
    layer = MultiHeadAttention(2, 4)
    x = np.ones((1, 3, 8), "float32")
    with pytest.raises(ValueError, match="p_bias"):
        layer([x, x, x, x], p_bias="absolute")
    gated = FeedForward(6, activation=["gelu", "tanh", "linear"])
    assert gated(x).shape == (1, 3, 8)
    again = FeedForward.from_config(gated.get_config())
    assert again.activation == gated.activation
