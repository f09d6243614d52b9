import keras
import numpy as np
import pytest

from kerasattn import models
from kerasattn.models import hmm_estimation
from kerasattn.testing import check_model
from kerasattn.testing.arrays import run

RANDOM = np.random.default_rng(0)
SKIP = {"causal": "later observations tell of earlier states", "decoding": "it writes nothing"}


def symbols(batch, length):
    return {
        "observations": RANDOM.integers(0, 5, (batch, length)).astype("int32"),
        "padding_mask": np.ones((batch, length), bool),
    }


def vectors(batch, length):
    drawn = RANDOM.normal(size=(batch, length, 2)).astype("float32")
    return {**symbols(batch, length), "observations": drawn}


CASES = [
    (
        models.CategoricalHMM,
        dict(num_states=3, num_symbols=5, seed=0),
        symbols,
        [({"num_states": 0}, "num_states must be an int"), ({"num_symbols": 1.5}, "num_symbols")],
        [({"observations": np.full((1, 2), 5)}, "takes ids from 0 to 4, got 5")],
    ),
    (
        models.GaussianHMM,
        dict(num_states=3, num_features=2, seed=0),
        vectors,
        [({"min_variance": 0.0}, "min_variance must be finite and above 0")],
        [({"observations": np.zeros((1, 2), "float32")}, "takes the shape")],
    ),
]


@pytest.mark.parametrize("kind, config, inputs, config_errors, errors", CASES)
def test_model(kind, config, inputs, config_errors, errors):
    seconds = dict.fromkeys(["save", "saved_model"], "tried on the other, but for emissions")
    check_model(
        kind,
        config,
        inputs,
        config_errors=config_errors,
        errors=errors,
        # Padding is what is masked, whatever stands there.
        pad_values={"padding_mask": False},
        skip=SKIP
        | {"jit": "the tests of ops compile it"}
        | (seconds if kind is models.CategoricalHMM else {}),
        lengths=(1, 4),
    )


# === Beside hmmlearn ===
def pair(kind, seed=0):
    """A model of ours and one of hmmlearn with the same parameters, sequences and their lengths."""
    hmmlearn = pytest.importorskip("hmmlearn.hmm", reason="the extra [test] installs it")
    random, lengths = np.random.default_rng(seed), [40, 3, 25, 1, 31]
    parameters = dict(
        initial=random.dirichlet(np.ones(4)), transitions=random.dirichlet(np.ones(4), 4)
    )
    if kind == "categorical":
        parameters["symbols"] = random.dirichlet(np.ones(6), 4)
        ours = models.CategoricalHMM(4, num_symbols=6)
        theirs = hmmlearn.CategoricalHMM(4, n_iter=1, init_params="", tol=-np.inf)
        theirs.n_features, theirs.emissionprob_ = 6, parameters["symbols"]
        sequences = [random.integers(0, 6, n) for n in lengths]
        flat = np.concatenate(sequences)[:, None]
    else:
        parameters["means"] = random.normal(size=(4, 3), scale=2)
        parameters["variances"] = random.uniform(0.5, 2, (4, 3))
        ours = models.GaussianHMM(4, num_features=3)
        theirs = hmmlearn.GaussianHMM(
            4, "diag", n_iter=1, init_params="", tol=-np.inf, covars_prior=0.0
        )
        theirs.means_, theirs.covars_ = parameters["means"], parameters["variances"]
        sequences = [random.normal(size=(n, 3), scale=2) for n in lengths]
        flat = np.concatenate(sequences)
    theirs.startprob_, theirs.transmat_ = parameters["initial"], parameters["transitions"]
    ours.set_parameters(**parameters)
    return ours, theirs, sequences, flat, lengths


def of_theirs(model):
    found = dict(initial=model.startprob_, transitions=model.transmat_)
    if hasattr(model, "emissionprob_"):
        return {**found, "symbols": model.emissionprob_}
    covariances = np.diagonal(model.covars_, axis1=1, axis2=2)
    return {**found, "means": model.means_, "variances": covariances}


