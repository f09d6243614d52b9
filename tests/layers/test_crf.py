import itertools

import keras
import numpy as np
import pytest

from kerasattn import layers
from kerasattn.ops import crf
from kerasattn.testing import check_layer
from kerasattn.training import CRFLoss

RANDOM = np.random.default_rng(0)
ALLOWED = [[True, True, False], [True, True, True], [False, True, True]]


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def x(batch, length):
    return RANDOM.normal(size=(batch, length, 3)).astype("float32")


def potentials(batch, length):
    mask = np.ones((batch, length), bool)
    mask[:, 1:3] = False
    transitions = RANDOM.normal(size=(3, 3)).astype("float32")
    return array(crf.log_potentials(x(batch, length), transitions, padding_mask=mask))


def hidden(real):
    return {"padding_mask": real}


@keras.saving.register_keras_serializable(package="tests")
class Marginals(layers.CRF):
    """What a CRF says of each step, which is of a size that tolerances are made for."""

    def call(self, emissions, padding_mask=None, mask=None):
        return crf.marginals(super().call(emissions, padding_mask, mask))


@keras.saving.register_keras_serializable(package="tests")
class MarginalsOfMEMM(Marginals):
    NORMALIZE = True


CONFIG_ERRORS = [
    ({"allowed_transitions": [[1, 0], [1, 1]]}, "takes booleans of rank 2, got int64"),
    ({"allowed_starts": ALLOWED}, "takes booleans of rank 1"),
]


@pytest.mark.parametrize("kind", [Marginals, MarginalsOfMEMM])
def test_marginals_of_the_layer(kind):
    alike = dict.fromkeys(("save", "saved_model", "precision", "errors"), "as those of the CRF")
    check_layer(
        kind,
        {"allowed_transitions": ALLOWED, "allowed_starts": [True, True, False]},
        x,
        padding=hidden,
        config_errors=CONFIG_ERRORS,
        errors=[
            (np.ones((2, 3), "float32"), r"must be \(batch, length, num_tags\)"),
            (np.ones((2, 3, 4), "float32"), "but there are 4 tags"),
        ],
        skip={
            "causal": "what comes later tells what was before",
            "jit": "the tests of ops compile them",
            **(alike if kind is MarginalsOfMEMM else {}),
        },
        lengths=(1, 4),
    )


@pytest.mark.parametrize("kind", [layers.CRF, layers.MaximumEntropyMarkovModel])
def test_layer(kind):
    check_layer(
        kind,
        {"use_boundaries": False, "transitions_initializer": "ones"},
        x,
        padding=hidden,
        config_errors=CONFIG_ERRORS,
        skip={
            "causal": "the last step has the end scores",
            "config": "an initializer's config says more than its name",
            "save": "that of the marginals has it",
            "saved_model": "that of the marginals has it",
            "errors": "those of the marginals",
        },
        lengths=(1, 4),
    )


def test_decode():
    check_layer(
        layers.CRFDecode,
        {"return_scores": True},
        potentials,
        errors=[
            (np.ones((2, 3, 4), "float32"), "as CRF returns them"),
            (np.ones((2, 3, 4, 5), "float32"), "as CRF returns them"),
        ],
        skip={
            "causal": "the best path is that of the whole",
            "padding": "it is in the potentials",
            "fit": "tags are whole numbers",
            "jit": "the tests of ops compile it",
        },
        lengths=(1, 4),
    )


def model_of(kind, **options):
    token_ids = keras.Input((None,), dtype="int32")
    h = keras.layers.Embedding(20, 8)(token_ids)
    scores = kind(**options)(keras.layers.Dense(3)(h), padding_mask=layers.PaddingMask()(token_ids))
    return keras.Model(token_ids, scores)


def data(number):
    ids = RANDOM.integers(1, 20, size=(number, 7))
    tags = np.minimum(ids % 4, 2)
    ids[:, 5:] *= RANDOM.integers(0, 2, size=(number, 1))
    ids[0] = 0  # an empty row
    return ids, tags


