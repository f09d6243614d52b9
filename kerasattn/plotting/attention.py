"""Where a model looks."""

import numpy as np
from keras import ops

from kerasattn.ops.recorded import recording
from kerasattn.plotting.figures import label_style, new_figure


def attention_of(model, inputs):
    """The attention weights of a model for some inputs, whatever the model.

    Args:
        model: any model of the zoo, pretrained or not, or one of its layers.
        inputs: as those of its call.

    Returns:
        dict of numpy arrays: "attention_0", "attention_1", ..., of every attention with heads in
        the order in which they run, (batch, heads, query, key); and the model's outputs whose names
        end in "_weights". Of a recurrent or convolutional encoder-decoder "cross_attention_0", ...,
        those of its `attention_weights`, a layer each.

    Example:
    >>> from kerasattn.models import RoFormer
    >>> from kerasattn.plotting import attention_of
    >>> model = RoFormer(30, num_layers=2, num_heads=4, hidden_dim=16, intermediate_dim=32)
    >>> {name: x.shape for name, x in attention_of(model, [[2, 7, 8]]).items()}
    {'attention_0': (1, 4, 3, 3), 'attention_1': (1, 4, 3, 3)}
    """
    with recording() as kept:
        outputs = model(inputs, training=False)
    found = {f"attention_{i}": weights for i, weights in enumerate(kept)}
    if not kept and getattr(model, "_attention", None):
        for name, weights in model.attention_weights(inputs).items():
            found |= {f"{name}_{i}": weights[:, i] for i in range(weights.shape[1])}
    if isinstance(outputs, dict):
        found |= {name: x for name, x in outputs.items() if name.endswith("_weights")}
    return {name: np.asarray(ops.convert_to_numpy(x)) for name, x in found.items()}


def attention_map(weights, queries, keys=None, title=""):
    """A heat map: a row for each token that looks, a column for each that it may look at.

    Args:
        weights: array (query, key).
        queries, keys: lists of str, the tokens; keys are by default the queries.
        title: str.

    Returns:
        A matplotlib figure.

    Raises:
        ValueError: if matplotlib is not installed, or the tokens are not as many.

    Example:
    >>> import numpy as np
    >>> from kerasattn.plotting import attention_map
    >>> figure = attention_map(np.eye(3)[:2], ["how", "so"], ["wie", "das", "?"])
    >>> [text.get_text() for text in figure.axes[0].get_xticklabels()]
    ['wie', 'das', '?']
    """
    weights, queries, keys = _check(weights, 2, queries, keys)
    figure = new_figure(1.8 + 0.36 * len(keys), 1.2 + 0.3 * len(queries))
    axes = figure.subplots()
    image = _heat(axes, weights, queries, keys)
    axes.set_title(title)
    figure.colorbar(image, ax=axes)
    return figure


def attention_lines(weights, queries, keys=None, least=0.05):
    """Tokens in two columns, with a line from each to those that it looks at.

    Args:
        weights: array (heads, query, key); each head has its colour.
        queries, keys: lists of str, the tokens that look, on the left, and those that they look at;
            keys are by default the queries.
        least: float in [0, 1], weights below it have no line.

    Returns:
        A matplotlib figure.

    Raises:
        ValueError: if matplotlib is not installed, or the tokens are not as many.

    Example:
    >>> import numpy as np
    >>> from kerasattn.plotting import attention_lines
    >>> figure = attention_lines(np.stack([np.eye(3), np.ones((3, 3)) / 3]), ["a", "b", "c"])
    >>> len(figure.axes[0].collections[0].get_segments())  # 3 lines and 9
    12
    """
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection

    weights, queries, keys = _check(weights, 3, queries, keys)
    colours = colormaps["tab10" if len(weights) <= 10 else "tab20"].colors
    figure = new_figure(4.0, 0.9 + 0.3 * max(len(queries), len(keys)))
    axes = figure.subplots()
    lines, shades = [], []
    for head, query, key in np.argwhere(weights >= max(least, 1e-9)):
        lines.append([(0, query), (1, key)])
        strength = min(1.0, float(weights[head, query, key]))
        shades.append((*colours[head % len(colours)], strength))
    axes.add_collection(LineCollection(lines, colors=shades, linewidths=2))
    for tokens, place, side in ((queries, -0.03, "right"), (keys, 1.03, "left")):
        texts, style, _ = label_style(tokens)
        for row, text in enumerate(texts):
            axes.text(place, row, text, ha=side, va="center", **style)
    for head in range(len(weights)):
        axes.plot([], [], color=colours[head % len(colours)], label=f"{head + 1}")
    figure.legend(title="head", loc="outside lower center", ncols=min(8, len(weights)))
    axes.set(xlim=(-0.6, 1.6), ylim=(max(len(queries), len(keys)) - 0.5, -0.5))
    axes.set_axis_off()
    return figure


