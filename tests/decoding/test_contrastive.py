"""Contrastive search against the paper's equation in plain Python."""

import numpy as np
import pytest
from keras import ops

from kerasattn import decoding

VOCABULARY, STEPS, DIM = 6, 5, 3
END, BANNED = 0, 2


@pytest.fixture(scope="module")
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
    while len(written) <= STEPS and END not in written[1:]:
        step = len(written) - 1
        logits = decoder.tables[kind, step, written[-1]].astype("float64")
        logits[BANNED] = -np.inf
        p = np.exp(logits) / np.exp(logits).sum()
        worth = {}
        for token in np.argsort(-p)[: min(top_k, VOCABULARY - 1)]:
            vector = decoder.vectors[step + 1, token]
            worth[token] = (1 - alpha) * p[token] - alpha * max(cosine(vector, b) for b in before)
        written.append(int(max(worth, key=worth.get)))
        before.append(decoder.vectors[step + 1, written[-1]])
    return written[1:]


@pytest.mark.parametrize("alpha, top_k", [(0.6, 4), (1.0, 4), (0.0, 4), (0.3, 50), (0.6, 1)])
def test_is_the_plain_search(with_vectors, alpha, top_k):
    """Up to the end, without what is banned; with an alpha of 0 or one candidate it is greedy."""
    inputs = with_vectors.inputs([0, 1, 1])
    got = decoding.generate(
        with_vectors,
        inputs,
        decoding.Contrastive(alpha, top_k),
        start_ids=[1, 2, 3],
        max_new_tokens=STEPS,
        end_id=END,
        banned=[BANNED],
        pad_id=BANNED,
        return_scores=True,
        jit=False,
    )
    for row, (kind, start) in enumerate([(0, 1), (1, 2), (1, 3)]):
        expected = plain(with_vectors, kind, start, alpha, top_k)
        length = len(expected)
        assert got.token_ids[row].tolist() == expected + [BANNED] * (STEPS - length)
        own = with_vectors.log_probs(kind, start, expected)
        np.testing.assert_allclose(got.log_probs[row, :length], own, atol=1e-5)


def test_a_step_function_has_no_vectors(with_vectors):
    with pytest.raises(ValueError, match="StepFunction has none"):
        decoding.generate(
            decoding.StepFunction(with_vectors.step),
            with_vectors.inputs([0]),
            decoding.Contrastive(),
            start_ids=[1],
            max_new_tokens=2,
            jit=False,
        )
