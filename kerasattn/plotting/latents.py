"""Maps of latents, and how a text changes along a way between two of them."""

import numpy as np

from kerasattn.plotting.figures import label_style, new_figure


def latent_map(latents, values, name):
    """The latents of each layer on their two principal axes, coloured by a value.

    Args:
        latents: array (n, num_latent_layers, latent_dim), n >= 3.
        values: n numbers, or n strings: kinds, each with its colour.
        name: str, what the values are.

    Returns:
        A matplotlib figure with a panel for each layer.

    Raises:
        ValueError: if matplotlib is not installed, or shapes do not agree.

    Example:
    >>> import numpy as np
    >>> from kerasattn.plotting import latent_map
    >>> latents = np.random.default_rng(0).normal(size=(9, 2, 4))
    >>> figure = latent_map(latents, ["odd", "even", "odd"] * 3, "kind")
    >>> [axes.get_title() for axes in figure.axes]
    ['latent 1', 'latent 2']
    """
    latents = np.asarray(latents, "float32")
    if latents.ndim != 3 or len(latents) != len(values) or len(latents) < 3:
        raise ValueError(
            "latents take the shape (n, num_latent_layers, latent_dim), n >= 3, and n values: got "
            f"{latents.shape} and {len(values)}."
        )
    layers = latents.shape[1]
    figure = new_figure(3.2 * layers + 1.2, 3.4)
    kinds = sorted(set(values)) if isinstance(values[0], str) else None
    panels = figure.subplots(1, layers, squeeze=False)[0]
    for i, axes in enumerate(panels):
        points = _principal(latents[:, i])  # (n, 2)
        if kinds is None:
            image = axes.scatter(*points.T, c=values, s=6, cmap="viridis", linewidths=0)
        for kind in kinds or ():
            chosen = np.array([value == kind for value in values])
            axes.scatter(*points[chosen].T, s=6, label=kind, linewidths=0)
        axes.set(title=f"latent {i + 1}", xticks=[], yticks=[])
        axes.set_aspect("equal", adjustable="datalim")
    if kinds is None:
        figure.colorbar(image, ax=panels[-1], label=name)
    else:
        handles = panels[-1].get_legend_handles_labels()
        figure.legend(*handles, title=name, markerscale=3, loc="outside right upper")
    return figure


def _principal(points):
    """Points (n, dim) on the two axes along which they differ most: (n, 2)."""
    points = points - points.mean(axis=0)
    if points.shape[1] < 2:
        return np.pad(points, [(0, 0), (0, 1)])
    _, _, axes = np.linalg.svd(points, full_matrices=False)
    return points @ axes[:2].T


def similarity(texts, title=""):
    """How much each pair of texts has in common, character by character.

    The number of common characters, each as often as both have it, over the longer one's length:
    1 for the same characters, 0 for none in common.

    Args:
        texts: list of str; those of an interpolation, say, in its order.
        title: str.

    Returns:
        A matplotlib figure, the texts beside it where a font can draw them.

    Raises:
        ValueError: if matplotlib is not installed, or there is no text.

    Example:
    >>> from kerasattn.plotting import similarity
    >>> figure = similarity(["abc", "abd", "xyz"])
    >>> figure.axes[0].images[0].get_array()[0].round(2).tolist()
    [1.0, 0.67, 0.0]
    """
    if not texts:
        raise ValueError("There are no texts to compare.")
    size = len(texts)
    shares = np.array([[_common(a, b) for b in texts] for a in texts])
    labels, style, kept = label_style(list(texts))
    longest = max(map(len, labels)) if kept else 2
    figure = new_figure(2.2 + 0.36 * size + 0.16 * longest, 1.2 + 0.36 * size)
    axes = figure.subplots()
    image = axes.imshow(shares, cmap="viridis", vmin=0, vmax=1)
    axes.set_xticks(range(size), range(1, size + 1))
    axes.set_yticks(range(size), labels, **style)
    axes.set_title(title)
    figure.colorbar(image, ax=axes, label="characters in common")
    return figure


def _common(a, b):
    both = sum(min(a.count(c), b.count(c)) for c in set(a))
    return both / max(1, len(a), len(b)) if a or b else 1.0
