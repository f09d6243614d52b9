import functools
import json
import os
import signal

import keras
import numpy as np
import pytest
from keras import ops

from kerasattn.training.checkpoint import ResumableCheckpoint, restore_checkpoint, save_checkpoint

BATCHES = np.random.default_rng(0).normal(size=(30, 8, 6)).astype("float32")


def make_model(jit_compile=False, units=5, optimizer=None, dtype=None):
    """Dropout (a seed generator), BatchNormalization (moving state), a schedule (iterations)."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((6,)),
            keras.layers.Dense(units, activation="tanh", dtype=dtype),
            keras.layers.Dropout(0.4, seed=3),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(6),
        ]
    )
    rate = keras.optimizers.schedules.CosineDecay(0.0, 30, warmup_target=0.05, warmup_steps=5)
    model.compile(optimizer or keras.optimizers.Adam(rate), "mse", jit_compile=jit_compile)
    return model


def batches(skip):
    if keras.backend.backend() != "tensorflow":
        return ((batch, batch) for batch in BATCHES[skip:])
    import tensorflow as tf

    options = tf.data.Options()
    options.autotune.enabled = False  # it can stall the end of an epoch for seconds
    return tf.data.Dataset.from_tensor_slices((BATCHES[skip:],) * 2).with_options(options)


def train(model, checkpoint, total_steps, steps_per_epoch=10, callbacks=()):
    for part in checkpoint.parts(total_steps, steps_per_epoch):
        data = batches(part.pop("skip_batches"))
        model.fit(data, callbacks=[checkpoint, *callbacks], verbose=0, **part)


def state(model):
    return [ops.convert_to_numpy(v) for v in model.variables + model.optimizer.variables]


def equal(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


class Stop(keras.callbacks.Callback):
    """Sends this process a signal, or raises, after a number of steps."""

    def __init__(self, after, how):
        super().__init__()
        self.after, self.how = after, how

    def on_train_batch_begin(self, batch, logs=None):
        self.after -= 1
        if self.after == 0:
            if self.how == "crash":
                raise RuntimeError("the machine went down")
            os.kill(os.getpid(), self.how)


@pytest.fixture(scope="module")
def not_stopped(tmp_path_factory):
    """A function that says if with XLA: the state and history after 26 steps."""

    @functools.cache
    def run(jit_compile):
        model = make_model(jit_compile)
        checkpoint = ResumableCheckpoint(tmp_path_factory.mktemp("whole") / "training.npz")
        train(model, checkpoint, 26)
        assert checkpoint.steps == 26
        return state(model), checkpoint.history

    return run


def test_resumed_equals_not_stopped(tmp_path, not_stopped):
    """With XLA, in the middle of an epoch."""
    whole, history = not_stopped(True)

    checkpoint = ResumableCheckpoint(tmp_path / "parts.npz")
    train(make_model(jit_compile=True), checkpoint, 13)
    keras.utils.set_random_seed(99)
    resumed = make_model(jit_compile=True)
    checkpoint = ResumableCheckpoint(tmp_path / "parts.npz")
    assert checkpoint.restore(resumed) == 13
    train(resumed, checkpoint, 26)
    assert equal(whole, state(resumed))
    assert [row["step"] for row in history] == [10, 20, 26]
    assert [row["step"] for row in checkpoint.history] == [10, 13, 20, 26]
    assert checkpoint.history[-1] == history[-1]


def test_stopped_by_signals_and_a_crash(tmp_path, not_stopped):
    """One run, which is stopped in an epoch, at the end of one, and by what nobody asked for."""
    path, before, done = tmp_path / "parts.npz", signal.getsignal(signal.SIGINT), 0
    for how, after, kept in ((signal.SIGINT, 3, 3), (signal.SIGTERM, 10, 10), ("crash", 17, 16)):
        model, checkpoint = make_model(), ResumableCheckpoint(path, every=2)
        if done:
            assert checkpoint.restore(model) == done
        stop = Stop(after - done, how)
        if how == "crash":
            with pytest.raises(RuntimeError, match="went down"):
                train(model, checkpoint, 26, callbacks=[stop])
            checkpoint._restore_handlers()
        else:
            train(model, checkpoint, 26, callbacks=[stop])
            assert checkpoint.interrupted and checkpoint.steps == after
            assert signal.getsignal(signal.SIGINT) == before
        done = kept
    resumed, checkpoint = make_model(), ResumableCheckpoint(path, every=2)
    assert checkpoint.restore(resumed) == done
    train(resumed, checkpoint, 26)
    whole, history = not_stopped(False)
    assert equal(whole, state(resumed))
    assert [row["step"] for row in history] == [10, 20, 26]
    assert [row["step"] for row in checkpoint.history] == [10, 20, 26]


def test_seeds_matter():
    # Without the generators' states the resumed dropout would be another one: what we guard.
    model = make_model()
    names = [v.path for v in model.variables]
    assert sum("seed_generator_state" in name for name in names) == 2
    assert not any("seed" in weight.path for weight in model.weights)


def test_only_whole_files_are_left(tmp_path):
    checkpoint = ResumableCheckpoint(tmp_path / "new" / "training.npz", every=1)
    train(make_model(), checkpoint, 3)
    assert os.listdir(tmp_path / "new") == ["training.npz"]
    with np.load(tmp_path / "new" / "training.npz", allow_pickle=False) as archive:
        about = json.loads(archive["about"].tobytes())
        assert about["steps"] == 3 and len(about["variables"]) == len(archive.files) - 1


def test_function_pair(tmp_path):
    model = make_model(dtype="bfloat16")
    save_checkpoint(model, tmp_path / "a.npz", 7, [{"step": 7, "loss": 0.5}])
    other = make_model(dtype="bfloat16")
    other.set_weights([w + 1 for w in other.get_weights()])
    assert restore_checkpoint(other, tmp_path / "a.npz") == (7, [{"step": 7, "loss": 0.5}])
    assert equal(state(model), state(other))


def test_damaged_files(tmp_path):
    model = make_model()
    path = tmp_path / "training.npz"
    with pytest.raises(ValueError, match="There is no checkpoint"):
        restore_checkpoint(model, path)
    save_checkpoint(model, path, 1, [])
    whole = path.read_bytes()
    before = state(model)
    broken = [whole[:size] for size in (0, 10, len(whole) // 2, len(whole) - 1)]
    at = whole.index(ops.convert_to_numpy(model.layers[0].kernel).tobytes())
    broken += [b"not an archive", whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :]]
    for content in broken:
        path.write_bytes(content)
        with pytest.raises(ValueError, match="no training checkpoint, or a truncated one") as error:
            restore_checkpoint(model, path)
        assert "\n" not in str(error.value)
    np.savez(path, weights=np.ones(3))
    with pytest.raises(ValueError, match="no training checkpoint"):
        restore_checkpoint(model, path)
    assert equal(before, state(model))

    # The bytes that say how an entry is packed: errors of other kinds than a cut file's.
    entry = whole.index(b"PK\x01\x02")
    for place, value in ((8, 1), (10, 8), (10, 99)):  # encrypted, deflated, of no known method
        at = entry + place
        path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
        with pytest.raises(ValueError, match="no training checkpoint"):
            restore_checkpoint(model, path)


@pytest.mark.parametrize(
    "change",
    [
        {"steps": -1},
        {"steps": "7"},
        {"steps": 1.5},
        {"history": 3},
        {"history": ["a"]},
        {"variables": [["a"]]},
        {"variables": {}},
        {"format": "another"},
        "nothing",
    ],
    ids=str,
)
def test_what_a_file_says_of_itself_is_checked(tmp_path, change):
    model, path = make_model(), tmp_path / "training.npz"
    save_checkpoint(model, path, 1, [])
    with np.load(path) as archive:
        arrays = dict(archive)
    about = json.loads(arrays.pop("about").tobytes())
    about = {**about, **change} if isinstance(change, dict) else [change]
    np.savez(path, about=np.frombuffer(json.dumps(about).encode(), "uint8"), **arrays)
    with pytest.raises(ValueError, match=r"no training checkpoint|is of another model"):
        restore_checkpoint(model, path)


def test_arrays_of_other_shapes_than_the_file_says(tmp_path):
    model, path = make_model(), tmp_path / "training.npz"
    save_checkpoint(model, path, 1, [])
    with np.load(path) as archive:
        arrays = dict(archive)
    before = state(model)
    arrays["variable_0"] = arrays["variable_0"] + 1  # would be assigned before the fault is seen
    arrays["variable_1"] = np.ones((99,))
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="no training checkpoint"):
        restore_checkpoint(model, path)
    assert equal(before, state(model))


def test_another_model_is_refused(tmp_path):
    path = tmp_path / "training.npz"
    save_checkpoint(make_model(units=5), path, 1, [])
    other = make_model(units=4)
    before = other.get_weights()
    with pytest.raises(ValueError, match=r"kernel \(6, 5\).*kernel \(6, 4\)"):
        restore_checkpoint(other, path)
    assert equal(before, other.get_weights())
    with pytest.raises(ValueError, match=r"velocity.*only in the model: optimizer/sgd(_\d+)?/"):
        restore_checkpoint(make_model(optimizer=keras.optimizers.SGD(0.1)), path)
    with pytest.raises(ValueError, match="built and compiled"):
        restore_checkpoint(keras.Sequential([keras.Input((2,))]), path)


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="can't be written"):
        save_checkpoint(make_model(), tmp_path / "file" / "training.npz", 1, [])


def test_parts():
    checkpoint, parts = ResumableCheckpoint("unused.npz"), []
    checkpoint.steps = 13
    for part in checkpoint.parts(36, 10):
        parts.append(list(part.values()))
        checkpoint.steps += part["steps_per_epoch"] * (part["epochs"] - part["initial_epoch"])
    # initial_epoch, epochs, steps_per_epoch, skip_batches
    assert parts == [[1, 2, 7, 13], [2, 3, 10, 20], [3, 4, 6, 30]]
    with pytest.raises(ValueError, match="pass this callback"):
        list(checkpoint.parts(40, 10))
    with pytest.raises(ValueError, match="at least one step, got 0"):
        ResumableCheckpoint("unused.npz", every=0)
