"""The loss of a CRF from the scores of tags and transitions, without a number for each pair.

Where the transitions are one matrix, the sums over all paths are products of it with rows of
probabilities, scaled at each step: a fraction of the work of `ops.crf_sums` on potentials. Where
scores lie so far apart that float32 would lose a path that counts, which is seen by what forward
and backward probabilities have in common, `ops.crf_sums` does it.
"""

import dataclasses
from typing import Any

from keras import ops

from kerasattn.ops import crf_sums

REACH = 30.0  # how far above the true tag another one is kept apart from overflowing, in nats
LEAST = 1e-16  # what forward and backward must have in common: far above what float32 drops


@dataclasses.dataclass
class Chain:
    """What potentials were made of: see `crf_sums.potentials_of`."""

    scores: Any  # (batch, length, num_tags)
    transitions: Any  # (num_tags, num_tags)
    padding_mask: Any  # (batch, length)
    is_first: Any  # (batch, length)

    def potentials(self):
        """The log-potentials."""
        return crf_sums.potentials_of(
            self.scores, self.transitions, self.padding_mask, self.is_first
        )


def negative_log_likelihood(chain, previous, tags):
    """-log of the probability of the paths through `tags`: float32 (batch,).

    Args:
        chain: `Chain`.
        previous, tags: int32 (batch, length), the tag of each step and of the real one before it;
            in range at padding too.
    """

    @ops.custom_gradient
    def loss(scores, transitions):
        own = dataclasses.replace(chain, scores=scores, transitions=transitions)
        path = Path(own, previous, tags)
        sums = Sums(own, path)
        value = ops.cond(sums.exact, sums.value, lambda: _value_in_logs(own, path))

        def gradient(*args, upstream=None):
            (upstream,) = args if upstream is None else (upstream,)
            by_scores, by_transitions = ops.cond(
                sums.exact, lambda: sums.counts(upstream), lambda: _counts_in_logs(own, upstream)
            )
            true_tags, true_pairs = path.counts(upstream)
            return by_scores - true_tags, by_transitions - true_pairs

        return value, gradient

    return loss(chain.scores, chain.transitions)


class Path:
    """The true path: its scores, and what it counts of each tag and pair."""

    def __init__(self, chain, previous, tags):
        self.chain, self.previous, self.tags = chain, previous, tags
        self.is_inner = chain.padding_mask & ~chain.is_first  # reached by a transition
        self.pair = previous * chain.scores.shape[-1] + tags
        self.scores = ops.take_along_axis(chain.scores, tags[..., None], axis=-1)[..., 0]

    def of_pairs(self, table, otherwise):
        """The table's number of each step's transition, (batch, length)."""
        return ops.where(self.is_inner, ops.take(ops.reshape(table, (-1,)), self.pair), otherwise)

    def counts(self, weights):
        """Weights (batch,) at the path's tags (batch, length, num_tags), and at its pairs."""
        num_tags = self.chain.scores.shape[-1]
        places = ops.arange(num_tags)
        weights = ops.where(self.chain.padding_mask, weights[:, None], 0.0)[..., None]
        now = ops.where(ops.equal(self.tags[..., None], places), weights, 0.0)
        came = ops.equal(self.previous[..., None], places) & self.is_inner[..., None]
        flat = lambda x: ops.reshape(ops.cast(x, "float32"), (-1, num_tags))
        return now, ops.matmul(ops.transpose(flat(came)), flat(now))


