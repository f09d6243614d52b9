"""Where a model looks while it writes one token."""

import numpy as np

from kerasattn.plotting.figures import label_style, new_figure


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
