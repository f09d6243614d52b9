"""ELMo's published files, `*options.json` and `*weights.hdf5`: those of bilm-tf and AllenNLP."""

import numpy as np

from kerasattn.weights.formats import Format
from kerasattn.weights.hdf5_files import HDF5Source
from kerasattn.weights.rules import Rule, Table, Transform

LSTM = "RNN_{direction}/RNN/MultiRNNCell/Cell{{i}}/LSTMCell/"
JOINED = ("_transform", "_carry")


class ELMoSource(HDF5Source):
    """The file, in which the two halves of a highway layer are one: "W_transform+W_carry"."""

    def __init__(self, path):
        super().__init__(path)
        first, second = JOINED
        pairs = {name: name.replace(first, second) for name in self.datasets if first in name}
        self.pairs = {
            f"{one}+{other.rpartition('/')[2]}": (one, other)
            for one, other in pairs.items()
            if other in self.datasets and self._fit(one, other)
        }

    def _fit(self, one, other):
        return len(super().shape(one)) and super().shape(one) == super().shape(other)

    @property
    def names(self):
        hidden = {name for pair in self.pairs.values() for name in pair}
        return {*self.pairs, *(super().names - hidden)}

    def shape(self, name):
        if name not in self.pairs:
            return super().shape(name)
        *rest, width = super().shape(self.pairs[name][0])
        return (*rest, 2 * width)

    def read(self, name):
        if name not in self.pairs:
            return super().read(name)
        return np.concatenate([super(ELMoSource, self).read(n) for n in self.pairs[name]], axis=-1)


# === The LSTMs ===
def _gates(array):
    """From TensorFlow's input, candidate, forget, output to Keras' order, and back."""
    enter, candidate, forget, leave = np.split(array, 4, axis=-1)
    return np.concatenate([enter, forget, candidate, leave], axis=-1)


def _forget(array, more):
    """The bias of the forget gate changed: TensorFlow adds 1 to it in every step."""
    array = array.copy()
    width = len(array) // 4
    array[width : 2 * width] += np.asarray(more, array.dtype)
    return array


def _rows(i):
    """The upper half is what the input is multiplied by, the lower half what the state is."""
    return Transform(
        load=lambda array: _gates(np.split(array, 2, axis=0)[i]), save=_gates, part=i, axis=0
    )


def _lstm(ours, direction):
    theirs = LSTM.format(direction=direction)
    bias = Transform(
        load=lambda array: _forget(_gates(array), 1), save=lambda array: _gates(_forget(array, -1))
    )
    return (
        Rule(f"{ours}/cell/kernel", theirs + "W_0", _rows(0)),
        Rule(f"{ours}/cell/recurrent_kernel", theirs + "W_0", _rows(1)),
        Rule(f"{ours}/cell/bias", theirs + "B", bias),
        Rule(f"{ours}/cell/projection_kernel", theirs + "W_P_0"),
    )


# Ids are one more than the file's rows: 0 is padding.
SHIFTED = Transform(
    load=lambda array: np.pad(array, ((1, 0), (0, 0))), save=lambda array: array[1:]
)
TABLE = Table(
    (
        Rule("characters/embedding/embeddings", "char_embed", SHIFTED),
        Rule("characters/kernel_{i}", "CNN/W_cnn_{i}", "squeeze"),
        Rule("characters/bias_{i}", "CNN/b_cnn_{i}"),
        Rule("highway_{i}/dense/kernel", "CNN_high_{i}/W_transform+W_carry"),
        Rule("highway_{i}/dense/bias", "CNN_high_{i}/b_transform+b_carry"),
        Rule("projection/kernel", "CNN_proj/W_proj"),
        Rule("projection/bias", "CNN_proj/b_proj"),
        *_lstm("forward_{i}", 0),
        *_lstm("backward_{i}", 1),
    )
)


# === Sizes ===
def arguments(options, folder):
    """Constructor arguments from `options.json`."""
    characters, lstm = options["char_cnn"], options["lstm"]
    if characters.get("n_characters", 262) != 262:
        raise ValueError(
            f"n_characters must be 262, got {characters['n_characters']!r}; bilm-tf says 261 in "
            "training, and 262 of the files that it writes"
        )
    if not options.get("bidirectional", True):
        raise ValueError("bidirectional must be true: ELMo reads both ways")
    return {
        "max_characters": characters.get("max_characters_per_token", 50),
        "character_dim": characters["embedding"]["dim"],
        "filters": characters["filters"],
        "activation": characters.get("activation", "relu"),
        "num_highways": characters.get("n_highway") or 0,
        "num_layers": lstm["n_layers"],
        "hidden_dim": lstm["dim"],
        "projection_dim": lstm["projection_dim"],
        "cell_clip": lstm.get("cell_clip"),
        "projection_clip": lstm.get("proj_clip"),
        "skip_connections": bool(lstm.get("use_skip_connections", False)),
    }


def find(folder):
    """The `*weights.hdf5` of a folder, or None.

    Raises:
        ValueError: if there are several.
    """
    paths = sorted(folder.glob("*weights.hdf5"))
    if len(paths) > 1:
        names = ", ".join(path.name for path in paths)
        raise ValueError(f"{folder} has several files of weights ({names}); leave one in it.")
    return paths[0] if paths else None


FORMATS = (
    Format(
        name="AllenNLP ELMo",
        config_file="*options.json",
        find=find,
        source=ELMoSource,
        table=TABLE,
        accepts=lambda options: "char_cnn" in options and "lstm" in options,
        arguments=arguments,
        fresh=("scalar_mix/*", "head/*"),  # of a task, and of training, which the authors left out
    ),
)