class Sums:
    """Forward and backward probabilities of a chain, scaled at each step.

    Attributes:
        exact: bool scalar, whether float32 has dropped nothing that counts.
    """

    def __init__(self, chain, path):
        self.path = path
        scores = chain.scores
        # Relative to the true tag, so that a small loss is not the difference of large numbers.
        highest = ops.max(scores, axis=-1)
        self.base = ops.minimum(ops.maximum(path.scores, highest - REACH), highest)
        self.top = ops.max(chain.transitions)
        self.table = ops.exp(chain.transitions - self.top)  # (from, to), at most 1
        self.real, self.inner = (
            ops.transpose(x)[..., None] for x in (chain.padding_mask, path.is_inner)
        )  # (length, batch, 1)
        tags = ops.transpose(ops.exp(scores - self.base[..., None]), (1, 0, 2))
        self.before, after = self._both_ways(tags)
        # The first step has no transition: ones in the place of its sums.
        self.forward = ops.where(self.inner, ops.matmul(self.before, self.table), 1.0) * tags
        self.behind = tags * after
        self.joint = self.forward * after  # (length, batch, num_tags)
        self.total = ops.sum(self.joint, axis=-1, keepdims=True)
        # False for NaN as well.
        self.exact = ops.all((self.total >= LEAST) | ~self.real)

    def _both_ways(self, tags):
        """What is before each step, and what comes after it: each (length, batch, num_tags).

        One loop goes through the steps from both ends at once, with twice the rows.
        """
        num_tags, batch = tags.shape[-1], ops.shape(tags)[1]
        masks = [ops.cast(x, "float32") for x in (self.real, self.inner)]
        steps = ops.concatenate([tags, *masks], axis=-1)
        steps = ops.concatenate([steps, ops.flip(steps, axis=0)], axis=1)
        ahead = (ops.arange(2 * batch) < batch)[:, None]
        table = ops.concatenate([self.table, ops.transpose(self.table)], axis=1)

        def advance(rows, step):
            tags, real, inner = step[:, :num_tags], step[:, -2:-1], step[:, -1:]
            sums = ops.matmul(ops.where(ahead, rows, rows * tags), table)
            new = ops.where(ahead, sums[:, :num_tags], sums[:, num_tags:])
            new = ops.where(inner > 0, new, 1.0)
            new = ops.where(ahead, new * tags, new)
            new = new / ops.maximum(ops.sum(new, axis=-1, keepdims=True), 1e-37)
            new = ops.where(real > 0, new, rows)
            return new, new

        first = ops.ones_like(steps[0, :, :num_tags]) / num_tags
        _, rows = ops.scan(advance, first, steps)
        rows = ops.concatenate([first[None], rows[:-1]], axis=0)
        return rows[:, :batch], ops.flip(rows[:, batch:], axis=0)

    def value(self):
        """The loss (batch,)."""
        growth = ops.transpose(ops.sum(self.forward, axis=-1))
        expected = self.path.of_pairs(self.table, 1.0)
        tiny = expected < 1e-13  # its logarithm is known better
        beyond = ops.log(growth / ops.where(tiny, 1.0, expected))
        score = self.path.of_pairs(self.path.chain.transitions, self.top) - self.top
        beyond = beyond - ops.where(tiny, score, 0.0) + (self.base - self.path.scores)
        return ops.sum(ops.where(self.path.chain.padding_mask, beyond, 0.0), axis=1)

    def counts(self, weights):
        """What is expected of each tag (batch, length, num_tags) and each pair, weighted."""
        share = ops.where(self.real, weights[:, None] / self.total, 0.0)
        flat = lambda x: ops.reshape(x, (-1, x.shape[-1]))
        came = flat(self.before * ops.where(self.inner, share, 0.0))
        pairs = self.table * ops.matmul(ops.transpose(came), flat(self.behind))
        return ops.transpose(self.joint * share, (1, 0, 2)), pairs


def _value_in_logs(chain, path):
    scores = path.scores + path.of_pairs(chain.transitions, 0.0)
    scores = ops.where(chain.padding_mask, scores, 0.0)
    return crf_sums.growth_beyond(chain.potentials(), scores)[0]


def _counts_in_logs(chain, weights):
    potentials = chain.potentials()
    _, alphas = crf_sums.forward(potentials)
    pairs, _ = crf_sums.backward(potentials, alphas)
    real = ops.where(chain.padding_mask, weights[:, None], 0.0)
    pairs = ops.transpose(pairs, (1, 0, 2, 3)) * crf_sums.matrices(real)
    inner = ops.where(crf_sums.matrices(chain.is_first), 0.0, pairs)
    return ops.sum(pairs, axis=2), ops.sum(inner, axis=(0, 1))
