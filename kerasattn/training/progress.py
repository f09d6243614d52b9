"""Progress of training in one line, on a terminal or in a log."""

import sys
import time

import keras


class Progress(keras.callbacks.Callback):
    """Prints steps, metrics and the seconds left: rewrites its line, or adds one now and then.

    Args:
        total_steps: int, the steps of the whole training.
        done: int, the steps that were done before.
        every: float, seconds between two lines; a terminal's line is rewritten each second.
        stream: the file to write to; None is standard output.

    Attributes:
        step_seconds: list of float, the time of each step of this process.
        gap_seconds: list of float, what passed between one step and the next: waiting for data,
            callbacks, checkpoints, the ends of epochs.

    Example:
    >>> import sys
    >>> import keras, numpy as np
    >>> from kerasattn.training.progress import Progress
    >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> progress = Progress(total_steps=2, stream=sys.stdout)
    >>> _ = model.fit(np.zeros((4, 1)), np.zeros((4, 1)), batch_size=2, verbose=0,
    ...               callbacks=[progress])
    step 2 of 2, loss 0.000, ...
    """

    def __init__(self, total_steps, done=0, every=10.0, stream=None):
        super().__init__()
        self.total_steps, self.step = total_steps, done
        self.stream = stream or sys.stdout
        self.terminal = self.stream.isatty()
        self.every = 1.0 if self.terminal else every
        self.step_seconds, self.gap_seconds = [], []
        self._ended = None
        self._printed = time.monotonic()

    def steady_seconds(self):
        """The mean time of a step without those that compiled something: above 5 medians."""
        steady, _ = self._steady_and_compiling()
        return sum(steady) / len(steady) if steady else None

    def steps_within(self, seconds, shapes=1):
        """How many more steps there is time for, as the steps so far went.

        Args:
            seconds: float, the time there is.
            shapes: int >= 1, the shapes that batches have. Each is compiled once: time is set
                aside for those that have not come yet.
        """
        steady, compiling = self._steady_and_compiling()
        if not steady:
            raise ValueError("No step has been taken yet that tells how long one takes.")
        later = max(0, shapes - len(compiling))
        if compiling:
            seconds -= later * sum(compiling) / len(compiling)
        gap = sum(self.gap_seconds) / max(1, len(self.gap_seconds))
        return max(0, int(seconds / (sum(steady) / len(steady) + gap)))

    def _steady_and_compiling(self):
        """The times of steps, and of those that compiled something: above 5 medians."""
        ordered = sorted(self.step_seconds)
        limit = 5 * ordered[len(ordered) // 2] if ordered else 0.0
        steady = [seconds for seconds in ordered if seconds <= limit]
        return steady, ordered[len(steady) :]

    def on_train_batch_begin(self, batch, logs=None):
        self._began = time.monotonic()
        if self._ended is not None:
            self.gap_seconds.append(self._began - self._ended)

    def on_train_batch_end(self, batch, logs=None):
        now = self._ended = time.monotonic()
        self.step_seconds.append(now - self._began)
        self.step += 1
        if now - self._printed >= self.every or self.step >= self.total_steps:
            self._printed = now
            self._print(logs or {})

    def on_train_end(self, logs=None):
        if self.terminal:
            print(file=self.stream)

    def _print(self, logs):
        parts = [f"step {self.step} of {self.total_steps}"]
        parts += [f"{name} {float(value):.3f}" for name, value in logs.items()]
        if len(self.step_seconds) > 1:  # the first step compiles: it tells nothing of the others
            gap = sum(self.gap_seconds) / max(1, len(self.gap_seconds))
            left = (self.total_steps - self.step) * (self.steady_seconds() + gap)
            parts.append(f"{left:.0f} s left")
        line = ", ".join(parts)
        end = "" if self.terminal else "\n"
        start = "\r\033[K" if self.terminal else ""
        print(f"{start}{line}", end=end, file=self.stream, flush=True)
