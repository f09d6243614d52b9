"""What every model of the zoo shares."""

import functools
import types
import warnings

import keras
import numpy as np
from keras import ops

from kerasattn.models import changes
from kerasattn.models.pretrained import Pretrained


@keras.saving.register_keras_serializable(package="kerasattn")
class BaseModel(Pretrained, keras.Model):
    """A functional model with named inputs, of which all but the first are optional.

    A subclass makes its layers in the constructor, runs them once over `keras.Input`s, calls
    `super().__init__(inputs, outputs)` with dicts, and then sets

        self._config: dict of the constructor's arguments, `name` and `dtype` among them;
        self._id_ranges: dict from an input's name to the number of ids that it may hold;
        self._hidden: list of the symbolic tensors that `hidden_states` returns.

    Without `_config` it is saved as any functional model, which serves for parts of models.
    Inputs are a dict, or a lone tensor which is taken as the first input. Keys left out are None.

    Ids in numpy arrays and lists are checked wherever they are given: in calls, `fit`, `evaluate`,
    `predict` and their `..._on_batch`. Those of tensors and of datasets are not, since a compiled
    step cannot refuse them and reads garbage: `data.bucketed_batches(vocabulary_size=...)` checks
    its own.

    Raises:
        ValueError: for unknown keys, ids that are not integers, out of range or of another rank; of
            recurrent models for rows without a token.
    """

    _config = None
    _id_ranges = {}
    _hidden = ()
    _xla_on_cpu = True  # whether jit_compile="auto" is XLA there
    _recurrent = False  # whether it reads step by step, so that there must be a first one

    def _keep(self, config, policy, hidden, **parts):
        """Sets the above, and what models that write ask for besides.

        Args:
            config: dict of the constructor's arguments.
            policy: the dtype policy.
            hidden: list of what `hidden_states` returns.
            **parts: what the model writes with, see `LanguageModel` and `EncoderDecoder`. In a
                namespace Keras does not look for layers.
        """
        self._config = {**config, "dtype": policy.name}
        ids = [name for name in self._inputs_struct if name.endswith("token_ids")]
        self._id_ranges = dict.fromkeys(ids, config["vocabulary_size"])
        self._hidden = hidden
        self._parts = types.SimpleNamespace(**parts)
        self.vocabulary_size, self.pad_id = config["vocabulary_size"], config["pad_id"]
        self.start_id, self.end_id = config["start_id"], config["end_id"]

    def __call__(self, inputs, *args, **kwargs):
        return super().__call__(self._check_inputs(inputs), *args, **kwargs)

    def call(self, inputs, training=None, **kwargs):
        # JAX's train and predict steps come here directly, past `__call__`. Keras passes `training`
        # on only if the signature has that name.
        return super().call(self._check_inputs(inputs), training=training, **kwargs)

    def _check_inputs(self, inputs):
        """Wraps a lone tensor, fills in None for what was left out, refuses what cannot be read."""
        expected = self._inputs_struct
        if not isinstance(inputs, dict):
            inputs = {next(iter(expected)): inputs}
        unknown = sorted(set(inputs) - set(expected))
        if unknown:
            raise ValueError(f"{self.name} has the inputs {list(expected)}, got also {unknown}.")
        first = next(iter(expected))
        if inputs.get(first) is None:
            raise ValueError(f"{self.name} needs {first}, got {sorted(inputs)} without.")
        checked = {}
        for key, spec in expected.items():
            value = inputs.get(key)
            if value is not None and not hasattr(value, "dtype"):
                value = as_numpy(value)
            if value is not None:
                _check_input(key, value, spec, self._id_ranges.get(key))
                if self._recurrent and 0 in tuple(value.shape)[1:]:
                    raise ValueError(
                        f"{self.name} reads step by step: {key} takes at least one step, got the "
                        f"shape {_shape(value.shape)}."
                    )
            checked[key] = value
        if any(map(ops.is_tensor, checked.values())):  # Keras takes no mixture with arrays
            for key, value in checked.items():
                if isinstance(value, np.ndarray):
                    checked[key] = ops.convert_to_tensor(value)
        return checked

    # === Training on arrays, whose ids are tensors once Keras has them ===
    def fit(self, x=None, y=None, *args, **kwargs):
        """As `keras.Model.fit`; ids of arrays and lists are checked first."""
        validation = kwargs.get("validation_data")
        if isinstance(validation, (list, tuple)):
            kwargs["validation_data"] = (self._arrays(*validation[:2]), *validation[1:])
        return super().fit(self._arrays(x, y), y, *args, **kwargs)

    def evaluate(self, x=None, y=None, *args, **kwargs):
        """As `keras.Model.evaluate`; ids of arrays and lists are checked first."""
        return super().evaluate(self._arrays(x, y), y, *args, **kwargs)

    def predict(self, x, *args, **kwargs):
        """As `keras.Model.predict`; ids of arrays and lists are checked first."""
        return super().predict(self._arrays(x), *args, **kwargs)

    def train_on_batch(self, x, y=None, *args, **kwargs):
        """As `keras.Model.train_on_batch`; ids of arrays and lists are checked first."""
        return super().train_on_batch(self._arrays(x, y), y, *args, **kwargs)

    def test_on_batch(self, x, y=None, *args, **kwargs):
        """As `keras.Model.test_on_batch`; ids of arrays and lists are checked first."""
        return super().test_on_batch(self._arrays(x, y), y, *args, **kwargs)

    def predict_on_batch(self, x):
        """As `keras.Model.predict_on_batch`; ids of arrays and lists are checked first."""
        return super().predict_on_batch(self._arrays(x))

    def _arrays(self, x, y=None):
        """Refuses arrays that cannot be read, and makes arrays of lists; leaves all else as is."""
        if y is not None and self._compile_loss is None:
            self._check_labels(x, y)
        parts = x if isinstance(x, dict) else {next(iter(self._inputs_struct)): x}
        kinds = (np.ndarray, list, tuple, str)
        if x is not None and not any(isinstance(part, kinds) for part in parts.values()):
            return x
        checked = self._check_inputs(parts)
        read = {name: checked[name] for name in parts}
        return read if isinstance(x, dict) else next(iter(read.values()))

    def _trained(self):
        """The names of the outputs that labels tell."""
        outputs = self.output if isinstance(self.output, dict) else {}
        return [name for name in outputs if name.endswith("_logits")]

    def _check_labels(self, x, y):
        """Refuses labels in arrays and lists that no class has: a compiled step learns NaN."""
        names = self._trained()
        parts = y if isinstance(y, dict) else {names[0]: y} if len(names) == 1 else {}
        for name, labels in parts.items():
            if name not in names or not isinstance(labels, (np.ndarray, list, tuple)):
                continue
            labels, shape = as_numpy(labels), self.output[name].shape
            if labels.dtype.kind not in "biufV":
                raise ValueError(f"Labels of {name} are numbers, got {labels.dtype}.")
            if labels.ndim == len(shape) - 1 and shape[-1] not in (None, 1):
                check_range(f"y of {name}", labels[labels != -100], shape[-1])

    def compute_output_spec(self, inputs, training=None, **kwargs):
        # A functional model's own looks at the shape of every input, also of those left out.
        return keras.Operation.compute_output_spec(self, inputs, training=training)

    def compile(
        self,
        optimizer="adam",
        loss=None,
        loss_weights=None,
        metrics=None,
        weighted_metrics=None,
        *args,
        jit_compile="auto",
        **kwargs,
    ):
        """As `keras.Model.compile`; `jit_compile="auto"` is XLA on one device, a CPU included.

        XLA compiles the first step of each shape, which takes a good part of a minute on a CPU:
        `jit_compile=False` is for a few steps. A model with logits knows its loss, `compute_loss`
        says of which labels. Metrics, and a loss of one's own, are a dict by the outputs' names;
        where one output is trained, theirs alone do.
        """
        loss, metrics = self._by_output("loss", loss), self._by_output("metrics", metrics)
        weighted_metrics = self._by_output("weighted_metrics", weighted_metrics)
        self._auto_jit_compile = jit_compile == "auto"
        if jit_compile == "auto" and keras.backend.backend() == "tensorflow":
            # Keras resolves "auto" to off on a CPU; under tf.distribute XLA fails.
            one_device = self.distribute_strategy.num_replicas_in_sync == 1
            jit_compile = self._xla_on_cpu and one_device
        self._compile_loss = self._compile_metrics = None  # those of before, which Keras would keep
        given = loss, loss_weights, metrics, weighted_metrics, *args
        super().compile(optimizer, *given, jit_compile=jit_compile, **kwargs)
        if keras.backend.backend() == "tensorflow" and not self.optimizer.built:
            # A step that makes these variables itself is traced twice, which takes twice the time.
            with self.distribute_strategy.scope():
                self.optimizer.build(self.trainable_variables)

    def _by_output(self, what, given):
        """What is given for the one output that there is to train, under its name."""
        if given is None or isinstance(given, dict) or not isinstance(self.output, dict):
            return given
        trained = self._trained() or list(self.output)
        if len(trained) != 1:
            raise ValueError(
                f"{self.name} has the outputs {list(self.output)}: give {what} as a dict by their "
                f"names, got {given!r}."
            )
        if isinstance(given, str) and "crossentropy" in given and trained[0].endswith("_logits"):
            raise ValueError(
                f"{trained[0]} are logits, and {what}={given!r} takes probabilities. Leave it out: "
                f"{self.name} knows its loss. Or give an object with from_logits=True."
            )
        return {trained[0]: given}

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The loss that `compile` was given."""
        return super().compute_loss(x, *self._labelled(y, y_pred), sample_weight, training)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Those that `compile` was given."""
        return super().compute_metrics(x, *self._labelled(y, y_pred), sample_weight)

    def _labelled(self, y, y_pred):
        """Labels and the outputs that they are of, both by name: Keras expects no others."""
        trained = self._trained()
        if not isinstance(y_pred, dict) or y is None or isinstance(y, (list, tuple)):
            return y, y_pred
        if not isinstance(y, dict) and len(trained) == 1:
            y = {trained[0]: y}
        if not isinstance(y, dict) or not y.keys() <= y_pred.keys():
            return y, y_pred
        return y, {name: y_pred[name] for name in y}

    def get_compile_config(self):
        # What was asked for, not what it came to here: the file may be loaded elsewhere.
        config = super().get_compile_config()
        return {**config, "jit_compile": "auto"} if config and self._auto_jit_compile else config

    def compile_from_config(self, config):
        """Compiles a loaded model as it was, so that its training goes on."""
        # Keras leaves that to classes that have a compile() of their own.
        self.compile(**keras.saving.deserialize_keras_object(config))
        if not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)

    def hidden_states(self, inputs):
        """The embedding output, then every layer's output: a list of (batch, length, hidden)."""
        return self._hidden_model(self._check_inputs(inputs), training=False)

    @functools.cached_property  # past Keras' tracking, which would look for layers inside
    def _hidden_model(self):
        return keras.Model(self._inputs_struct, list(self._hidden))

    def quantize(self, mode=None, config=None, **options):
        """As `keras.Model.quantize`; the dense layers alone, without a warning for all others."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".* does not have a `quantize` method")
            super().quantize(mode, config, **options)

    def get_config(self):
        if self._config is None:
            return super().get_config()
        changed = changes.describe(self)
        return {**self._config, "changes": changed} if changed else dict(self._config)

    @classmethod
    def from_config(cls, config, custom_objects=None):
        if "layers" in config:
            return super().from_config(config, custom_objects)
        config = dict(config)
        changed = config.pop("changes", {})
        model = cls(**keras.saving.deserialize_keras_object(config))
        changes.repeat(model, changed)
        return model


def _check_input(key, value, spec, num_ids):
    if isinstance(value, np.ndarray) and value.dtype.kind not in "biufV":  # V: bfloat16
        raise ValueError(
            f"{key} takes numbers, got {value.dtype}. Strings become ids by `tokenizer.encode`."
        )
    dtype = keras.backend.standardize_dtype(value.dtype)
    wants = keras.backend.standardize_dtype(spec.dtype)
    if "int" in wants and not ("int" in dtype or dtype == "bool"):
        raise ValueError(f"{key} takes integers, got the dtype {dtype}.")
    if len(value.shape) != len(spec.shape):
        raise ValueError(
            f"{key} takes the shape {_shape(spec.shape)}, got {_shape(value.shape)} of rank "
            f"{len(value.shape)}."
        )
    if num_ids is not None and isinstance(value, np.ndarray) and value.size:
        check_range(key, value, num_ids)


def check_range(key, ids, num_ids):
    """Refuses ids outside [0, num_ids): a compiled model would read garbage for them."""
    ids = np.asarray(ids)
    low, high = ids.min(initial=0), ids.max(initial=0)
    if low < 0 or high >= num_ids:
        raise ValueError(
            f"{key} takes ids from 0 to {num_ids - 1}, got {low if low < 0 else high}."
        )


def _shape(shape):
    return "(" + ", ".join("None" if n is None else str(n) for n in shape) + ")"


def as_numpy(x):
    """A numpy array of a list, an array or a tensor.

    Raises:
        ValueError: for a list that is none, as rows of several lengths.
    """
    if isinstance(x, np.ndarray):
        return x
    try:
        return np.asarray(ops.convert_to_numpy(x))
    except ValueError as error:
        raise ValueError(
            f"Expected an array, or a list whose rows are of one length, padded: {error}"
        ) from None
