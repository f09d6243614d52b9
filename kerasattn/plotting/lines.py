"""Lines over numbers."""

from kerasattn.plotting.figures import PLAIN, new_figure


def line_chart(series, x_label, y_label, marks=None):
    """A line for each series, in one panel.

    Args:
        series: dict from names to pairs (x, y) of numbers alike in length.
        x_label, y_label: str.
        marks: dict from names to places on x, drawn as dotted lines; or None.

    Returns:
        A matplotlib figure.

    Raises:
        ValueError: if matplotlib is not installed, or for no series.

    Example:
    >>> from kerasattn.plotting import line_chart
    >>> figure = line_chart({"error": ([1, 2], [0.5, 0.2])}, "hops", "share", {"now": 1.5})
    >>> figure.axes[0].lines[0].get_ydata()
    array([0.5, 0.2])
    """
    if not series:
        raise ValueError("line_chart takes at least one series, got none.")
    figure = new_figure(5.0, 3.2)
    axes = figure.subplots()
    for name, (x, y) in series.items():
        axes.plot(x, y, marker=".", label=name)
    for name, place in (marks or {}).items():
        axes.axvline(place, color="grey", linestyle=":", label=name)
    axes.set_xlabel(x_label, **PLAIN)
    axes.set_ylabel(y_label, **PLAIN)
    axes.grid(alpha=0.3)
    axes.legend()
    return figure