@pytest.mark.parametrize("kind", ["categorical", "gaussian"])
def test_equals_hmmlearn(kind):
    ours, theirs, sequences, flat, lengths = pair(kind)
    mask = np.arange(max(lengths)) < np.array(lengths)[:, None]
    padded = np.zeros((*mask.shape, *sequences[0].shape[1:]), "float32")
    padded[mask] = np.concatenate(sequences)
    padded = padded.astype("int32") if kind == "categorical" else padded
    outputs = run(ours, {"observations": padded, "padding_mask": mask})
    expected = [theirs.score(sequence.reshape(n, -1)) for n, sequence in zip(lengths, sequences)]
    np.testing.assert_allclose(outputs["log_likelihood"], expected, rtol=1e-4)
    np.testing.assert_allclose(outputs["posteriors"][mask], theirs.predict_proba(flat, lengths),
                               atol=1e-5)  # fmt: skip
    for method, algorithm in (("viterbi", "viterbi"), ("approximate", "map")):
        states, scores = ours.decode(sequences, method=method, return_scores=True, batch_size=2)
        total, expected = theirs.decode(flat, lengths, algorithm=algorithm)
        np.testing.assert_array_equal(states[mask], expected)
        np.testing.assert_allclose(scores.sum(), total, rtol=1e-4)

    # Baum-Welch, step by step
    likelihoods, start = [], ours.parameters
    for _ in range(6):
        likelihoods.append(theirs.score(flat, lengths))
        found = ours.baum_welch(sequences, num_iterations=1, batch_size=2)
        theirs.fit(flat, lengths)
        np.testing.assert_allclose(found, likelihoods[-1:], rtol=1e-4)
        for name, value in of_theirs(theirs).items():
            np.testing.assert_allclose(ours.parameters[name], value, rtol=1e-4, atol=1e-5)
    ours.set_parameters(**start)
    history = ours.baum_welch(sequences, num_iterations=6, tolerance=None, batch_size=2)
    np.testing.assert_allclose(history, likelihoods, rtol=1e-4)
    assert (np.diff(history) > 0).all()


# === Estimation ===
def test_counting():
    model = models.CategoricalHMM(3, num_symbols=2)
    model.estimate([[0, 1, 1], [1, 0]], [[0, 0, 1], [1, 0]])
    found = model.parameters
    np.testing.assert_allclose(found["initial"], [0.5, 0.5, 0])
    # State 2 is never seen: its rows are even, and proper.
    np.testing.assert_allclose(found["transitions"], [[0.5, 0.5, 0], [1, 0, 0], [1 / 3] * 3])
    np.testing.assert_allclose(found["symbols"], [[2 / 3, 1 / 3], [0, 1], [0.5, 0.5]])
    model.estimate([[0, 1, 1], [1, 0]], [[0, 0, 1], [1, 0]], smoothing=1.0)
    np.testing.assert_allclose(model.parameters["initial"], [2 / 5, 2 / 5, 1 / 5])
    np.testing.assert_allclose(model.parameters["symbols"][1], [1 / 4, 3 / 4])
    with pytest.raises(ValueError, match="states are from 0 to 2, got 3"):
        model.estimate([[0, 1]], [[0, 3]])
    with pytest.raises(ValueError, match="different lengths"):
        model.estimate([[0, 1], [1]], [[0, 1], [1, 1]])

    gaussian = models.GaussianHMM(2, num_features=1, seed=0)
    before = gaussian.parameters
    gaussian.estimate([[[1.0], [3.0]]], [[0, 0]])
    np.testing.assert_allclose(gaussian.parameters["means"], [[2], before["means"][1]], rtol=1e-6)
    np.testing.assert_allclose(gaussian.parameters["variances"], [[1], [1]], rtol=1e-6)


@pytest.fixture(scope="module")
def impossible():
    """A model under which symbol 1 cannot follow symbol 0."""
    model = models.CategoricalHMM(2, num_symbols=2)
    identity = np.eye(2)
    model.set_parameters(initial=[0.5, 0.5], transitions=identity, symbols=identity)
    return model


