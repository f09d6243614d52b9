"""Training curves."""

from kerasattn.plotting.figures import new_figure


def training_curves(history, log_scale=("perplexity",)):
    """A panel over the steps for each metric that changes.

    Args:
        history: list of dicts, each with `step` and metrics, as `ResumableCheckpoint.history`.
        log_scale: names of metrics that are drawn on a logarithmic scale.

    Returns:
        A matplotlib figure.

    Raises:
        ValueError: if matplotlib is not installed, or the history has no metric.

    Example:
    >>> from kerasattn.plotting import training_curves
    >>> figure = training_curves([{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}])
    >>> figure.axes[0].lines[0].get_xydata().tolist()
    [[1.0, 2.0], [2.0, 1.0]]
    """
    values = {}
    for row in history:
        for name, value in row.items():
            values.setdefault(name, set()).add(value)
    names = [name for name in values if name != "step"]
    names = [name for name in names if len(values[name]) > 1] or names
    if not names:
        raise ValueError("The history holds no metric: expected dicts of `step` and metrics.")
    figure = new_figure(4.2 * len(names), 3.2)
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names):
        points = [(row["step"], row[name]) for row in history if name in row]
        axes.plot(*zip(*points), marker="." if len(points) < 20 else None)
        axes.set(xlabel="step", title=name)
        if name in log_scale and min(value for _, value in points) > 0:
            axes.set_yscale("log")
        axes.grid(alpha=0.3)
    return figure
