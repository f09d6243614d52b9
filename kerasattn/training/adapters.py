"""Adapters: a few new weights that are trained in the place of all, saved alone, and merged.

    adapters.add_lora(model, rank=8, train=("classifier/*",))
    model.compile("adam")
    model.fit(...)
    adapters.save(model, "adapters.safetensors")
    adapters.merge(model)

They stand in dense layers, so any model of Keras takes them. A compiled one is compiled anew.
"""

import contextlib
import fnmatch
import json
import pathlib

import keras
import safetensors.numpy
from keras import ops

from kerasattn.layers.bottleneck_adapter import BottleneckAdapter
from kerasattn.ops import seeds
from kerasattn.weights import SafetensorsSource
from kerasattn.weights.save import replacing

FORMAT = "kerasattn adapters 1"


def add_lora(model, rank=8, alpha=None, layers=("*/query", "*/value"), train=(), seed=None):
    """Adds products of two narrow matrices to kernels, and freezes all else.

    Keras' own `enable_lora`, on all layers that some patterns name. At first they add nothing.

    Args:
        model: a built `keras.Model`.
        rank: int >= 1, the inner width of the products.
        alpha: float, their scale is alpha / rank; by default alpha = rank.
        layers: shell patterns of the paths of `Dense`, `EinsumDense` and `Embedding` layers. By
            default the queries and values of every attention.
        train: shell patterns of the paths of other variables to be trained, such as those of a new
            head. They are saved with the adapters.
        seed: int or None, of the matrices.

    Raises:
        ValueError: for another rank, patterns that name nothing, or layers that have a LoRA.

    Example:
    >>> from kerasattn.models import BERT
    >>> from kerasattn.training import adapters
    >>> model = BERT(30, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    >>> adapters.add_lora(model, rank=2)
    >>> [variable.path for variable in model.trainable_variables][:1]
    ['block_0/self_attention/query/lora_kernel_a']

    Source: https://arxiv.org/abs/2106.09685, section 4.1.
    """
    if rank < 1:
        raise ValueError(f"rank must be at least 1, got {rank}.")
    able = [layer for layer in model._flatten_layers() if hasattr(layer, "enable_lora")]
    chosen = _choose(able, layers)
    twice = [layer.path for layer in chosen if layer.lora_enabled]
    if twice:
        raise ValueError(f"There is a LoRA already in {', '.join(twice)}: merge it first.")
    with _changing(model, _named(model, train)):
        for layer in chosen:
            _insert_lora(layer, rank, alpha, seed)


def add_bottlenecks(
    model,
    bottleneck_dim=64,
    activation="gelu",
    layers=("*attention/output", "*feed_forward/output"),
    train=(),
    seed=None,
):
    """Puts a `layers.BottleneckAdapter` behind dense layers, and freezes all else.

    Args:
        model: a built `keras.Model`.
        bottleneck_dim, activation: see `layers.BottleneckAdapter`.
        layers: shell patterns of the paths of dense layers without an activation. By default what
            each attention and each feed-forward part ends with.
        train: as `add_lora`.
        seed: int or None, of the adapters.

    Raises:
        ValueError: for patterns that name nothing, or layers that have an adapter or an activation.

    Example:
    >>> from kerasattn.models import BERT
    >>> from kerasattn.training import adapters
    >>> model = BERT(30, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    >>> adapters.add_bottlenecks(model, bottleneck_dim=2)
    >>> len(model.trainable_variables)  # two kernels and two biases in each of two places
    8

    Source: https://arxiv.org/abs/1902.00751, section 2.
    """
    able = [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.Dense)]
    chosen = _choose(able, layers)
    active = [layer.path for layer in chosen if layer.activation is not keras.activations.linear]
    if active:
        raise ValueError(f"An adapter needs layers without an activation, unlike {active}.")
    with _changing(model, _named(model, train)):
        for layer in chosen:
            _insert_bottleneck(layer, bottleneck_dim, activation, seed)


def save(model, path):
    """Writes what is trained, the adapters and no more, as one safetensors file.

    Raises:
        ValueError: for a model without adapters, or a file that cannot be written.

    Example:
    >>> import os, tempfile
    >>> from kerasattn.models import BERT
    >>> from kerasattn.training import adapters
    >>> model = BERT(30, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    >>> adapters.add_lora(model, rank=2)
    >>> path = os.path.join(tempfile.mkdtemp(), "adapters.safetensors")
    >>> adapters.save(model, path)
    >>> os.path.getsize(path) < 2000
    True
    """
    loras = {layer.path: [layer.lora_rank, layer.lora_alpha] for layer in with_lora(model)}
    described = {"lora": loras, "bottlenecks": bottlenecks_of(model)}
    if not any(described.values()):
        raise ValueError(f"{model.name} has no adapters to save: see add_lora, add_bottlenecks.")
    arrays = {v.path: ops.convert_to_numpy(v.value) for v in model.trainable_variables}
    with replacing(pathlib.Path(path)) as temporary:
        metadata = {"format": FORMAT, "adapters": json.dumps(described)}
        safetensors.numpy.save_file(arrays, temporary, metadata)


