"""What models that read a text for a question share."""

import keras

from kerasattn import layers


class Reader:
    """Of a `BaseModel` with token_ids, the text, and query_ids, the question."""

    def _check_inputs(self, inputs):
        checked = super()._check_inputs(inputs)
        missing = [name for name in checked if name.endswith("_ids") and checked[name] is None]
        if missing:
            raise ValueError(f"{self.name} needs {' and '.join(missing)} beside token_ids.")
        return checked


def reader_inputs(pad_id, more=()):
    """The inputs of a text and a question by name, and where their words are real.

    Args:
        pad_id: int.
        more: names of further inputs, ids of (batch, length, characters).

    Returns:
        dict by name; bool (batch, length) and (batch, query).
    """
    inputs = {
        name: keras.Input((None,), dtype="int32", name=name) for name in ("token_ids", "query_ids")
    }
    for name in more:
        inputs[name] = keras.Input((None, None), dtype="int32", name=name)
    real = []
    for ids, mask in (("token_ids", "padding_mask"), ("query_ids", "query_padding_mask")):
        inputs[mask] = keras.Input((None,), dtype="bool", name=mask, optional=True)
        padding = layers.PaddingMask(pad_id, name=mask.replace("_mask", ""))
        real.append(padding(inputs[ids], inputs[mask]))
    return inputs, *real
