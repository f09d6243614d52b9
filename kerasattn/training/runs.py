"""What scripts that train have in common: settings from a command line, a folder to write into."""

import contextlib
import importlib.util
import json
import math
import numbers
import os
import sys
from pathlib import Path


def option(name):
    """The command line's name of a setting.

    Example:
    >>> from kerasattn.training.runs import option
    >>> option("batch_size")
    '--batch-size'
    """
    return f"--{name.replace('_', '-')}"


def check_numbers(settings, at_least, above):
    """Refuses numbers that nothing can be made of, before anything is made.

    Args:
        settings: dict; None is no number, and passes.
        at_least, above: dicts from the names of settings to the least that they may be, or to
            what they must be above.

    Raises:
        ValueError: naming the option.

    Example:
    >>> from kerasattn.training.runs import check_numbers
    >>> check_numbers({"learning_rate": 0.0}, {}, {"learning_rate": 0})
    Traceback (most recent call last):
    ValueError: --learning-rate must be above 0, got 0.0.
    """
    for name in at_least.keys() | above.keys():
        value = settings.get(name)
        if value is None:
            continue
        if not isinstance(value, numbers.Real) or not math.isfinite(value):
            raise ValueError(f"{option(name)} must be a finite number, got {value!r}.")
        if name in at_least and value < at_least[name]:
            raise ValueError(f"{option(name)} must be at least {at_least[name]}, got {value}.")
        if name in above and value <= above[name]:
            raise ValueError(f"{option(name)} must be above {above[name]}, got {value}.")


def check_writable(folder):
    """Makes a folder and tries to write into it.

    Raises:
        ValueError: if it can't be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        message = f"The output folder {folder} can't be written: {error.strerror}."
        raise ValueError(message) from None


def read_settings(path):
    """The settings that a run has kept, a dict; None if there are none that can be read."""
    try:
        settings = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return settings if isinstance(settings, dict) else None


def check_installed(packages, extra):
    """Refuses to begin what could not be finished, for want of packages.

    Args:
        packages: names to import.
        extra: the extra of kerasattn that brings them.

    Raises:
        ValueError: naming those that are not installed.

    Example:
    >>> from kerasattn.training.runs import check_installed
    >>> check_installed(["json", "no_such_package"], "examples")
    Traceback (most recent call last):
    ValueError: no_such_package is not installed: pip install "kerasattn[examples]".
    """
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise ValueError(
            f'{", ".join(missing)} {verb} not installed: pip install "kerasattn[{extra}]".'
        )


def write_whole(path, content):
    """Writes a file that is there as a whole or not at all; what is no text is written as JSON."""
    if not isinstance(content, str):
        content = json.dumps(content, indent=2, ensure_ascii=False, default=float)
    temporary = path.with_name(f".{path.name}")
    temporary.write_text(content, encoding="utf-8")
    os.replace(temporary, path)


def stop(message):
    """Ends the script with one line on stderr."""
    script = Path(sys.argv[0]).name
    print(f"{script}: {' '.join(str(message).split())}", file=sys.stderr)
    sys.exit(2)


@contextlib.contextmanager
def one_line_errors():
    """What is wrong with files and settings is the user's to read, without a traceback."""
    try:
        yield
    except ValueError as error:
        stop(error)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        stop(f"{where}{error.strerror or error}.")
