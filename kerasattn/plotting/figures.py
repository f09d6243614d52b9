"""An empty figure, and labels that its fonts can draw."""

import functools
import re
from pathlib import Path

CJK = re.compile(
    "CJK|Source Han|WenQuanYi|AR PL|UMing|UKai|Hei|Song|Kai|Ming|PingFang|YaHei|JhengHei|Sun"
    "|Droid Sans Fallback|Arial Unicode|Unifont|Hiragino|Gothic",
)
PLAIN = {"parse_math": False}  # a dollar sign is one


def new_figure(width, height):
    """A matplotlib `Figure` of so many inches, without pyplot's global state.

    Raises:
        ValueError: if matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError('Pictures need matplotlib: pip install "kerasattn[plotting]".') from None
    return Figure(figsize=(width, height), layout="constrained", dpi=120)


def label_style(labels):
    """The labels, and keyword arguments of the text that can draw them.

    Where no installed font has a label's characters, it becomes its number, from 1 on: empty boxes
    would tell less.

    Returns:
        list of str, dict for matplotlib's text functions, bool: whether all labels are kept.
    """
    characters = frozenset("".join(labels)) - {" "}
    default = _default_font()
    if characters <= _characters(default):
        return list(labels), PLAIN, True
    for font in _fonts():
        if characters <= _characters(font.fname) | _characters(default):
            return list(labels), {**PLAIN, "fontfamily": [font.name, "DejaVu Sans"]}, True
    known = _characters(default) | {" "}
    return [x if known.issuperset(x) else str(i + 1) for i, x in enumerate(labels)], PLAIN, False


def _default_font():
    """The font that comes with matplotlib."""
    import matplotlib

    return str(Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf"))


def _fonts():
    """The installed fonts that may have Chinese, Japanese or Korean characters."""
    from matplotlib import font_manager

    return [font for font in font_manager.fontManager.ttflist if CJK.search(font.name)]


@functools.cache
def _characters(path):
    """The characters that a font file can draw."""
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(map(chr, FT2Font(path).get_charmap()))
    except (OSError, RuntimeError):
        return frozenset()
