"""Layers made with one seed draw different noise, and the same again."""

import keras
import numpy as np
from keras import ops

from kerasattn import layers
from kerasattn.ops import seeds


def test_children_of_one_seed_differ():
    names = [f"block_{i}/{part}" for i in range(50) for part in ("attention", "dropout")]
    found = {seeds.child(seed, name) for seed in (0, 1, 2**40) for name in names}
    assert len(found) == 3 * len(names) and all(0 <= seed < 2**31 for seed in found)
    keras.random.SeedGenerator(max(found))


def dropped(layer, x):
    return np.asarray(ops.convert_to_numpy(layer(x, training=True))) == 0


def test_the_parts_of_a_block_draw_apart():
    """Of the same numbers, attention's, the residual's and the inner dropout drop others."""
    block = layers.TransformerBlock(
        2, 8, dropout=0.5, feed_forward_dropout=0.5, cross_attention=True, seed=1
    )
    block.build((None, None, 4))
    parts = [block.self_attention, block.cross_attention, block.feed_forward.dropout, block.dropout]
    states = [np.asarray(ops.convert_to_numpy(part.seed_generator.state)) for part in parts]
    assert len({tuple(state) for state in states}) == 4
    x = np.ones((4, 50), "float32")
    assert (dropped(block.feed_forward.dropout, x) != dropped(block.dropout, x)).mean() > 0.2


def test_a_seed_repeats_in_feed_forward():
    x = np.ones((2, 5), "float32")
    outputs = []
    for seed in (1, 1, 2):
        layer = layers.FeedForward(40, dropout=0.5, kernel_initializer="ones", seed=seed)
        outputs.append(np.asarray(ops.convert_to_numpy(layer(x, training=True))))
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert np.abs(outputs[0] - outputs[2]).max() > 1e-3
