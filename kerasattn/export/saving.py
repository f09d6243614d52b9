"""What every SavedModel of functions of strings needs."""

from pathlib import Path

PYTHON_OPERATIONS = {"PyFunc", "PyFuncStateless", "EagerPyFunc"}


def make_folder(folder):
    """The folder as a path, made before the work."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"The folder {folder} can't be made: {error.strerror}.") from None
    return folder


def draw_uniforms(seed, batch, steps):
    """Numbers in [0, 1), float32 (batch, steps), by a seed, of a row that knows no other.

    Args:
        seed: int32 scalar tensor.
        batch: int32 scalar tensor.
        steps: int.
    """
    import tensorflow as tf

    def of_row(row):
        return tf.random.stateless_uniform([steps], tf.stack([seed, row]), alg="philox")

    return tf.map_fn(of_row, tf.range(batch), fn_output_signature=tf.float32)


def save_functions(model, folder, functions):
    """Writes a SavedModel of functions, which are its attributes and its signatures.

    Args:
        model: a Keras model, whose variables they read.
        folder: path that `make_folder` returned.
        functions: dict of names to (function, list of `tf.TensorSpec`, name of its output); the
            name is None for a function that returns a dict.

    Raises:
        ValueError: if a function calls back into Python, or the folder can't be written.
    """
    import tensorflow as tf

    module = tf.Module()
    # The variables alone: the Keras objects around them are not needed where it is loaded.
    module.values = [variable.value for variable in model.variables]
    signatures = {}
    for name, (function, specs, output) in functions.items():
        traced = tf.function(function, input_signature=specs, autograph=False)
        graph = traced.get_concrete_function().graph.as_graph_def()
        nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
        if PYTHON_OPERATIONS & {node.op for node in nodes}:
            raise ValueError(
                "This tokenizer calls Python, which a SavedModel can't hold: use one that runs in "
                "the graph, a WordPiece, SentencePiece or character tokenizer."
            )
        setattr(module, name, traced)
        signatures[name] = traced if output is None else _named(traced, output, specs)
    try:
        tf.saved_model.save(module, str(folder), signatures)
    except (OSError, tf.errors.OpError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"The SavedModel {folder} can't be written: {reason}") from None


def _named(function, output, specs):
    """The function as a signature, whose output has a name."""
    import tensorflow as tf

    return tf.function(
        lambda *inputs: {output: function(*inputs)}, input_signature=specs, autograph=False
    )