# CASES C37
def test_trained_saved_loaded_and_trained_on(tmp_path):
    keras.config.set_dtype_policy("mixed_float16")
    model = model_of(layers.CRF)
    ids, tags = data(64)
    model.compile(keras.optimizers.Adam(0.05), loss=CRFLoss(), jit_compile=True)
    model.optimizer.build(model.trainable_variables)  # else a step is traced twice
    losses = model.fit(ids, tags, epochs=10, verbose=0).history["loss"]
    assert np.isfinite(losses).all() and losses[-1] < 0.5 * losses[0]
    expected = CRFLoss()(tags, model(ids))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(
        array(loaded.layers[-1].transitions), array(model.layers[-1].transitions)
    )
    np.testing.assert_allclose(CRFLoss()(tags, loaded(ids)), expected, rtol=1e-3)
    loaded.run_eagerly = keras.backend.backend() == "tensorflow"  # for two steps
    went_on = loaded.fit(ids, tags, verbose=0).history["loss"][0]
    assert went_on < losses[-1] + 0.2 * losses[0]
    decode = lambda m: keras.Model(m.input, layers.CRFDecode()(m.output))
    best = array(decode(loaded)(ids))
    np.testing.assert_array_equal(best, array(decode(model)(ids)))
    assert (best == tags)[ids > 0].mean() > 0.9 and not best[ids == 0].any()


def test_constraints_hold_exactly_whatever_the_scores():
    options = dict(
        allowed_transitions=np.array(ALLOWED),
        allowed_starts=[True, True, False],
        allowed_ends=[True, False, False],
    )
    layer, emissions = layers.CRF(**options), 30 * x(50, 6)
    tags = array(layers.CRFDecode()(layer(emissions)))
    for row in tags:
        assert all(ALLOWED[a][b] for a, b in itertools.pairwise(row))
        assert row[0] != 2 and row[-1] == 0
    shares = array(crf.marginals(layer(emissions)))
    assert (shares[:, 0, 2] == 0).all() and (shares[:, -1, 1:] == 0).all()


def test_keras_masks_count_too():
    layer, emissions = layers.CRF(), x(2, 4)
    real = np.array([[True] * 3 + [False], [True] * 4])
    by_argument = array(layer(emissions, padding_mask=real))
    masked = keras.layers.Masking()(np.where(real[..., None], emissions, 0))
    output = layer(masked)
    np.testing.assert_allclose(array(output), by_argument)
    assert getattr(output, "_keras_mask", None) is None
    with pytest.raises(ValueError, match=r"shape \(2, 4\); got bool of the shape \(2, 1\)"):
        layer(emissions, padding_mask=real[:, :1])
    with pytest.raises(ValueError, match="CRFLoss takes tags"):
        CRFLoss()(np.zeros((2, 1), "int32"), output)  # one tag for four steps


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="its tensors have room for it")
def test_what_potentials_were_made_of_is_known_behind_the_model():
    """So that its loss is the fast one; of the other it differs in rounding alone."""
    ids, tags = data(8)
    potentials = model_of(layers.CRF, allowed_transitions=ALLOWED)(ids)
    assert potentials._kerasattn_chain.padding_mask.shape == ids.shape
    loss = CRFLoss(reduction=None)
    np.testing.assert_allclose(loss(tags, potentials), loss(tags, potentials + 0.0), rtol=1e-4)
    assert not hasattr(model_of(layers.MaximumEntropyMarkovModel)(ids), "_kerasattn_chain")


def test_an_unconstrained_crf_learns_the_rules_of_a_scheme():
    """B 0, I 1, O 2: what never comes in the data, I behind O, gets the lowest scores."""
    tags = np.array([[0, 1, 2, 0, 2, 2, 0, 1], [2, 0, 1, 1, 2, 0, 0, 1]] * 60)
    layer = layers.CRF()
    emissions = keras.Input((None, 3))
    model = keras.Model(emissions, layer(emissions))
    on_jax = keras.backend.backend() == "jax"  # where nothing is fast without
    model.compile(keras.optimizers.Adam(0.1), loss=CRFLoss(), jit_compile=on_jax)
    model.optimizer.build(model.trainable_variables)  # else a step is traced twice
    model.fit(np.zeros((120, 8, 3), "float32"), tags, batch_size=2, verbose=0, shuffle=False)
    scores = array(layer.transitions)
    assert scores[2, 1] < scores[2].max() - 3
    assert array(layer.start_scores).argmin() == 1
