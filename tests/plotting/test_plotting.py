"""Pictures show the numbers they are given, with labels that can be drawn."""

import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from kerasattn import models, plotting
from kerasattn.plotting import figures


def saved(figure, tmp_path):
    """The picture's file; a missing glyph is a warning, which is an error here."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.savefig(tmp_path / "picture.png")
    return (tmp_path / "picture.png").read_bytes()


def test_attention_of_a_step(tmp_path):
    rng = np.random.default_rng(0)
    plain = rng.dirichlet(np.ones(4), size=(2, 4))  # (heads, query, key)
    latent = rng.dirichlet(np.ones(5), size=(2, 4))
    figure = plotting.attention_step([plain, latent], ["[CLS]", "今", "日", "[SEP]"], step=2)
    shown = figure.axes[0].images[0].get_array()
    assert shown.mask[:2, 0].all()  # a plain layer has no latent
    np.testing.assert_allclose(shown[:2, 1:], plain[:, 2, :3], rtol=1e-6)
    np.testing.assert_allclose(shown[2:], latent[:, 2, :4], rtol=1e-6)
    labels = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert labels in (["z", "[CLS]", "今", "日"], ["z", "[CLS]", "2", "3"])
    assert saved(figure, tmp_path).startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="step must be from 0 to 3"):
        plotting.attention_step([plain], list("abcd"), step=4)


def test_attention_of_any_model_as_map_lines_and_grid(tmp_path):
    model = models.BERT(
        30, num_layers=2, num_heads=3, hidden_dim=12, intermediate_dim=8, max_length=8
    )
    inputs = {"token_ids": np.array([[2, 7, 8, 3, 0]]), "padding_mask": np.arange(5)[None] < 4}
    found = plotting.attention_of(model, inputs)
    assert list(found) == ["attention_0", "attention_1"]
    for weights in found.values():
        np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
        assert not weights[..., 4].any()  # padding
    tokens = ["[CLS]", "今", "$x$", "[SEP]", "[PAD]"]
    first = found["attention_0"][0]
    figure = plotting.attention_map(first[0], tokens)
    np.testing.assert_allclose(figure.axes[0].images[0].get_array(), first[0])
    saved(figure, tmp_path)
    figure = plotting.attention_lines(first, tokens, least=0.1)
    lines = figure.axes[0].collections[0]
    assert len(lines.get_segments()) == (first >= 0.1).sum()
    assert len(np.unique(lines.get_colors()[:, :3], axis=0)) == 3  # one for each head
    saved(figure, tmp_path)
    layers = [weights[0] for weights in found.values()]
    figure = plotting.attention_grid(layers, tokens)
    assert len(figure.axes) == 6
    np.testing.assert_allclose(figure.axes[4].images[0].get_array(), layers[1][1])
    saved(figure, tmp_path)
    reader = models.RNNClassifier(30, 2, embedding_dim=4, hidden_dim=4)
    assert list(plotting.attention_of(reader, [[5, 6]])) == ["attention_weights"]
    with pytest.raises(ValueError, match="of 2 queries and 3 keys"):
        plotting.attention_map(np.ones((3, 2)), "ab", "abc")


def test_attention_over_an_image(tmp_path):
    weights = np.eye(6)[[0, 4]]
    figure = plotting.attention_over_image(np.zeros((9, 8, 1)), weights, (2, 3), ["a", "三"], 2)
    shown = figure.axes[2].images[1].get_array()
    np.testing.assert_array_equal(shown, [[0, 0, 0], [0, 1, 0]])
    saved(figure, tmp_path)
    with pytest.raises(ValueError, match=r"take the shape \(1, 6\)"):
        plotting.attention_over_image(np.zeros((9, 8)), weights, (2, 3), ["a"])


def test_map_shows_the_axes_of_greatest_difference(tmp_path):
    rng = np.random.default_rng(0)
    plane = rng.normal(size=(50, 2)) * [5.0, 2.0]
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    points = np.pad(plane, [(0, 0), (0, 4)]) @ turn + 3.0
    figure = plotting.latent_map(points[:, None], np.arange(50), "number")
    shown = np.asarray(figure.axes[0].collections[0].get_offsets())
    centred = plane - plane.mean(axis=0)
    np.testing.assert_allclose(  # the same up to a turn of the plane: all distances
        np.linalg.norm(shown[:, None] - shown, axis=-1),
        np.linalg.norm(centred[:, None] - centred, axis=-1),
        atol=1e-3,
    )
    saved(figure, tmp_path)
    saved(plotting.latent_map(points[:, None], ["a", "b"] * 25, "kind"), tmp_path)
    with pytest.raises(ValueError, match="n >= 3"):
        plotting.latent_map(points, np.arange(50), "number")


def test_similarity_counts_common_characters(tmp_path):
    figure = plotting.similarity(["aab", "abb", "cc", ""], "$a$ title")
    shares = figure.axes[0].images[0].get_array()
    expected = [[1, 2 / 3, 0, 0], [2 / 3, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    np.testing.assert_allclose(shares, expected)
    saved(plotting.similarity(["$5 or $6", "今日好熱", "x_1^2"]), tmp_path)


def test_mask_and_curves(tmp_path):
    mask = np.tri(3, dtype=bool)[None, None]
    figure = plotting.mask_grid({"causal": mask}, labels=["今", "日", "a"])
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), np.tri(3))
    saved(figure, tmp_path)
    with pytest.raises(ValueError, match="query and a key"):
        plotting.mask_grid({"flat": np.ones(3)})
    history = [
        {"step": 10, "kl": 3.0, "loss": 2.0, "perplexity": 7.4},
        {"step": 20, "kl": 3.0, "loss": 1.0},
        {"step": 30, "kl": 3.0, "loss": 0.5, "perplexity": 2.7},
    ]
    figure = plotting.training_curves(history)
    assert [axes.get_title() for axes in figure.axes] == ["loss", "perplexity"]  # kl is constant
    assert figure.axes[1].lines[0].get_xydata().tolist() == [[10.0, 7.4], [30.0, 2.7]]
    saved(figure, tmp_path)
    with pytest.raises(ValueError, match="no metric"):
        plotting.training_curves([{"step": 1}])


def test_labels_without_a_font_become_numbers(monkeypatch):
    monkeypatch.setattr(figures, "_fonts", list)
    assert figures.label_style(["[CLS]", "今", "a"])[0] == ["[CLS]", "2", "a"]


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ValueError, match=r"kerasattn\[plotting\]"):
        plotting.training_curves([{"step": 1, "loss": 1.0}])


def test_picture_grid(tmp_path):
    pictures = np.arange(2 * 3 * 2 * 2).reshape(2, 3, 2, 2, 1) / 24
    figure = plotting.picture_grid(pictures, ["a", "$b"], ["1", "2", "3"])
    shown = np.asarray(figure.axes[0].images[0].get_array())
    assert shown.shape == (5, 8)
    np.testing.assert_allclose(shown[3:, 6:], pictures[1, 2, ..., 0], rtol=1e-6)
    assert (shown[2] == 1).all() and (shown[:, [2, 5]] == 1).all()  # lines between them
    assert saved(figure, tmp_path)
    with pytest.raises(ValueError, match="pictures take the shape"):
        plotting.picture_grid(np.zeros((3, 8, 8)))
