"""Training that can be stopped and resumed as if it had not been stopped."""

import json
import os
import re
import signal
import threading
from pathlib import Path

import keras
import numpy as np
from keras import ops

FORMAT = "kerasattn training checkpoint 1"


class ResumableCheckpoint(keras.callbacks.Callback):
    """Saves all that training needs to go on: weights, optimizer, random seeds, history.

    The file is replaced as a whole or not at all, so that a run that dies at any moment leaves
    a good one. SIGINT (Ctrl-C) and SIGTERM end the step that is running, save and stop `fit`;
    `interrupted` is then True.

    Args:
        path: the file; its folder is made.
        every: int >= 1, steps between two checkpoints. The last step of `fit` is saved too.
        signals: whether to act upon SIGINT and SIGTERM (in the main thread only).

    Attributes:
        steps: how many steps have been done, those before `restore` included.
        history: list of dicts, one an epoch: `step` and the epoch's metrics.

    A run that goes on where it was, if it was; an epoch that was cut is finished first::

        checkpoint = ResumableCheckpoint(path, every=500)
        if resume:
            checkpoint.restore(model)
        for part in checkpoint.parts(total_steps=10_000, steps_per_epoch=1_000):
            data = bucketed_batches(ids, 128, skip_batches=part.pop("skip_batches"))
            model.fit(data, callbacks=[checkpoint], **part)

    Example:

    >>> import keras, numpy as np, os, tempfile
    >>> from kerasattn.training import ResumableCheckpoint
    >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    >>> model.compile("adam", "mse")
    >>> checkpoint = ResumableCheckpoint(os.path.join(tempfile.mkdtemp(), "training.npz"))
    >>> _ = model.fit(np.ones((6, 2)), np.ones((6, 1)), 2, callbacks=[checkpoint], verbose=0)
    >>> ResumableCheckpoint(checkpoint.path).restore(model)
    3
    """

    def __init__(self, path, every=500, signals=True):
        super().__init__()
        if not every >= 1:
            raise ValueError(f"every must be at least one step, got {every}.")
        self.path, self.every, self.signals = Path(path), every, signals
        self.steps, self.history, self.interrupted = 0, [], False
        self._saved = None  # the step that the file holds
        self._handlers = {}

    def restore(self, model):
        """Sets a built and compiled model to the file's state; returns the steps done."""
        self.steps, self.history = restore_checkpoint(model, self.path)
        self._saved = self.steps
        return self.steps

    def save(self):
        """Writes the file."""
        save_checkpoint(self.model, self.path, self.steps, self.history)
        self._saved = self.steps

    def parts(self, total_steps, steps_per_epoch):
        """What is left to do, as arguments of `fit`, with `skip_batches` beside.

        An epoch that was cut comes first, with the steps that it lacks; whole epochs follow,
        then what is left. Nothing follows once a signal has come.
        """
        self.interrupted = False
        while self.steps < total_steps and not self.interrupted:
            done, start = self.steps, self.steps % steps_per_epoch
            left = min(steps_per_epoch - start, total_steps - done)
            epochs = max(1, (total_steps - done) // steps_per_epoch) if not start else 1
            first = done // steps_per_epoch
            yield {
                "initial_epoch": first,
                "epochs": first + epochs,
                "steps_per_epoch": left,
                "skip_batches": done,
            }
            if self.steps == done and not self.interrupted:
                raise ValueError(
                    f"fit has done no step since step {done}: pass this callback to it, and "
                    "data for the steps asked for."
                )

    # === Hooks of fit ===

    def on_train_begin(self, logs=None):
        self.interrupted = False
        self._epoch_start = self.steps
        in_main_thread = threading.current_thread() is threading.main_thread()
        if self.signals and in_main_thread and not self._handlers:
            for number in (signal.SIGINT, signal.SIGTERM):
                self._handlers[number] = signal.signal(number, self._on_signal)

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch_start = self.steps

    def on_train_batch_end(self, batch, logs=None):
        before, self.steps = self.steps, self._epoch_start + batch + 1
        if self.interrupted:
            self.save()
            self.model.stop_training = True
        elif self.steps // self.every > before // self.every:
            self.save()

    def on_epoch_end(self, epoch, logs=None):
        planned = (self.params or {}).get("steps")
        if self.interrupted and planned and self.steps - self._epoch_start < planned:
            return  # the epoch is finished, and reported, by the run that resumes
        row = {name: float(value) for name, value in (logs or {}).items()}
        self.history.append({"step": self.steps, **row})
        if self.interrupted or self._saved == self.steps:  # the file lacks this row
            self.save()
        if self.interrupted:
            self.model.stop_training = True

    def on_train_end(self, logs=None):
        self._restore_handlers()
        if self._saved != self.steps:
            self.save()

    def _on_signal(self, number, frame):
        if self.interrupted:  # the second time: at once
            self._restore_handlers()
            raise KeyboardInterrupt
        self.interrupted = True

    def _restore_handlers(self):
        for number, handler in self._handlers.items():
            signal.signal(number, handler or signal.SIG_DFL)
        self._handlers = {}


def save_checkpoint(model, path, steps, history):
    """Writes the state of a compiled model to one file, which is replaced as a whole.

    Args:
        model: a built and compiled model.
        path: the file to write; a `.npz` archive without pickles.
        steps: int, the training steps done.
        history: list of dicts of numbers, kept beside.

    Raises:
        ValueError: if the file can't be written.

    Example:

    >>> import os, tempfile
    >>> import keras
    >>> from kerasattn.training import restore_checkpoint, save_checkpoint
    >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    >>> model.compile("adam", "mse")
    >>> path = os.path.join(tempfile.mkdtemp(), "training.npz")
    >>> save_checkpoint(model, path, steps=7, history=[])
    >>> restore_checkpoint(model, path)
    (7, [])
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    variables = _variables(model)
    arrays = {f"variable_{i}": _to_array(variable) for i, (_, variable) in enumerate(variables)}
    about = {"format": FORMAT, "steps": int(steps), "history": history}
    about["variables"] = [[name, list(variable.shape)] for name, variable in variables]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"The checkpoint {path} can't be written: no folder {path.parent}: {error.strerror}."
        ) from None
    try:
        with open(temporary, "wb") as file:
            np.savez(file, about=np.frombuffer(json.dumps(about).encode(), "uint8"), **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise ValueError(f"The checkpoint {path} can't be written: {error.strerror}.") from None


def restore_checkpoint(model, path):
    """Sets a model's weights, optimizer and random seeds to what `save_checkpoint` wrote.

    Args:
        model: a model built and compiled as the one that was saved.
        path: the file.

    Returns:
        The number of steps done, and the history: a list of dicts.

    Raises:
        ValueError: if the file is missing, damaged, or of another model; the model is then
            left as it was.

    Example:

    >>> import os, tempfile
    >>> import keras
    >>> from kerasattn.training import restore_checkpoint, save_checkpoint
    >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    >>> model.compile("adam", "mse")
    >>> path = os.path.join(tempfile.mkdtemp(), "training.npz")
    >>> save_checkpoint(model, path, steps=7, history=[])
    >>> restore_checkpoint(model, path)
    (7, [])
    """
    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            about = json.loads(archive["about"].tobytes())
            arrays = [archive[f"variable_{i}"] for i in range(len(about["variables"]))]
        saved, steps, history = _read_about(about, arrays)
    except FileNotFoundError:
        raise ValueError(f"There is no checkpoint {path}.") from None
    except Exception:  # a damaged archive raises errors of every kind
        raise ValueError(f"{path} is no training checkpoint, or a truncated one.") from None
    variables = _variables(model)
    _check_same(saved, variables, path)
    for (_, variable), array in zip(variables, arrays):
        variable.assign(array)
    return steps, history


def _read_about(about, arrays):
    """The names and shapes of a file's arrays, its steps and history; an error for nonsense."""
    saved = [(str(name), tuple(shape)) for name, shape in about["variables"]]
    steps, history = about["steps"], [dict(row) for row in about["history"]]
    as_said = [array.shape for array in arrays] == [shape for _, shape in saved]
    numbers = all(array.dtype.kind in "biuf" for array in arrays)
    whole = isinstance(steps, int) and steps >= 0
    if about["format"] != FORMAT or not (as_said and numbers and whole):
        raise ValueError
    return saved, steps, history


def _variables(model):
    """(name, variable) of all that a step reads and changes, in a fixed order."""
    optimizer = getattr(model, "optimizer", None)
    if not model.built or optimizer is None:
        raise ValueError(f"The model {model.name!r} must be built and compiled first.")
    if not optimizer.built:
        optimizer.build(model.trainable_variables)
    # A layer's `variables` are its weights and the states of its seed generators.
    found = [("model/" + v.path, v) for v in model.variables]
    return found + [("optimizer/" + v.path, v) for v in optimizer.variables]


def _to_array(variable):
    """A variable as numpy; bfloat16, which numpy can't write, as float32 (exactly)."""
    array = np.asarray(ops.convert_to_numpy(variable.value))
    return array.astype("float32") if array.dtype.kind == "V" else array


def _check_same(have, variables, path):
    """The names (without the counters of Keras' automatic ones) and shapes are the model's."""

    def plain(name):
        return re.sub(r"_\d+(?=[_/]|$)", "", name)

    want = [(name, tuple(variable.shape)) for name, variable in variables]
    if [(plain(n), s) for n, s in have] == [(plain(n), s) for n, s in want]:
        return
    only_file, only_model = _difference(have, want, plain), _difference(want, have, plain)
    raise ValueError(
        f"The checkpoint {path} is of another model or optimizer; only in the file: {only_file}; "
        f"only in the model: {only_model}."
    )


def _difference(some, others, plain, most=6):
    others = {(plain(name), shape) for name, shape in others}
    names = [f"{name} {shape}" for name, shape in some if (plain(name), shape) not in others]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "nothing (the order or number differs)") + more