def load(model, path):
    """Adds the adapters that `save` wrote to a model of the kind that they were trained in.

    Raises:
        ValueError: for another file, a model that has adapters, or one that does not fit, which is
            left as it was.

    Example:
    >>> import os, tempfile
    >>> from kerasattn.models import BERT
    >>> from kerasattn.training import adapters
    >>> sizes = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    >>> model, twin = BERT(30, **sizes), BERT(30, **sizes)
    >>> adapters.add_lora(model, rank=2)
    >>> path = os.path.join(tempfile.mkdtemp(), "adapters.safetensors")
    >>> adapters.save(model, path)
    >>> adapters.load(twin, path)
    >>> len(twin.trainable_variables)
    4
    """
    if with_lora(model) or _with_bottlenecks(model):
        raise ValueError(f"{model.name} has adapters already: merge them first.")
    with (
        SafetensorsSource(path) as source,
        inserting(model, *_described(path, source), train=source.names),
    ):
        _read(model, source)


def _read(model, source):
    """Gives a model's new variables the numbers of a file, if these are all there."""
    known = {variable.path: variable for variable in model.variables}
    missing = [v.path for v in _adapter_variables(model) if v.path not in source]
    wrong = [
        f"{name} {source.shape(name)}"
        for name in sorted(source.names)
        if name not in known or tuple(known[name].shape) != source.shape(name)
    ]
    if missing or wrong:
        raise ValueError(
            f"{source.path} is for another model: {model.name} cannot take {wrong}, and lacks "
            f"{missing}."
        )
    for name in source.names:
        known[name].assign(source.read(name))


def merge(model):
    """Adds the adapters to the kernels: the same outputs, without new weights, trainable as before.

    A LoRA merges always, a bottleneck if it has no activation and the layer before it a bias.

    Raises:
        ValueError: for a model without adapters, or those that cannot be merged; it is left as it
            was.

    Example:
    >>> from kerasattn.models import BERT
    >>> from kerasattn.training import adapters
    >>> model = BERT(30, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    >>> count = len(model.weights)
    >>> adapters.add_lora(model, rank=2)
    >>> adapters.merge(model)
    >>> len(model.weights) == count
    True
    """
    if not (with_lora(model) or _with_bottlenecks(model)):
        raise ValueError(f"{model.name} has no adapters to merge.")
    stuck = [layer.path for layer in _with_bottlenecks(model) if not _is_linear(layer)]
    if stuck:
        raise ValueError(
            f"A bottleneck merges without an activation, into a float kernel and a bias; these do "
            f"not: {', '.join(stuck)}. Save them alone."
        )
    for layer in with_lora(model):
        merged = {}
        layer.save_own_variables(merged)  # Keras saves the sum
        _remove_lora(layer)
        layer.load_own_variables(merged)
    for layer in _with_bottlenecks(model):
        down, up = layer.activation.down, layer.activation.up
        change = ops.matmul(down.kernel, up.kernel)
        more = ops.matmul(down.bias[None], up.kernel)[0] + up.bias
        layer.kernel.assign(layer.kernel + ops.matmul(layer.kernel, change))
        layer.bias.assign(layer.bias + ops.matmul(layer.bias[None], change)[0] + more)
    _remove(model)
    _recompile(model)


# === Which layers ===


def _choose(able, patterns):
    """The layers whose paths some patterns name."""
    patterns = (patterns,) if isinstance(patterns, str) else patterns
    chosen = [layer for layer in able if any(fnmatch.fnmatchcase(layer.path, p) for p in patterns)]
    if not chosen:
        paths = [layer.path for layer in able]
        raise ValueError(f"No layers are named {list(patterns)}. There are {paths}.")
    return chosen


def with_lora(model):
    """The layers that have a LoRA."""
    return [layer for layer in model._flatten_layers() if getattr(layer, "lora_enabled", False)]


def _with_bottlenecks(model):
    return [
        layer
        for layer in model._flatten_layers()
        if isinstance(getattr(layer, "activation", None), BottleneckAdapter)
    ]


def _adapter_variables(model):
    loras = [v for x in with_lora(model) for v in x.variables if v.name.startswith("lora_")]
    return loras + [v for x in _with_bottlenecks(model) for v in x.activation.variables]


def _is_linear(layer):
    plain = layer.bias is not None and not layer.quantization_mode
    return plain and layer.activation.activation is keras.activations.linear


# === What a file says of them ===


def bottlenecks_of(model):
    """The bottlenecks as `inserting` takes them."""
    found = {layer.path: layer.activation.get_config() for layer in _with_bottlenecks(model)}
    return {path: [one["bottleneck_dim"], one["activation"]] for path, one in found.items()}


