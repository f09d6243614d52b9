"""An empty figure, and labels that its fonts can draw."""

import functools
import importlib.util
import re
from pathlib import Path

CJK = re.compile(
    "CJK|Source Han|WenQuanYi|AR PL|UMing|UKai|Hei|Song|Kai|Ming|PingFang|YaHei|JhengHei|Sun"
    "|Droid Sans Fallback|Arial Unicode|Unifont|Hiragino|Gothic",
)
# Packages that bring a font with them, beside those that the system has installed.
FONT_PACKAGES = ("mplfonts",)


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

    Where no installed font has a character, the labels are numbers from 1 on: an empty box
    tells less.

    Returns:
        list of str, dict for matplotlib's text functions, bool: whether the labels are kept.
    """
    characters = frozenset("".join(labels)) - {" "}
    default = font_file()
    if characters <= _characters(default):
        return list(labels), {}, True
    for path in _cjk_fonts():
        if characters <= _characters(path) | _characters(default):
            from matplotlib import font_manager

            if path not in {font.fname for font in font_manager.fontManager.ttflist}:
                font_manager.fontManager.addfont(path)
            name = font_manager.FontProperties(fname=path).get_name()
            return list(labels), {"fontfamily": [name, "DejaVu Sans"]}, True
    return [str(i) for i in range(1, len(labels) + 1)], {}, False


def font_file():
    """The font that comes with matplotlib."""
    import matplotlib

    return str(Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf"))


def _cjk_fonts():
    from matplotlib import font_manager

    yield from (f.fname for f in font_manager.fontManager.ttflist if CJK.search(f.name))
    for package in FONT_PACKAGES:
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            yield from (str(path) for path in sorted(Path(folder).rglob("*.[ot]tf")))


@functools.cache
def _characters(path):
    """The characters that a font file can draw."""
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(map(chr, FT2Font(path).get_charmap()))
    except (OSError, RuntimeError):
        return frozenset()
