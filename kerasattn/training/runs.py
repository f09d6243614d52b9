"""What scripts that train have in common: settings from a command line, a folder to write into."""

import argparse
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


def command_line(script, output, settings, defaults, **more):
    """A parser of --output, --small and an option for each setting, None where it is not given.

    Args:
        script: str, the script's docstring, of which the first line tells what it does.
        output: str, the folder to write into if none is given.
        settings: tuples of a setting's name, its type and what it is.
        defaults: dict of what the settings are if they are not given; for the help text.
        **more: further arguments of `argparse.ArgumentParser`.

    Example:
    >>> from kerasattn.training.runs import command_line
    >>> parser = command_line("Counts.", "counts", [("seed", int, "of all draws")], {"seed": 0})
    >>> vars(parser.parse_args(["--seed", "3", "--small"])) | {"output": None}
    {'output': None, 'small': True, 'seed': 3}
    """
    parser = argparse.ArgumentParser(description=script.split("\n")[0], **more)
    parser.error = stop
    parser.add_argument(
        "--output",
        metavar="DIR",
        type=Path,
        default=Path(output),
        help=f"folder to write into (default {output})",
    )
    parser.add_argument("--small", action="store_true", help="tiny settings: see that it runs")
    for name, kind, text in settings:
        default = "" if defaults.get(name) is None else f" (default {defaults[name]})"
        parser.add_argument(option(name), type=kind, metavar="N", help=text + default)
    return parser


def settle(given, defaults, small):
    """The settings that hold: the defaults, then those of --small, then those that are given.

    Args:
        given: what a parser of `command_line` has read.
        defaults, small: dicts.

    Example:
    >>> import argparse
    >>> from kerasattn.training.runs import settle
    >>> given = argparse.Namespace(small=True, seed=3, epochs=None)
    >>> settled = settle(given, {"seed": 0, "epochs": 5}, {"seed": 1, "epochs": 2})
    >>> settled.seed, settled.epochs
    (3, 2)
    """
    given = {name: value for name, value in vars(given).items() if value is not None}
    return argparse.Namespace(**{**defaults, **(small if given["small"] else {}), **given})


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


def package_folder(package, requirement):
    """The folder of an installed package, which is not imported.

    Raises:
        ValueError: saying how to install it, if it is not there.

    Example:
    >>> from kerasattn.training.runs import package_folder
    >>> package_folder("no_such_package", "--no-deps no-such-package==1.0")
    Traceback (most recent call last):
    ValueError: no_such_package is not installed: pip install --no-deps no-such-package==1.0
    """
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise ValueError(f"{package} is not installed: pip install {requirement}")
    return Path(spec.submodule_search_locations[0])


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
