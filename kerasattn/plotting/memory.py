"""What a network does with its memory, over time."""

import numpy as np

from kerasattn.plotting.figures import PLAIN, new_figure


def steps_grid(panels, x_label="step"):
    """Panels below each other, each a picture whose columns are steps.

    Args:
        panels: dict from titles to arrays (rows, steps): the inputs, the outputs, where a neural
            Turing machine's heads are, what they add and read. The darker, the higher.
        x_label: str.

    Returns:
        A matplotlib figure, a panel for each.

    Raises:
        ValueError: if matplotlib is not installed, for no panels, or another rank.

    Example:
    >>> import numpy as np
    >>> from kerasattn.plotting import steps_grid
    >>> figure = steps_grid({"inputs": np.eye(3), "write weights": np.ones((5, 3))})
    >>> [axes.get_title() for axes in figure.axes]
    ['inputs', 'write weights']
    """
    arrays = {title: np.asarray(x, "float32") for title, x in panels.items()}
    if not arrays or any(x.ndim != 2 for x in arrays.values()):
        shapes = {title: x.shape for title, x in arrays.items()}
        raise ValueError(f"steps_grid takes panels of shape (rows, steps), got {shapes}.")
    heights = [max(0.5, 0.08 * len(x)) for x in arrays.values()]
    steps = max(x.shape[1] for x in arrays.values())
    figure = new_figure(max(4.0, 0.12 * steps), sum(heights) + 0.4 * len(arrays))
    every = figure.subplots(
        len(arrays), 1, squeeze=False, gridspec_kw={"height_ratios": heights}, sharex=True
    )
    for axes, (title, x) in zip(every[:, 0], arrays.items()):
        axes.imshow(x, aspect="auto", cmap="gray_r", interpolation="none")
        axes.set_title(title, fontsize="small", **PLAIN)
        axes.set_yticks([])
    every[-1, 0].set_xlabel(x_label, **PLAIN)
    return figure


def hops_grid(weights, sentences, question=""):
    """Where each hop of a memory network looks: a row for each sentence, a column for each hop.

    Args:
        weights: (hops, sentences), in [0, 1].
        sentences: list of str.
        question: str, the title.

    Returns:
        A matplotlib figure.

    Raises:
        ValueError: if matplotlib is not installed, or for shapes that do not belong together.

    Example:
    >>> import numpy as np
    >>> from kerasattn.plotting import hops_grid
    >>> figure = hops_grid(np.eye(2), ["Anna went out", "Ben slept"], "Where is Anna?")
    >>> figure.axes[0].images[0].get_array().shape
    (2, 2)
    """
    weights = np.asarray(weights, "float32")
    if weights.ndim != 2 or weights.shape[1] != len(sentences):
        raise ValueError(
            f"hops_grid takes weights (hops, {len(sentences)}), one for each sentence, got "
            f"{weights.shape}."
        )
    hops = len(weights)
    longest = max(map(len, sentences))
    figure = new_figure(0.09 * longest + 0.6 * hops + 0.6, 0.24 * len(sentences) + 0.9)
    axes = figure.subplots()
    axes.imshow(weights.T, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="none")
    for sentence, hop in np.argwhere(weights.T >= 0.01):
        shade = "white" if weights[hop, sentence] > 0.6 else "black"
        text = f"{weights[hop, sentence]:.2f}"
        axes.text(hop, sentence, text, ha="center", va="center", color=shade, fontsize="small")
    axes.set_yticks(range(len(sentences)), sentences, **PLAIN)
    axes.set_xticks(range(hops), [f"hop {hop + 1}" for hop in range(hops)])
    axes.set_title(question, fontsize="small", **PLAIN)
    axes.tick_params(length=0)
    return figure
