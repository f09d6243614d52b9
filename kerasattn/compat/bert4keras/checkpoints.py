"""Weights of bert4keras' models from the checkpoints that they were published in, and back."""

import logging
import pathlib
import types

import keras
import numpy as np

from kerasattn.compat.bert4keras.checks import check_below, ids_and_weights
from kerasattn.compat.bert4keras.resizing import resize_for
from kerasattn.weights import Rule, Source, Table, TensorFlowSource, Transform, load_weights
from kerasattn.weights.tables.bert import OPTIMIZER

# What no model has a place for; ELECTRA's generator too.
IGNORED = Table((), ignored=(*OPTIMIZER, "*_slot_*", "*/adafactor_*", "generator*"))


class Checkpoints:
    """Gives a model of bert4keras the reading and writing of its weights.

    A family says by `variable_mapping` which tensors its layers hold; by `load_variable` how a
    tensor differs in the file.
    """

    embedding_names = ()  # of tensors with a row for each token

    def variable_mapping(self):
        """The names of tensors by the name of the layer, in the order of the layer's weights."""
        return {}

    def load_variable(self, checkpoint, name):
        """One tensor as the model holds it.

        Args:
            checkpoint: `Source`, or a dict of arrays.
            name: str.
        """
        value = checkpoint[name] if isinstance(checkpoint, dict) else checkpoint.read(name)
        if name in self.embedding_names:
            return self.load_embeddings(value)
        return value.T if is_transposed(name) else value

    def load_embeddings(self, embeddings):
        """The rows of the tokens that are kept, and then those of compound tokens.

        Args:
            embeddings: (vocabulary, ...), one row a token.

        Raises:
            ValueError: for ids that the checkpoint does not have.
        """
        if self.keep_tokens is not None:
            check_below("keep_tokens", self.keep_tokens, len(embeddings))
            embeddings = embeddings[np.asarray(self.keep_tokens)]
        if not self.compound_tokens:
            return embeddings
        made = []
        for item in self.compound_tokens:
            ids, weights = ids_and_weights(item)
            check_below("compound_tokens", ids, len(embeddings))
            made.append(np.average(embeddings[np.asarray(ids)].astype("float32"), 0, weights))
        return np.concatenate([embeddings, np.asarray(made, embeddings.dtype)])

    def load_weights_from_checkpoint(self, checkpoint, mapping=None):
        """Loads the weights of all layers that the mapping names.

        A warning names what else is in the checkpoint, but for heads and stacks that the model was
        not asked for; with a mapping of your own there is none.

        Args:
            checkpoint: path of a TensorFlow checkpoint, such as "bert_model.ckpt"; or a dict of
                arrays by name.
            mapping: as of `variable_mapping`, which it is by default.

        Raises:
            ValueError: listing tensors that are missing or of another shape; see
                `ignore_invalid_weights` and `autoresize_weights`.
        """
        rules, variables = [], []
        for layer, names in self._mapped(mapping):
            for i, (variable, name) in enumerate(zip(layer.trainable_weights, names)):
                transform = "identity"
                if self.autoresize_weights:
                    transform = Transform(load=resize_for(layer, variable, i), save=None)
                rules.append(Rule(variable.path, name, transform))
                variables.append(variable)
        if isinstance(checkpoint, dict):
            given = _Arrays(checkpoint)
        else:
            given = TensorFlowSource(str(checkpoint).removesuffix(".index"))
        with given as source:
            report = load_weights(
                types.SimpleNamespace(weights=variables),
                Table(tuple(rules), ignored=("*",)),  # what is left is no error
                _Read(source, self.load_variable),
                fresh=("*",) if self.ignore_invalid_weights else (),
                remedy="ignore_invalid_weights=True to leave out what the file lacks, "
                "autoresize_weights=True to resize what has another shape",
            )
            if mapping is None:
                known = {rule.theirs for rule in rules} | self._left_out()
                unused = (name for name in source.names if name not in known)
                report.unused += sorted(name for name in unused if not IGNORED.ignores(name))
        if report.fresh or report.unused:
            logging.getLogger(__name__).warning("%s", report)

    def save_weights_as_checkpoint(self, filename, mapping=None, dtype=None):
        """Writes the weights as a TensorFlow checkpoint, under the names of the mapping.

        Args:
            filename: path of the checkpoint, such as "bert_model.ckpt".
            mapping: as of `variable_mapping`, which it is by default.
            dtype: of the tensors, by default that of the weights.

        Raises:
            ValueError: if layers that share a name in the file have come to differ, or the folder
                is not there.
        """
        import tensorflow as tf

        folder = pathlib.Path(filename).parent
        if not folder.is_dir():
            raise ValueError(f"There is no folder {folder} for the checkpoint.")
        tensors = {}
        for layer, names in self._mapped(mapping):
            for variable, name in zip(layer.trainable_weights, names):
                value = keras.ops.convert_to_numpy(variable)
                value = (value.T if is_transposed(name) else value).astype(dtype or value.dtype)
                if not np.array_equal(tensors.setdefault(name, value), value):
                    raise ValueError(
                        f"Several layers share the tensor {name} in {filename}, but have different "
                        f"weights by now, {variable.path} among them. Use model.save_weights()."
                    )
        tf.raw_ops.SaveV2(
            prefix=str(filename),
            tensor_names=list(tensors),
            shape_and_slices=[""] * len(tensors),
            tensors=list(map(tf.constant, tensors.values())),
        )

    def _left_out(self):
        """The names of the tensors of heads and of stacks that the model does not have."""
        return {
            name
            for layer, names in self.variable_mapping().items()
            # Of embeddings a family has all that it can use.
            if self.prefixed(layer) not in self.layers and not layer.startswith("Embedding-")
            for name in names
        }

    def _mapped(self, mapping):
        """Pairs of a layer that the model has, and the names of its tensors."""
        mapping = mapping or self.variable_mapping()
        for name, names in mapping.items():
            if self.prefixed(name) in self.layers:
                yield self.layers[self.prefixed(name)], names


def is_transposed(name):
    """Whether a checkpoint holds a tensor the other way round."""
    return name == "cls/seq_relationship/output_weights" or "relative_attention_bias" in name


class _Arrays(Source):
    """Arrays in memory."""

    def __init__(self, arrays):
        super().__init__("memory")
        self.arrays = arrays

    @property
    def names(self):
        return self.arrays.keys()

    def shape(self, name):
        return tuple(np.shape(self.arrays[name]))

    def read(self, name):
        return np.asarray(self.arrays[name])


class _Read(Source):
    """A checkpoint whose tensors pass a model's `load_variable`."""

    def __init__(self, source, load_variable):
        super().__init__(source.path)
        self.source, self.load_variable = source, load_variable

    @property
    def names(self):
        return self.source.names

    def shape(self, name):
        return np.shape(self.load_variable(_Shapes(self.source), name))

    def read(self, name):
        return self.load_variable(self.source, name)


class _Shapes(Source):
    """The shapes of a checkpoint's tensors, as arrays that take no memory and no reading."""

    def __init__(self, source):
        super().__init__(source.path)
        self.source = source

    def read(self, name):
        return np.broadcast_to(np.zeros((), "float32"), self.source.shape(name))