def attention_grid(layers, queries, keys=None):
    """Small heat maps: a row for each layer, a column for each head.

    Args:
        layers: list of arrays (heads, query, key), such as a row of each of `attention_of`.
        queries, keys: lists of str, as those of `attention_map`.

    Returns:
        A matplotlib figure.

    Raises:
        ValueError: if matplotlib is not installed, or the tokens are not as many.

    Example:
    >>> import numpy as np
    >>> from kerasattn.plotting import attention_grid
    >>> figure = attention_grid([np.ones((3, 2, 2)) / 2] * 2, ["a", "b"])
    >>> len(figure.axes), figure.axes[5].get_title()
    (6, 'layer 2, head 3')
    """
    checked = [_check(weights, 3, queries, keys) for weights in layers]
    heads = max(len(weights) for weights, *_ in checked)
    panel = 0.9 + 0.2 * max(len(checked[0][1]), len(checked[0][2]))
    figure = new_figure(panel * heads, panel * len(checked))
    panels = figure.subplots(len(checked), heads, squeeze=False)
    for row, (weights, queries, keys) in enumerate(checked):
        for head, axes in enumerate(panels[row]):
            if head >= len(weights):
                axes.set_axis_off()
                continue
            _heat(axes, weights[head], queries, keys, size=7)
            axes.set_title(f"layer {row + 1}, head {head + 1}", fontsize=8)
    return figure


def attention_over_image(image, weights, grid_shape, words, columns=5):
    """Where a model looked in a picture at each word: the picture, brighter where it looked.

    Args:
        image: array (height, width) or (height, width, 1 or 3) in [0, 1].
        weights: array (words, places), rows of the grid one after the other.
        grid_shape: ints (rows, columns) of the grid.
        words: list of str.
        columns: int >= 1, panels beside each other.

    Returns:
        A matplotlib figure, the picture alone in its first panel.

    Raises:
        ValueError: if matplotlib is not installed, or for weights of another shape.

    Example:
    >>> import numpy as np
    >>> from kerasattn.plotting import attention_over_image
    >>> figure = attention_over_image(np.zeros((8, 8)), np.eye(4)[:2], (2, 2), ["a", "three"])
    >>> [axes.get_title() for axes in figure.axes]
    ['', 'a', 'three']

    Source: https://arxiv.org/abs/1502.03044, figure 2.
    """
    image, weights = np.asarray(image, "float32"), np.asarray(weights, "float32")
    if image.ndim == 3 and image.shape[2] == 1:
        image = image[..., 0]
    height, width = grid_shape
    if weights.shape != (len(words), height * width):
        raise ValueError(
            f"weights take the shape ({len(words)}, {height * width}), of {len(words)} words and "
            f"a grid of {height} by {width}, got {weights.shape}."
        )
    panels = len(words) + 1
    columns = min(columns, panels)
    rows = -(-panels // columns)
    figure = new_figure(1.5 * columns, 1.75 * rows)
    places = figure.subplots(rows, columns, squeeze=False).ravel()
    texts, style, _ = label_style(list(words))
    extent = (-0.5, image.shape[1] - 0.5, image.shape[0] - 0.5, -0.5)
    for i, axes in enumerate(places):
        axes.set_axis_off()
        if i >= panels:
            continue
        axes.imshow(image, cmap="gray", vmin=0, vmax=1, extent=extent)
        if i:
            seen = weights[i - 1].reshape(height, width)
            axes.imshow(
                seen,
                cmap="inferno",
                alpha=0.6,
                vmin=0,
                vmax=max(1e-9, seen.max()),
                extent=extent,
                interpolation="bilinear",
            )
            axes.set_title(texts[i - 1], fontsize=9, **style)
    return figure


def _check(weights, rank, queries, keys):
    """The weights as numpy and the tokens as lists, if there are as many as weights."""
    weights, queries = np.asarray(weights, "float32"), list(queries)
    keys = queries if keys is None else list(keys)
    if weights.ndim != rank or weights.shape[-2:] != (len(queries), len(keys)):
        raise ValueError(
            f"weights of {len(queries)} queries and {len(keys)} keys take {rank} axes, the last of "
            f"them ({len(queries)}, {len(keys)}); got the shape {weights.shape}."
        )
    return weights, queries, keys


def _heat(axes, weights, queries, keys, size=None):
    image = axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, interpolation="none")
    texts, style, _ = label_style(keys)
    axes.set_xticks(range(len(keys)), texts, rotation=90, fontsize=size, **style)
    texts, style, _ = label_style(queries)
    axes.set_yticks(range(len(queries)), texts, fontsize=size, **style)
    return image


