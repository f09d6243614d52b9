"""Contrastive search against the paper's equation in plain Python."""

import numpy as np
import pytest
from keras import ops

from kerasattn import decoding

VOCABULARY, STEPS, DIM = 6, 5, 3


@pytest.fixture
def with_vectors(markov):
    """A Markov decoder whose tokens have vectors, each step others, and a prompt of two."""
    rng = np.random.default_rng(3)

    class WithVectors(markov):
        vectors = rng.normal(size=(STEPS + 1, VOCABULARY, DIM)).astype("float32")
        prompt = rng.normal(size=(2, 2, DIM)).astype("float32")  # (kind, n, dim)

        def hidden_step(self, token_ids, index, state):
            logits, state = self.step(token_ids, index, state)
            table = ops.take(ops.convert_to_tensor(self.vectors), index, axis=0)
            return logits, ops.take(table, token_ids, axis=0), state

        def prompt_hidden(self, inputs):
            prompt = ops.take(ops.convert_to_tensor(self.prompt), inputs["kind"], axis=0)
            return prompt, ops.ones_like(prompt[..., 0], "bool") & (np.arange(2) > 0)[None]

    return WithVectors.random(2, vocabulary=VOCABULARY, steps=STEPS + 1, kinds=2, scale=1.0)


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


def plain(decoder, kind, start, alpha, top_k):
    before, written = [decoder.prompt[kind, 1], decoder.vectors[0, start]], [start]
    for step in range(STEPS):
        logits = decoder.tables[kind, step, written[-1]].astype("float64")
        p = np.exp(logits) / np.exp(logits).sum()
        worth = {}
        for token in np.argsort(-p)[:top_k]:
            vector = decoder.vectors[step + 1, token]
            worth[token] = (1 - alpha) * p[token] - alpha * max(cosine(vector, b) for b in before)
        written.append(int(max(worth, key=worth.get)))
        before.append(decoder.vectors[step + 1, written[-1]])
    return written[1:]


@pytest.mark.parametrize("alpha, top_k", [(0.6, 4), (0.3, 3), (1.0, 50), (0.0, 4), (0.6, 1)])
def test_is_the_plain_search(with_vectors, alpha, top_k):
    options = dict(start_ids=[1, 2, 3], max_new_tokens=STEPS, return_scores=True, jit=False)
    inputs = with_vectors.inputs([0, 1, 1])
    strategy = decoding.Contrastive(alpha, top_k)
    got = decoding.generate(with_vectors, inputs, strategy, **options)
    for row, (kind, start) in enumerate([(0, 1), (1, 2), (1, 3)]):
        assert got.token_ids[row].tolist() == plain(with_vectors, kind, start, alpha, top_k)
        own = with_vectors.log_probs(kind, start, got.token_ids[row])
        np.testing.assert_allclose(got.log_probs[row], own, atol=1e-5)
    if alpha == 0 or top_k == 1:
        greedy = decoding.generate(with_vectors, inputs, **options)
        np.testing.assert_array_equal(got.token_ids, greedy.token_ids)


def test_ends_bans_and_no_prompt(with_vectors):
    free = decoding.generate(
        with_vectors,
        with_vectors.inputs([0]),
        decoding.Contrastive(),
        start_ids=[1],
        max_new_tokens=STEPS,
        end_id=0,
        banned=[2],
        jit=False,
    )[0]
    assert 2 not in free
    with_vectors.prompt_hidden = lambda inputs: None
    run = lambda: decoding.generate(
        decoding.StepFunction(with_vectors.step), with_vectors.inputs([0]), decoding.Contrastive(),
        start_ids=[1], max_new_tokens=2,
    )  # fmt: skip
    with pytest.raises(ValueError, match="StepFunction has none"):
        run()
