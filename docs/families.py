"""Writes docs/families.md: what each family of the zoo reads, writes and can do.

    python docs/families.py

Nothing in the table is typed in by hand: families, formats and heads come from the registry and
the formats that each class declares, the rest from the tests that hold it to that.
"""

import ast
import inspect
from pathlib import Path

from kerasattn.layers.attention_mask import APPLICATIONS
from kerasattn.models.encoder_decoder import EncoderDecoder
from kerasattn.models.language_model import LanguageModel
from kerasattn.models.registry import MODELS
from kerasattn.weights import TensorFlowSource
from kerasattn.weights.tables.elmo import ELMoSource

HERE = Path(__file__).parent
TESTS = HERE.parent / "tests" / "models"
COLUMNS = ("family", "HF", "TF", "heads", "applications", "generation", "export")
INTRODUCTION = """# The families

Made by `python docs/families.py` from the registry and the tests; a test fails where it is out of
date.

- **HF**: folders as Hugging Face has them. "transformers" is said where a test loads what
  `save_pretrained` wrote with transformers (PyTorch) and gets the same outputs within 1e-4; a
  family without it is unknown to transformers 5, or its folders are read here alone.
- **TF**: TensorFlow checkpoints of the authors, or another kind of files of theirs.
- **heads**: what `heads=` takes; every head may be asked for, newly initialized where a checkpoint
  has none. "lm" is the head of models that write.
- **applications**: what `application=` takes, or what the model is.
- **generation**: whether the model has `generate`; an encoder with application "lm" or "unilm",
  XLNet in any.
- **export**: whether a test compares its SavedModel with the model.
"""


# === What tests say ===
def calls(path, name):
    """The calls of a function of a name in a file."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == name:
            yield node


def exported():
    """The names of the classes whose SavedModels `check_model` compares with them."""
    found = set()
    for path in TESTS.glob("test_*.py"):
        for call in calls(path, "check_model"):
            skips = [keyword.value for keyword in call.keywords if keyword.arg == "skip"]
            words = [node for skip in skips for node in ast.walk(skip)]
            if "saved_model" not in {getattr(word, "value", None) for word in words}:
                found |= _classes(path, call.args[0])
    return found


def _classes(path, node):
    """What a call's first argument may be: a class, or those that a test is parametrized with."""
    named = {getattr(node, "id", None), getattr(node, "attr", None)} & NAMES
    if named:
        return named
    tree = ast.walk(ast.parse(path.read_text("utf-8")))
    calls = (n for n in tree if isinstance(n, ast.Call))
    given = (call for call in calls if getattr(call.func, "attr", None) == "parametrize")
    return {getattr(word, "id", None) for call in given for word in ast.walk(call)} & NAMES


def read_by_transformers():
    """The names of the classes that tests/peers/test_transformers.py tries."""
    tree = ast.parse((TESTS.parent / "peers" / "test_transformers.py").read_text("utf-8"))
    assignments = [node for node in tree.body if isinstance(node, ast.Assign)]
    [cases] = [node.value for node in assignments if node.targets[0].id == "CASES"]
    return {case.elts[0].attr for case in cases.elts}


# === The table ===
NAMES = {family.__name__ for family in MODELS.values()}


def row(family, tried, saved):
    """The cells of one family."""
    name = family.__name__
    published = [form for form in family.formats if form.name.startswith("Hugging Face")]
    from_tensorflow = any(form.source is TensorFlowSource for form in family.formats)
    others = "reads HDF5" if any(form.source is ELMoSource for form in family.formats) else None
    arguments = inspect.signature(family.__init__).parameters
    heads, applications = ["lm"], ["encoder and decoder"]
    if "heads" in arguments:
        heads = list(family.formats[0].heads)
    elif "with_head" not in arguments and not hasattr(family, "generate"):
        heads = []
    if "application" in arguments:
        applications = APPLICATIONS
    elif issubclass(family, LanguageModel):
        applications = ["lm"]
    elif not issubclass(family, EncoderDecoder):
        applications = ["encoder"] if not hasattr(family, "generate") else ["autoencoder"]
    writes = published and published[0] is family.formats[0]
    transformers = ", transformers" if name in tried else ""
    return (
        f"`{name}`",
        ("reads, writes" if writes else "reads") + transformers if published else "–",
        "reads" if from_tensorflow else others or "–",
        ", ".join(heads) or "–",
        ", ".join(applications),
        "yes" if hasattr(family, "generate") else "–",
        "yes" if name in saved else "untested",
    )


def page():
    """The whole of docs/families.md."""
    tried, saved = read_by_transformers(), exported()
    rows = [COLUMNS, ["---"] * len(COLUMNS)]
    rows += [row(family, tried, saved) for family in MODELS.values()]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in rows)
    return f"{INTRODUCTION}\n{table}\n"


if __name__ == "__main__":
    (HERE / "families.md").write_text(page(), encoding="utf-8")
