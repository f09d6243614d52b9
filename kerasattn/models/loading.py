"""Loading a `.keras` file, with one clear error for whatever is wrong with it."""

import zipfile
from pathlib import Path

import keras


def load_model(path, **options):
    """`keras.models.load_model` for models of kerasattn, in safe mode.

    Args:
        path: a `.keras` file.
        **options: of `keras.models.load_model`, such as `compile=False`.

    Raises:
        ValueError: if the file is missing, truncated or damaged, or holds something else.

    Example:
    >>> import pathlib, tempfile
    >>> from kerasattn.models import load_model
    >>> path = pathlib.Path(tempfile.mkdtemp(), "model.keras")
    >>> _ = path.write_bytes(b"PK")
    >>> load_model(path)
    Traceback (most recent call last):
    ValueError: ...model.keras is no .keras file, or a truncated one.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"There is no model file {path}.")
    what = f"{path} is no .keras file, or a truncated one."
    if not zipfile.is_zipfile(path):  # the directory of a zip archive stands at its end
        raise ValueError(what)
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise ValueError(f"{what} ({error})") from None
    if damaged or "config.json" not in names:
        raise ValueError(f"{path} is damaged at {damaged}." if damaged else what)
    try:
        return keras.models.load_model(path, **options)
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} can't be loaded: {reason[:300]}") from error
