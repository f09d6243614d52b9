"""Training on two devices at once, in a process of its own: devices are set once in a process."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("tf.distribute", allow_module_level=True)

CODE = """
import sys
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
import keras
from kerasattn.layers import VectorQuantizer
from kerasattn.models import UniVAE

def copies(variable):
    return [np.array(x) for x in getattr(variable.value, "values", [variable.value])]

ids = np.random.default_rng(0).integers(4, 13, (16, 7)).astype("int32")
ids[:, 0], ids[:, -1] = 2, 3
dataset = tf.data.Dataset.from_tensor_slices(ids).batch(8, drop_remainder=True).repeat(3)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
for latent, batches in (("vmf", 2), ("quantized", 6)):
    keras.utils.set_random_seed(0)
    with strategy.scope():
        model = UniVAE(13, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=8,
                       num_latent_layers=1, latent_dim=4, latent=latent, codebook_size=6,
                       max_length=7, seed=1)
        # Without a graph, which takes longer than two steps: that of the quantizer is one.
        model.compile("sgd", run_eagerly=latent == "vmf")
    assert model.distribute_strategy.num_replicas_in_sync == 2 and not model.jit_compile
    assert model.get_compile_config()["jit_compile"] == "auto"
    before = [np.array(w) for w in model.trainable_weights]
    losses = model.fit(dataset.take(batches), verbose=0).history["loss"]
    assert np.isfinite(losses).all(), losses
    moved = [np.abs(a - np.array(w)).max() > 0 for a, w in zip(before, model.trainable_weights)]
    assert np.mean(moved) > 0.9, moved
    for variable in model.variables:
        if "seed_generator" in variable.path:
            continue
        first, *others = copies(variable)
        assert all(np.array_equal(first, x) for x in others), variable.path
    for quantizer in model.quantizers:
        book, counts = np.array(quantizer.codebook), np.array(quantizer.counts)
        assert np.isfinite(book).all() and np.isfinite(np.array(quantizer.sums)).all()
        assert np.isfinite(counts).all() and counts.sum() > 0
        assert len(np.unique(book.round(5), axis=0)) == len(book), book

# A quantizer alone: the second step, once the codes are placed, is the one step on one device with
# both halves of the batch, but for counts and sums, which are those of one replica on average.
x = np.random.default_rng(0).standard_normal((2, 6, 3)).astype("float32")
with strategy.scope():
    quantizer = VectorQuantizer(4, decay=0.5, seed=0)
    quantizer.build((None, 3))
one = VectorQuantizer(4, decay=0.5, seed=0)
one.build((None, 3))

@tf.function
def step():
    def run():
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        quantizer(tf.gather(x, replica), training=True)
    strategy.run(run)

step()
for variable in quantizer.weights:
    assert len(copies(variable)) == 2 and np.array_equal(*copies(variable)), variable.path
rows = [np.flatnonzero((x[0] == code).all(-1)) for code in np.array(quantizer.codebook)]
assert len(set(np.concatenate(rows).tolist())) == 4, rows
for mine, theirs in zip(one.weights, quantizer.weights):
    mine.assign(np.array(theirs) * (2 if mine.name in ("counts", "sums") else 1))
step()
one(x.reshape(12, 3), training=True)
assert np.array(one.idle).max() < 2
for mine, theirs in zip(one.weights, quantizer.weights):
    scale = 2 if mine.name in ("counts", "sums") else 1
    assert np.array_equal(*copies(theirs)), theirs.path
    np.testing.assert_allclose(mine, scale * np.array(theirs), rtol=1e-5, err_msg=mine.path)
print("trained")
"""


@pytest.mark.slow
def test_univae_trains_on_two_devices():
    """Both copies of every weight stay the same, and the quantizer's codes are used."""
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**os.environ, "PYTHONPATH": root, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0 and done.stdout.strip().endswith("trained"), done.stderr[-3000:]
