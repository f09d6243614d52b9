"""The package as a whole: names, docstrings, import cost, the wheel, the README."""

import importlib
import inspect
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import kerasattn

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "kerasattn"


def modules():
    names = (m.name for m in pkgutil.walk_packages([str(PACKAGE)], prefix="kerasattn."))
    return ["kerasattn", *sorted(names)]


def python(code, **environment):
    """Runs code in a new process, away from the checkout's folder, and returns what it prints."""
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
        cwd=ROOT.anchor,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout.strip()


# === Names ===


@pytest.mark.parametrize("name", modules())
def test_modules_name_what_exists_and_explain_it(name):
    module = importlib.import_module(name)
    if hasattr(module, "__path__"):
        assert module.__doc__, f"{name} has no docstring"
        assert hasattr(module, "__all__"), f"{name} has no __all__"
    for public in getattr(module, "__all__", ()):
        thing = getattr(module, public)
        # bert4keras' modules have Keras' layers too, which Keras explains.
        of_ours = getattr(thing, "__module__", "").startswith("kerasattn")
        if callable(thing) and not inspect.ismodule(thing) and of_ours:
            assert inspect.getdoc(thing), f"{name}.{public} has no docstring"
            for method, function in vars(thing).items() if inspect.isclass(thing) else ():
                if inspect.isfunction(function) and _is_for_users(thing, method):
                    described = inspect.getdoc(getattr(thing, method))
                    assert described, f"{name}.{public}.{method} has no docstring"


WITHOUT_EXAMPLE = {
    "Tokenizer": "it is abstract; the kinds have theirs",
    "TensorFlowSource": "it needs a checkpoint that TensorFlow wrote",
    "TorchSource": "it needs a file that PyTorch wrote",
}


@pytest.mark.parametrize("name", [n for n in modules() if n.count(".") <= 1])
def test_public_names_show_how_they_are_used(name):
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", ()):
        thing = getattr(module, public)
        if callable(thing) and not inspect.ismodule(thing):
            shown = ">>>" in inspect.getdoc(thing)
            assert shown != (public in WITHOUT_EXAMPLE), f"{name}.{public}: {shown}"


def _is_for_users(cls, method):
    """Not a field that holds a function, nor one of the methods that Keras calls."""
    of_keras = ("_", "call", "build", "compute_", "get_config", "from_config")
    return method not in inspect.get_annotations(cls) and not method.startswith(of_keras)


def test_versions_agree():
    assert re.fullmatch(r"\d+\.\d+\.\d+", kerasattn.__version__)
    assert f"## {kerasattn.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf8")


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'layer'"):
        kerasattn.layer
    assert set(kerasattn.__all__) <= set(dir(kerasattn))


# === Imports ===


def test_importing_costs_little_and_imports_nothing_heavy():
    """Keras imports TensorFlow if that is its backend, so we ask who asks for what."""
    code = """
import builtins, time, keras
plain, heavy = builtins.__import__, ("tensorflow", "tensorflow_text", "matplotlib", "pycantonese")
def watched(name, globals=None, *args, **kwargs):
    asker = (globals or {}).get("__name__", "")
    if asker.startswith("kerasattn") and name.split(".")[0] in heavy:
        print(asker, "imports", name)
    return plain(name, globals, *args, **kwargs)
builtins.__import__ = watched
start = time.process_time()
import kerasattn
seconds = time.process_time() - start
for name in kerasattn.__all__:
    getattr(kerasattn, name)
print(seconds)
"""
    keeps = {"PYTHONDONTWRITEBYTECODE": ""}  # compiled files, as an installed package has them
    *heavy, seconds = python(code, **keeps).splitlines()
    assert not heavy
    if float(seconds) > 0.3:  # once more: the files may have been compiled for the first time
        seconds = python(code, **keeps)
    assert float(seconds) <= 0.3


# === What is shipped ===


def test_the_wheel_has_the_package_and_nothing_else(tmp_path):
    pytest.importorskip("build", reason="the wheel is built with the test extra's tools")
    source, dist = tmp_path / "source", tmp_path / "dist"
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(PACKAGE, source / "kerasattn", ignore=ignore)
    shutil.copytree(ROOT / "tests", source / "tests", ignore=ignore)
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", dist, source],
        check=True,
        capture_output=True,
    )
    [wheel] = dist.iterdir()
    names = set(zipfile.ZipFile(wheel).namelist())
    files = {p.relative_to(ROOT).as_posix() for p in PACKAGE.rglob("*.py")}
    info = {name for name in names if name.startswith("kerasattn-")}
    assert names - info == files | {"kerasattn/py.typed"}
    assert any(name.endswith("LICENSE") for name in info)


def test_the_readme_says_two_commands_of_one_line_each():
    readme = (ROOT / "README.md").read_text("utf8")
    commands = re.findall(r"^pip install -e .*$", readme, re.MULTILINE)
    assert len(commands) == 2 and all(" && " in command for command in commands)


@pytest.mark.slow
def test_the_readme_python_runs():
    pytest.importorskip("tensorflow_text", reason="the README's tokenizer is TensorFlow's")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf8"), re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:  # each alone, as it is pasted
        exec(compile(block, "README.md", "exec"), {"__name__": "readme"})
