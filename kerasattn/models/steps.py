"""The steps of `kerasattn.decoding` that models make of one of their own."""

from keras import ops

from kerasattn.ops.prepared import preparing


class Steps:
    """`step` and `attention_step`, of a model with `hidden_step`."""

    def prepared(self):
        """A context in which the layers' weights lie as a loop of steps reads them fastest."""
        return preparing(self._flatten_layers())

    def step(self, token_ids, index, state):
        """Feeds one token a row: (logits (batch, vocabulary_size), the state after it)."""
        logits, _, state = self.hidden_step(token_ids, index, state)
        return logits, state

    def attention_step(self, token_ids, index, state):
        """As `step`, with where each head looked in the logits' place.

        Weights are float32 (batch, layers, heads, keys), in a dict by the name of the attention.
        """
        attention = {}
        _, _, state = self.hidden_step(token_ids, index, state, attention)
        return {name: ops.stack(weights, axis=1) for name, weights in attention.items()}, state


def keep_weights(attention, name, weights):
    """Adds a block's weights (batch, heads, 1, keys) to those of the blocks before it."""
    attention.setdefault(name, []).append(weights[:, :, 0])
