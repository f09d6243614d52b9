"""Attention masks as pictures."""

import numpy as np

from kerasattn.plotting.figures import label_style, new_figure


def mask_grid(masks, labels=None):
    """Masks side by side: a row for each query, a column for each key, dark where it may attend.

    Args:
        masks: dict of a title to a boolean array whose last two axes are query and key; axes
            before them are taken at their first place.
        labels: list of str, the tokens, if all masks are square and of that size.

    Returns:
        A matplotlib figure.

    Raises:
        ValueError: if matplotlib is not installed, or a mask has fewer than two axes.

    Example:
    >>> import numpy as np
    >>> from kerasattn.plotting import mask_grid
    >>> figure = mask_grid({"causal": np.tri(4), "all": np.ones((4, 4))})
    >>> [axes.get_title() for axes in figure.axes]
    ['causal', 'all']
    """
    figure = new_figure(0.6 + 2.8 * len(masks), 3.0)
    panels = figure.subplots(1, len(masks), squeeze=False)[0]
    for axes, (title, mask) in zip(panels, masks.items()):
        mask = np.asarray(mask)
        if mask.ndim < 2:
            raise ValueError(f"A mask has a query and a key axis, {title} has {mask.shape}.")
        mask = mask.reshape(-1, *mask.shape[-2:])[0].astype(bool)
        axes.imshow(mask, cmap="Blues", vmin=0, vmax=1.3, interpolation="none")
        axes.set_title(title)
        axes.set(xlabel="key", ylabel="query")
        axes.set_xticks(np.arange(mask.shape[1] + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(mask.shape[0] + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=1)
        axes.tick_params(which="both", length=0)
        if labels is not None:
            texts, style, _ = label_style(list(labels))
            axes.set_xticks(range(len(texts)), texts, **style)
            axes.set_yticks(range(len(texts)), texts, **style)
    return figure
