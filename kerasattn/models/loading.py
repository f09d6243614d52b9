"""Loading any model: a `.keras` file, or a folder of pretrained weights."""

import zipfile
from pathlib import Path

import keras

from kerasattn.models.registry import MODELS
from kerasattn.weights.sources import read_json


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
    except Exception as error:  # a damaged archive raises errors of every kind
        raise ValueError(f"{what} ({error})") from None
    if damaged or "config.json" not in names:
        raise ValueError(f"{path} is damaged at {damaged}." if damaged else what)
    try:
        return keras.models.load_model(path, **options)
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} can't be loaded: {reason[:300]}") from error


def from_pretrained(folder, **options):
    """The model whose weights a folder holds, of whatever family.

    Args:
        folder: path of a folder of Hugging Face (config.json; safetensors or pytorch_model.bin, one
            file or shards) or of a TensorFlow checkpoint (bert_config.json and others).
        **options: of the family's `from_pretrained`, such as `heads=("class",)`, and arguments of
            its constructor.

    Raises:
        ValueError: for a folder of no known family, a corrupt file, or weights that do not fit.

    Example:
    >>> import tempfile
    >>> import kerasattn
    >>> folder = tempfile.mkdtemp()
    >>> sizes = dict(num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8)
    >>> kerasattn.models.BERT(30, **sizes).save_pretrained(folder)
    >>> type(kerasattn.from_pretrained(folder)).__name__
    'BERT'
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder.")
    for family in MODELS.values():
        if any(form.describes(folder) for form in family.formats):
            return family.from_pretrained(folder, **options)
    there = ", ".join(sorted(path.name for path in folder.iterdir())[:20]) or "nothing"
    kind = ""
    if (folder / "config.json").is_file():
        kind = f" of model_type {read_json(folder / 'config.json').get('model_type')!r}"
    raise ValueError(
        f"{folder} is of no family known here{kind}: it holds {there}. There are "
        f"{', '.join(MODELS)}."
    )