def _described(path, source):
    """The two dicts that `save` wrote, of plain numbers and names."""
    shapes = [source.shape(name) for name in source.names]
    widths = {n for shape in shapes if 0 not in shape for n in shape}  # none that needs more room
    with safetensors.safe_open(path, framework="numpy") as file:
        metadata = file.metadata() or {}
    if metadata.get("format") != FORMAT:
        raise ValueError(f"{path} holds no adapters, which training.adapters.save writes.")
    try:
        loras, bottlenecks = map(json.loads(metadata["adapters"]).get, ("lora", "bottlenecks"))
        for kinds, adapters in (((int, float), loras), ((str,), bottlenecks)):
            for width, more in adapters.values():
                if type(width) is not int or width not in widths or type(more) not in kinds:
                    raise TypeError(f"one is {[width, more]}")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} does not say which adapters it holds ({error}).") from error
    return loras, bottlenecks


# === Changing a model ===


def _named(model, patterns):
    """The variables whose paths some patterns name."""
    found = [v for v in model.variables if any(fnmatch.fnmatchcase(v.path, p) for p in patterns)]
    if patterns and not found:
        raise ValueError(f"No variables are named {list(patterns)}.")
    return found


@contextlib.contextmanager
def _changing(model, train):
    """Freezes all but some variables and the adapters that are added within, if all goes well."""
    first = not (with_lora(model) or _with_bottlenecks(model))
    if first:
        # Past Keras' tracking, which would take them for the model's own.
        vars(model)["_frozen_for_adapters"] = model.trainable_variables
    try:
        yield
    except Exception:
        if first:
            _remove(model)
        raise
    for variable in model.trainable_variables if first else ():
        variable.trainable = False
    for variable in (*train, *_adapter_variables(model)):
        variable.trainable = True
    _recompile(model)


@contextlib.contextmanager
def inserting(model, loras, bottlenecks, train=()):
    """Adds adapters as a file or a config tells them, if all goes well within.

    Args:
        model: a built `keras.Model`.
        loras: dict from the paths of layers to pairs of rank and alpha.
        bottlenecks: dict from the paths of layers to pairs of bottleneck_dim and activation.
        train: paths of further variables to be trained.
    """
    places = {x.path: x for x in model._flatten_layers() if hasattr(x, "enable_lora")}
    dense = {path for path, layer in places.items() if isinstance(layer, keras.layers.Dense)}
    unknown = sorted((loras.keys() - places.keys()) | (bottlenecks.keys() - dense))
    if unknown:
        raise ValueError(f"The adapters are for another model: {model.name} has no {unknown}.")
    with _changing(model, [v for v in model.variables if v.path in train]):
        for path, (rank, alpha) in loras.items():
            _insert_lora(places[path], rank, alpha)
        for path, (bottleneck_dim, activation) in bottlenecks.items():
            _insert_bottleneck(places[path], bottleneck_dim, activation)
        yield


def _insert_lora(layer, rank, alpha, seed=None):
    start = keras.initializers.HeUniform(seed=seeds.child(seed, layer.path))
    with _names(layer.path.rpartition("/")[0]):
        layer.enable_lora(rank, lora_alpha=alpha, a_initializer=start)


def _insert_bottleneck(layer, bottleneck_dim, activation, seed=None):
    adapter = BottleneckAdapter(
        bottleneck_dim,
        activation,
        keras.initializers.GlorotUniform(seed=seeds.child(seed, layer.path)),
        dtype=layer.compute_dtype if layer.quantization_mode else layer.dtype_policy,
        name="adapter",
    )
    with _names(layer.path):
        adapter.build((None, layer.units))
    _put_behind(layer, adapter)


@contextlib.contextmanager
def _names(path):
    """The scopes of a path's names: what is built within has its full path."""
    with contextlib.ExitStack() as stack:
        for name in path.split("/") if path else ():
            stack.enter_context(keras.name_scope(name))
        yield


def _put_behind(layer, activation):
    """Sets a dense layer's activation, which is what it calls last."""
    # A built layer takes no new parts unless told, as Keras does for its LoRA.
    layer._tracker.unlock()
    layer._tracker.untrack(layer.activation)
    del layer.activation
    layer.activation = activation
    layer._tracker.lock()


def _remove_lora(layer):
    for variable in [v for v in layer.variables if v.name.startswith("lora_")]:
        delattr(layer, variable.name)
    layer.lora_enabled, layer.lora_rank, layer.lora_alpha = False, None, None


def _remove(model):
    for layer in with_lora(model):
        _remove_lora(layer)
    for layer in _with_bottlenecks(model):
        _put_behind(layer, keras.activations.linear)
    for variable in vars(model).pop("_frozen_for_adapters", ()):
        variable.trainable = True


def _recompile(model):
    model.train_function = model.test_function = model.predict_function = None
    if getattr(model, "compiled", False):
        model.compile_from_config(model.get_compile_config())
