"""How many steps there is time for, and what is printed."""

import io

import pytest

from kerasattn.training.progress import Progress


def after(steps, gaps):
    progress = Progress(total_steps=1)
    progress.step_seconds, progress.gap_seconds = steps, gaps
    return progress


def test_waiting_counts_and_compiling_does_not():
    """Steps of 0.1 s with 0.1 s between them, after one of 9 s: 60 s hold 300."""
    progress = after([9.0] + [0.1] * 9, [0.1] * 9)
    assert progress.steady_seconds() == pytest.approx(0.1)
    assert progress.steps_within(60.0) == pytest.approx(300, abs=1)


def test_time_is_set_aside_for_what_is_compiled_later():
    """Of four shapes two were compiled, in 8 s each: of 60 s 44 are left, for 220 steps."""
    progress = after([8.0, 0.1, 8.0] + [0.1] * 9, [0.1] * 11)
    assert progress.steps_within(60.0, shapes=4) == pytest.approx(220, abs=1)
    assert progress.steps_within(1.0, shapes=4) == 0


def test_without_a_step_nothing_is_known():
    with pytest.raises(ValueError, match="No step has been taken yet"):
        Progress(total_steps=3).steps_within(60.0)


def test_what_passes_between_steps_is_seen(monkeypatch):
    clock = iter([0.0, 10.0, 11.0, 13.0, 14.0, 14.5, 15.5, 99.0])
    monkeypatch.setattr("kerasattn.training.progress.time.monotonic", lambda: next(clock))
    progress = Progress(total_steps=9, every=1e9)
    for batch in range(3):
        progress.on_train_batch_begin(batch)
        progress.on_train_batch_end(batch)
    assert progress.step_seconds == [1.0, 1.0, 1.0] and progress.gap_seconds == [2.0, 0.5]


def test_the_first_step_tells_nothing_of_the_time_left():
    """It compiles, for minutes perhaps, what the others only run."""
    stream = io.StringIO()
    progress = Progress(total_steps=3, every=0.0, stream=stream)
    for batch in range(3):
        progress.on_train_batch_begin(batch)
        progress.on_train_batch_end(batch, {"loss": 2.0})
    first, second, third = stream.getvalue().splitlines()
    assert first == "step 1 of 3, loss 2.000"
    assert second.startswith("step 2 of 3, loss 2.000, ") and second.endswith(" s left")
    assert third == "step 3 of 3, loss 2.000, 0 s left"