def test_impossible_observations(impossible):
    rows = np.array([[0, 0, 0], [1, 1, 1], [0, 0, 1]])
    outputs = run(impossible, {"observations": rows.astype("int32")})
    np.testing.assert_allclose(outputs["log_likelihood"], [np.log(0.5)] * 2 + [-np.inf])
    assert not outputs["posteriors"][2].any() and not np.isnan(outputs["posteriors"]).any()
    for method in ("viterbi", "approximate"):
        with pytest.raises(ValueError, match=r"row 2 are impossible.* step 2, 1, has probability"):
            impossible.decode(rows, method=method)
        possible = rows[[0, 1, 0]]
        np.testing.assert_array_equal(impossible.decode(possible, method=method), possible)
    with pytest.raises(ValueError, match="smoothing above 0"):
        impossible.baum_welch(rows)
    # Counts of zero keep their rows; what nothing can change stays.
    history = impossible.baum_welch(rows[[0, 0, 0]], num_iterations=2, tolerance=None)
    np.testing.assert_allclose(history, [3 * np.log(0.5), 0], atol=1e-6)
    np.testing.assert_allclose(impossible.parameters["transitions"], np.eye(2))
    np.testing.assert_allclose(impossible.parameters["initial"], [1, 0])


def test_what_cannot_be_read(impossible):
    for call, message in (
        (lambda: impossible.decode([[0], [[1]]]), "Expected sequences of rank 1"),
        (lambda: impossible.decode([]), "Expected sequences of rank 1"),
        (lambda: impossible.decode([0, 1, 0]), r"a list of sequences.*\[\[0, 1, 2\]\]"),
        (lambda: impossible.decode(np.array([0, 1, 0])), "got one sequence"),
        (lambda: impossible.decode([[0, 2]]), "ids from 0 to 1, got 2"),
        (lambda: impossible.decode([[0.5]]), "takes integers"),
        (lambda: impossible.decode([[2**32]]), "got 4294967296"),
        (lambda: impossible.decode(np.zeros((1, 2), int), np.zeros((1, 2))), "some real steps"),
        (lambda: impossible.decode([[0]], method="best"), "method must be one of"),
        (lambda: impossible.set_parameters(initial=[0.5, 0.6]), "sum to 1"),
        (lambda: impossible.set_parameters(means=[1.0]), "got 'means'"),
        (lambda: impossible.baum_welch([[0]], smoothing=-1), "smoothing must be finite"),
        (lambda: impossible.baum_welch([[0]], num_iterations=0), "num_iterations must be an int"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_samples_are_learned_by_counts_and_by_gradient():
    source = models.CategoricalHMM(2, num_symbols=3)
    parameters = dict(
        initial=[0.9, 0.1],
        transitions=[[0.9, 0.1], [0.2, 0.8]],
        symbols=[[0.8, 0.1, 0.1], [0.1, 0.2, 0.7]],
    )
    source.set_parameters(**parameters)
    states, observations = source.sample(300, 20, seed=1)
    again = source.sample(300, 20, seed=1)
    np.testing.assert_array_equal(states, again[0])
    np.testing.assert_array_equal(observations, again[1])

    counted = models.CategoricalHMM(2, num_symbols=3)
    counted.estimate(observations, states)
    for name, value in parameters.items():
        np.testing.assert_allclose(counted.parameters[name], value, atol=0.03)

    fitted = models.CategoricalHMM(2, num_symbols=3, seed=2)
    on_jax = keras.backend.backend() == "jax"  # where nothing is fast without
    fitted.compile(keras.optimizers.Adam(0.1), jit_compile=on_jax)
    losses = fitted.fit(observations, batch_size=60, epochs=12, verbose=0).history["loss"]
    best = -run(source, {"observations": observations})["log_likelihood"].mean() / 20
    assert losses[-1] < losses[0] and abs(losses[-1] - best) < 0.01
    # Of the two orders of the states that are as good.
    decoded = fitted.decode(observations)
    assert max((decoded == states).mean(), (decoded != states).mean()) > 0.85


def test_vectors_that_cannot_be_read():
    model = models.GaussianHMM(2, num_features=2)
    vectors = np.zeros((1, 3, 2))
    for observations, message in (
        (vectors[..., :1], "of 1 numbers do not fit means of 2"),
        ([vectors[0], vectors[0, :, :1]], "all of one dim"),
        (list(vectors[0]), "got one sequence"),
        (np.where(np.arange(3)[:, None] == 1, np.nan, vectors), "row 0, step 1 is not"),
        (vectors + 1e39, "must be finite"),  # in float32
    ):
        with pytest.raises(ValueError, match=message):
            model.decode(observations)


def test_an_empty_sequence_is_padding():
    observations, mask = hmm_estimation.read([[1, 1], []], None, dims=0)
    assert observations.dtype == "int32" and observations.tolist() == [[1, 1], [0, 0]]
    assert mask.tolist() == [[True, True], [False, False]]
