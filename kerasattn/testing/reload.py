"""A second Python process that loads saved models and runs them, kept for many requests.

Run as `python -m kerasattn.testing.reload` it reads one JSON request a line and answers one
line each. Starting TensorFlow costs ten seconds, so that the process is started once.
"""

import atexit
import contextlib
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np

_process = None


def predict(model_path, inputs, modules=(), timeout=300):
    """Load a `.keras` file in another process and return its outputs for the inputs there.

    Args:
        model_path: path of the `.keras` file.
        inputs: dict of name to array.
        modules: pairs (module name, file) that define the model's own classes.
        timeout: seconds after which the other process is given up.

    Returns:
        Dict of output name to array.

    Raises:
        AssertionError: if the model can't be loaded or run there, with the reason.

    Example:
        >>> import pathlib, tempfile
        >>> import keras, numpy as np
        >>> from kerasattn.testing import reload
        >>> inputs = keras.Input((2,), name="x")
        >>> model = keras.Model({"x": inputs}, {"y": keras.ops.exp(inputs)})
        >>> path = pathlib.Path(tempfile.mkdtemp(), "model.keras")
        >>> model.save(path)
        >>> reload.predict(path, {"x": np.zeros((1, 2))})["y"].tolist()
        [[1.0, 1.0]]
    """
    with tempfile.TemporaryDirectory() as folder:
        request = {
            "model": str(model_path),
            "inputs": str(Path(folder, "inputs.npz")),
            "outputs": str(Path(folder, "outputs.npz")),
            "modules": [list(module) for module in modules],
        }
        np.savez(request["inputs"], **inputs)
        answer = _ask(request, timeout)
        if "error" in answer:
            raise AssertionError(f"the saved model fails in a new process:\n{answer['error']}")
        with np.load(request["outputs"]) as outputs:
            return {name: outputs[name] for name in outputs.files}


def _ask(request, timeout):
    global _process
    if _process is None or _process.poll() is not None:
        _process = _start()
    process = _process
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    timer = threading.Timer(timeout, process.kill)
    timer.start()
    try:
        line = process.stdout.readline()
    finally:
        timer.cancel()
    if not line:
        raise AssertionError(f"the process that loads the model ended, exit code {process.wait()}")
    return json.loads(line)


def _start():
    import keras

    environment = dict(os.environ, KERAS_BACKEND=keras.backend.backend())
    environment["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
    process = subprocess.Popen(
        [sys.executable, "-m", "kerasattn.testing.reload"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        text=True,
    )
    atexit.register(_stop, process)
    return process


def _stop(process):
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()


def _import(name, file):
    """Import a module by name, else from its file: a test's module is on no path."""
    if name != "__main__":
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(f"subject_{Path(file).stem}", file)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _answer(request, loaded):
    import keras

    from kerasattn.testing.arrays import run

    for name, file in request["modules"]:
        if (name, file) not in loaded:
            _import(name, file)
            loaded.add((name, file))
    model = keras.models.load_model(request["model"], compile=False)
    with np.load(request["inputs"]) as inputs:
        outputs = run(model, {name: inputs[name] for name in inputs.files})
    np.savez(request["outputs"], **outputs)
    return {}


def main():
    """Serve requests until standard input ends."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    import kerasattn  # noqa: F401

    loaded = set()
    for line in sys.stdin:
        try:
            answer = _answer(json.loads(line), loaded)
        except Exception as error:
            while error.__cause__ or error.__context__:  # Keras wraps what really happened
                error = error.__cause__ or error.__context__
            answer = {"error": f"{type(error).__name__}: {str(error)[:1000]}"}
        channel.write(json.dumps(answer) + "\n")
        channel.flush()


if __name__ == "__main__":
    main()
