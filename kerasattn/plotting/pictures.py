"""Pictures beside each other."""

import numpy as np

from kerasattn.plotting.figures import PLAIN, new_figure


def picture_grid(pictures, row_labels=None, column_labels=None, size=0.6):
    """Rows and columns of small grey pictures.

    Args:
        pictures: array (rows, columns, height, width) or with one channel behind, in [0, 1];
            0 is black.
        row_labels, column_labels: lists of str, or None.
        size: float, inches of a picture.

    Returns:
        A matplotlib figure with one panel.

    Raises:
        ValueError: if matplotlib is not installed, or for another rank.

    Example:
    >>> import numpy as np
    >>> from kerasattn.plotting import picture_grid
    >>> figure = picture_grid(np.zeros((2, 3, 8, 8)), ["a", "b"])
    >>> figure.axes[0].images[0].get_array().shape  # pictures of 8 and a line between them
    (17, 26)
    """
    pictures = np.asarray(pictures, "float32")
    if pictures.ndim == 5 and pictures.shape[-1] == 1:
        pictures = pictures[..., 0]
    if pictures.ndim != 4:
        raise ValueError(
            f"pictures take the shape (rows, columns, height, width), got {pictures.shape}."
        )
    rows, columns, height, width = pictures.shape
    # A white line on the right and below each, but for the last.
    framed = np.pad(pictures, [(0, 0), (0, 0), (0, 1), (0, 1)], constant_values=1)
    whole = framed.transpose(0, 2, 1, 3).reshape(rows * (height + 1), columns * (width + 1))
    longest = max(map(len, row_labels or [""]))
    figure = new_figure(0.3 + 0.1 * longest + size * columns, 0.4 + size * rows * height / width)
    axes = figure.subplots()
    axes.imshow(whole[:-1, :-1], cmap="gray", vmin=0, vmax=1, interpolation="none")
    place = lambda count, step: np.arange(count) * (step + 1) + (step - 1) / 2
    axes.set(xticks=[], yticks=[])
    if column_labels:
        axes.set_xticks(place(columns, width), column_labels, **PLAIN)
    if row_labels:
        axes.set_yticks(place(rows, height), row_labels, **PLAIN)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure
