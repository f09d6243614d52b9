"""The table of families says what the registry and the tests say."""

import importlib.util
from pathlib import Path

from kerasattn.models.registry import MODELS

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_is_up_to_date():
    spec = importlib.util.spec_from_file_location("families", DOCS / "families.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (DOCS / "families.md").read_text("utf-8")
    assert written == module.page(), "run python docs/families.py"
    rows = [line.split("|")[1:-1] for line in written.splitlines() if line.startswith("| `")]
    assert [row[0].strip(" `") for row in rows] == [family.__name__ for family in MODELS.values()]
    [bert] = [row for row in rows if "BERT`" in row[0] and row[0].strip() == "`BERT`"]
    assert "transformers" in bert[1] and "reads" in bert[2] and bert[6].strip() == "yes"