def attention_step(weights, tokens, step, latent="z"):
    """One decoding step: a row for each layer and head, a column for each key.

    Args:
        weights: list, an array (heads, query, key) for each layer. A layer with one key more than
            queries has a latent before the tokens.
        tokens: list of str, the tokens that are fed, [CLS] first.
        step: int, which query: 0 is that of the first token.
        latent: str, the label of the latent's column.

    Returns:
        A matplotlib figure.

    Raises:
        ValueError: if matplotlib is not installed, or the step is out of range.

    Example:
    >>> import numpy as np
    >>> from kerasattn.plotting import attention_step
    >>> weights = [np.full((2, 3, 3), 1 / 3), np.full((2, 3, 4), 1 / 4)]  # the second has a latent
    >>> figure = attention_step(weights, ["[CLS]", "a", "b"], step=2)
    >>> figure.axes[0].images[0].get_array().shape  # 2 layers of 2 heads; z and 3 tokens
    (4, 4)
    """
    weights = [np.asarray(layer, "float32") for layer in weights]
    heads, queries = weights[0].shape[:2]
    if not 0 <= step < queries or len(tokens) < step + 1:
        raise ValueError(f"step must be from 0 to {min(queries, len(tokens)) - 1}, got {step}.")
    rows = np.full((len(weights) * heads, step + 2), np.nan, "float32")
    for i, layer in enumerate(weights):
        latents = layer.shape[2] - queries
        rows[i * heads : (i + 1) * heads, 1 - latents :] = layer[:, step, : step + 1 + latents]
    labels, style, _ = label_style(list(tokens[: step + 1]))

    figure = new_figure(1.6 + 0.42 * rows.shape[1], 1.4 + 0.14 * len(rows))
    axes = figure.subplots()
    image = axes.imshow(rows, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="none")
    axes.set_facecolor("0.9")  # layers without a latent
    axes.set_xticks(range(rows.shape[1]), [latent, *labels], **style)
    axes.set_yticks([i * heads + (heads - 1) / 2 for i in range(len(weights))])
    axes.set_yticklabels([f"layer {i + 1}" for i in range(len(weights))])
    for i in range(1, len(weights)):
        axes.axhline(i * heads - 0.5, color="0.6", linewidth=0.8)
    axes.set_xlabel("what it looks at")
    axes.set_title(f"Attention of step {step + 1}, a row for each head")
    figure.colorbar(image, ax=axes)
    return figure
