"""Small decoders whose every probability is known."""

import keras
import numpy as np
import pytest
from keras import ops

from kerasattn import decoding


class Markov(decoding.Decoder):
    """Each token depends on the one before, on the step, and on a number of the row's own."""

    def __init__(self, tables):
        self.tables = np.asarray(tables, "float32")  # (kinds, steps, vocabulary, vocabulary)
        self.vocabulary_size = self.tables.shape[-1]

    def step(self, token_ids, index, state):
        index = ops.minimum(index, self.tables.shape[1] - 1)
        tables = ops.take(ops.convert_to_tensor(self.tables), index, axis=1)
        rows = state["kind"] * self.vocabulary_size + token_ids
        logits = ops.take(ops.reshape(tables, (-1, self.vocabulary_size)), rows, axis=0)
        # The count shows a state that was reordered wrongly: it must be the step in every beam.
        wrong = ops.not_equal(state["count"], index)[:, None]
        count = ops.minimum(state["count"] + 1, self.tables.shape[1] - 1)
        return ops.where(wrong, -logits, logits), {**state, "count": count}

    def log_probs(self, kind, start, token_ids):
        """Log-probability of each of the tokens, in float64: for scores from scratch."""
        tables = self.tables.astype("float64")
        result, previous = [], start
        for step, token in enumerate(token_ids):
            logits = tables[kind, min(step, tables.shape[1] - 1), previous]
            result.append(logits[token] - np.log(np.sum(np.exp(logits))))
            previous = token
        return np.array(result)

    @classmethod
    def random(cls, seed, vocabulary=3, steps=4, kinds=1, scale=2.0):
        shape = (kinds, steps, vocabulary, vocabulary)
        return cls(scale * np.random.default_rng(seed).normal(size=shape))

    @staticmethod
    def inputs(kinds):
        return {"kind": np.asarray(kinds, "int32"), "count": np.zeros(len(kinds), "int32")}


class Summing(decoding.Decoder):
    """Logits from the sum of all embeddings so far: from a cache, or summed anew at each step."""

    def __init__(self, vocabulary_size, dim, cached, dtype="float32"):
        rng = np.random.default_rng(5)
        self.vocabulary_size, self.cached, self.dtype = vocabulary_size, cached, dtype
        self.table = keras.Variable(rng.normal(size=(vocabulary_size, dim)), dtype=dtype)
        self.variables = [self.table]

    def initial_state(self, inputs, max_new_tokens):
        start = ops.cast(inputs, self.dtype)  # (batch, dim)
        if self.cached:
            return [start]
        return (ops.repeat(start[:, None] * 0, max_new_tokens, axis=1), start)

    def step(self, token_ids, index, state):
        new = ops.take(self.table, token_ids, axis=0)
        if self.cached:
            total = state[0] + new
            state = [total]
        else:
            history, start = state  # (batch, steps, dim)
            here = ops.equal(np.arange(history.shape[1]), index)[None, :, None]
            history = ops.where(here, new[:, None], history)
            total = start + ops.sum(history, axis=1)
            state = (history, start)
        return ops.matmul(ops.tanh(total), ops.transpose(self.table)), state


@pytest.fixture(scope="session")
def markov():
    return Markov


@pytest.fixture(scope="session")
def summing():
    return Summing
