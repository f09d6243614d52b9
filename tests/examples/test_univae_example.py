"""The main job at its small setting: files, numbers, stopping and resuming, bad input."""

import fcntl
import importlib.util
import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("the example makes SavedModels", allow_module_level=True)

from kerasattn.models import load_model
from kerasattn.training.checkpoint import ResumableCheckpoint

SCRIPT = Path(__file__).parents[2] / "examples" / "univae.py"
SENTENCES = ["今日好熱。", "聽日落雨？", "我哋去邊度食飯", "佢唔係好鍾意"]


@pytest.fixture(scope="session")
def example():
    spec = importlib.util.spec_from_file_location("univae_example", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """200 sentences that a grammar makes, enough for what is tested here."""
    subjects, verbs, objects = (
        "我你佢",
        ["食咗", "想買", "睇緊", "唔鍾意"],
        ["飯", "魚", "書", "戲"],
    )
    texts = [
        f"{a}{b}{c}{d}"
        for a in subjects
        for b in verbs
        for c in objects
        for d in ("。", "？", "呀", "")
    ]
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("\n".join(texts), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def small(example, tmp_path_factory):
    """The folder of one run at the small setting, on the Cantonese corpus if it is installed."""
    room = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        room = room.parent  # the first worker runs it for all, under a lock
    folder, done = room / "univae" / "new" / "folder", room / "univae_done"
    with open(room / "univae_lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            assert example.main(["--small", "--output", str(folder)]) == 0
            done.touch()
    return folder


# === What it writes ===


@pytest.mark.slow
def test_the_report_has_all_numbers(small):
    report = json.loads((small / "report.json").read_text(encoding="utf-8"))
    for name in ("exact_match", "character_accuracy"):
        assert 0 <= report[name] <= 1
    assert 0 <= report["bleu"] <= 100
    assert report["perplexity"] > 1
    samples = report["samples"]
    assert samples["perplexity_ratio"] == pytest.approx(
        samples["perplexity"] / samples["perplexity_held_out"]
    )
    assert 0 < samples["distinct_2_held_out"] <= 1
    assert 0 <= samples["copies"] <= 1
    assert 0 <= samples["length_total_variation"] <= 1
    layers = report["settings"]["num_latent_layers"]
    assert len(report["latent_use"]) == len(report["rate_bits"]["layers"]) == layers
    assert set(report["replacements"]) == {"nothing", "lower half", "top layer", "everything"}
    for scores in report["replacements"].values():
        assert set(scores) == {"content", "function_words", "punctuation", "length", "pattern"}
    assert report["speed"]["training_tokens_per_second"] > 0
    assert report["speed"]["generated_tokens_per_second"] > 0
    assert {"training", "evaluation", "saving", "pictures"} <= set(report["seconds"])
    assert report["steps"] == report["settings"]["steps"]


def test_the_page_shows_the_four_displays_and_the_pictures(small):
    page = (small / "report.md").read_text(encoding="utf-8")
    assert "it shows the mechanics" in page.split("##")[0]
    for title in ("Random samples", "Original and reconstruction", "lower half", "top layer"):
        assert title in page
    section = page.split("## Random samples")[1].split("##")[0]
    assert sum(line.startswith("| ") for line in section.splitlines()) == 2 + 20
    pictures = [line.split("(")[1][:-1] for line in page.splitlines() if line.startswith("![")]
    assert len(pictures) == 5
    for name in pictures:
        assert (small / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_both_saved_forms_give_the_same_in_a_new_process(small):
    """Strings to strings without this package, and a model.keras that says the same."""
    _run(
        """
        import sys
        import numpy as np
        import tensorflow as tf, tensorflow_text
        folder, path, *sentences = sys.argv[1:]
        saved = tf.saved_model.load(folder)
        latents = saved.encode(tf.constant(sentences))
        texts = [t.decode() for t in saved.decode(latents).numpy()]
        named = saved.signatures["encode"](tf.constant(sentences))["latents"]
        assert np.array_equal(named, latents)
        one = saved.signatures["decode"](latents=latents[:1])["text"].numpy()[0].decode()
        assert one == texts[0] and "kerasattn" not in sys.modules

        from kerasattn.models import load_model
        model = load_model(path, compile=False)
        np.testing.assert_allclose(model.encode(sentences), latents, atol=1e-5)
        assert model.generate(latents.numpy()) == texts
        """,
        small / "saved_model",
        small / "model.keras",
        *SENTENCES,
    )


def _run(code, *arguments):
    lines = [line[8:] for line in code.splitlines()]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-2000:]


# === Stop and resume ===


@pytest.fixture
def tiny(example, monkeypatch):
    """--small with less of everything, for runs of which the sizes do not matter."""
    sizes = dict(num_layers=2, num_heads=1, hidden_dim=8, intermediate_dim=8, batch_size=8)
    for name, value in dict(sizes, num_latent_layers=1).items():
        monkeypatch.setitem(example.SMALL, name, value)


@pytest.fixture
def plain_steps(example, monkeypatch):
    """Gradient descent, where it is not the optimizer that matters: Muon is long to compile."""
    monkeypatch.setattr(example.keras.optimizers, "Muon", lambda **_: keras.optimizers.SGD(0.1))


@pytest.mark.slow
def test_stopped_and_resumed_is_as_if_it_was_not(example, corpus, tiny, tmp_path, monkeypatch):
    """With batches of several lengths, as those of the settings without --small are."""
    monkeypatch.setitem(example.SMALL, "one_length", False)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    original, batches = ResumableCheckpoint.on_train_batch_end, example.data.bucketed_batches
    lengths = []  # of the batches of each fit

    def recorded(*arguments, skip_batches, **more):
        made = batches(*arguments, skip_batches=skip_batches, **more)
        lengths.append([batch.shape[1] for batch in made.take(7 - skip_batches)])
        return made

    def power_cut_after_4(self, batch, logs=None):
        original(self, batch, logs)
        if self.steps == 4 and self.path.parent == whole:
            self.save()
            shutil.copytree(whole, parts)

    def no_more(model, folder):
        raise StopIteration

    monkeypatch.setattr(ResumableCheckpoint, "on_train_batch_end", power_cut_after_4)
    monkeypatch.setattr(example, "export_latent_text", no_more)
    monkeypatch.setattr(example.data, "bucketed_batches", recorded)
    options = ["--small", "--steps", "7", "--corpus", str(corpus)]
    with pytest.raises(StopIteration):
        example.main([*options, "--output", str(whole)])
    keras.utils.set_random_seed(99)
    with pytest.raises(StopIteration):
        example.main(["--output", str(parts), "--resume"])
    assert [len(of_fit) for of_fit in lengths] == [7, 3]
    assert len(set(lengths[0])) > 1 and len(set(lengths[1])) > 1
    states = [np.load(folder / "training.npz") for folder in (whole, parts)]
    abouts = [json.loads(state["about"].tobytes()) for state in states]
    assert abouts[0]["steps"] == abouts[1]["steps"] == 7
    # The optimizer's variables and the states of the random generators are among them.
    names = [name for name, _ in abouts[0]["variables"]]
    assert any("momentum" in name for name in names), names
    assert sum("seed_generator" in name for name in names) >= 4
    assert set(states[0]) == set(states[1])
    for i, (name, _) in enumerate(abouts[0]["variables"]):
        a, b = (state[f"variable_{i}"] for state in states)
        np.testing.assert_array_equal(a, b, err_msg=name)


def test_a_timed_run_goes_on_with_the_rest_of_its_time(
    example, corpus, tiny, plain_steps, tmp_path, monkeypatch
):
    """Stopped while it finds out how fast it is, it knows later what it has spent."""
    original, budgets = ResumableCheckpoint.on_train_batch_end, []

    def stop_at_6(self, batch, logs=None):
        if self.steps == 5:
            self._on_signal(2, None)
        original(self, batch, logs)

    def planned(self, seconds, shapes=1):
        budgets.append((seconds, len(self.step_seconds)))
        raise StopIteration

    monkeypatch.setitem(example.SMALL, "steps", None)
    monkeypatch.setattr(example.Progress, "steps_within", planned)
    options = ["--small", "--minutes", "5", "--corpus", str(corpus), "--output", str(tmp_path)]
    with monkeypatch.context() as patch:
        patch.setattr(ResumableCheckpoint, "on_train_batch_end", stop_at_6)
        assert example.main(options) == 130
    assert not (tmp_path / "model.keras").exists()
    kept = json.loads((tmp_path / "settings.json").read_text())
    assert kept["steps"] is None and kept["trial_steps"] == 10 and kept["trained_seconds"] > 0
    assert not budgets
    with pytest.raises(StopIteration):
        example.main(["--output", str(tmp_path), "--resume"])
    ((seconds, steps),) = budgets
    assert steps == 10 - 6
    assert 0 < seconds < 5 * 60 - kept["trained_seconds"]


def test_stopped_before_the_first_checkpoint(example, small, tmp_path, monkeypatch, capsys):
    """A power cut in the first steps leaves settings alone: there is nothing to lose."""
    (tmp_path / "settings.json").write_bytes((small / "settings.json").read_bytes())
    started = []

    def train(model, token_ids, settings, checkpoint, keep_settings):
        started.append(checkpoint.steps)
        raise StopIteration

    monkeypatch.setattr(example, "train", train)
    with pytest.raises(StopIteration):
        example.main(["--output", str(tmp_path), "--resume"])
    assert started == [0]
    assert "before its first checkpoint: it starts anew" in capsys.readouterr().out


# === Sentences ===


def test_no_sentence_is_on_both_sides_of_the_split(example, tmp_path):
    """Not in another case either, which the tokenizer does not tell apart."""
    texts = [f"How are you, number {i}?" for i in range(60)]
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join([*texts, *(text.lower() for text in texts), *map(str.upper, texts)]))
    settings = {**example.DEFAULTS, "corpus": str(path), "held_out": 20}
    training, held_out = example.read_corpus(settings)
    assert len(training) == 54 and len(held_out) == 6
    tokenizer = example.make_tokenizer(settings, training)
    assert not set(tokenizer.normalize(training)) & set(tokenizer.normalize(held_out))
    assert tokenizer.normalize(training) == training
    assert len(set(training + held_out)) == 60


def test_the_split_of_characters_is_that_of_the_sentences_as_they_are(example, corpus):
    sentences = corpus.read_text(encoding="utf-8").split("\n")
    settings = {**example.DEFAULTS, "corpus": str(corpus), "held_out": 20}
    assert example.read_corpus(settings) == example.data.train_test_split(sentences, 19, 0)


# === Bad input: one clear line each ===


def _complaint(example, capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        example.main([str(argument) for argument in arguments])
    assert stopped.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    return lines[0]


@pytest.mark.parametrize(
    "content, complaint",
    [
        (None, "There is no corpus file"),
        (b"", "is empty"),
        (b"\xff\x00\x12\x80", "is not UTF-8 text"),
        ("今日好熱\n今日好熱\n".encode(), "1 different sentence;"),
        (b"\x01\x02\n\x03\n", "0 different sentences as the tokenizer reads them"),
    ],
)
def test_bad_corpus(example, capsys, tmp_path, content, complaint):
    path = tmp_path / "corpus.txt"
    if content is not None:
        path.write_bytes(content)
    line = _complaint(example, capsys, "--corpus", path, "--output", tmp_path / "out")
    assert complaint in line and "corpus.txt" in line


def test_output_that_cannot_be_written(example, capsys, tmp_path):
    (tmp_path / "file").write_text("")
    line = _complaint(example, capsys, "--output", tmp_path / "file" / "folder")
    assert "can't be written" in line


def test_start_from_what_is_no_model(example, capsys, tmp_path, corpus):
    options = ["--corpus", corpus, "--output", tmp_path / "out", "--from"]
    assert "nowhere" in _complaint(example, capsys, *options, tmp_path / "nowhere")
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    assert str(tmp_path) in _complaint(example, capsys, *options, tmp_path)


def test_start_from_a_roformer(example, tmp_path, corpus, plain_steps, monkeypatch):
    """A folder of weights with its vocabulary: trained on from there, under its settings."""
    folder = SCRIPT.parents[1] / "tests" / "golden" / "models" / "roformer_mlm_emb16"

    class Trained(Exception):
        pass

    def no_more(model, folder):
        raise Trained(model)

    monkeypatch.setattr(example, "export_latent_text", no_more)
    options = ["--small", "--steps", "2", "--corpus", corpus, "--from", folder]
    with pytest.raises(Trained) as stopped:
        example.main([*map(str, options), "--output", str(tmp_path)])
    model = stopped.value.args[0]
    config = json.loads((folder / "config.json").read_text())
    assert model.get_config()["num_layers"] == config["num_hidden_layers"]
    assert model.get_config()["isotropy_weight"] == example.DEFAULTS["isotropy_weight"]
    assert model.tokenizer.vocabulary[5:8] == folder.joinpath("vocab.txt").read_text().split()[5:8]
    assert int(model.optimizer.iterations) == 2


def test_a_truncated_model(example, capsys, tmp_path, corpus, small):
    whole = (small / "model.keras").read_bytes()
    for size in (0, 1000, len(whole) // 2, len(whole) - 1):
        (tmp_path / "model.keras").write_bytes(whole[:size])
        options = ["--corpus", corpus, "--output", tmp_path / "out"]
        line = _complaint(example, capsys, *options, "--from", tmp_path / "model.keras")
        assert "truncated" in line
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    (tmp_path / "model.keras").write_bytes(damaged)
    with pytest.raises(ValueError, match="damaged"):
        load_model(tmp_path / "model.keras")


def test_resume_needs_a_run(example, capsys, tmp_path, small, corpus):
    assert "no run" in _complaint(example, capsys, "--resume", "--output", tmp_path / "none")
    line = _complaint(example, capsys, "--resume", "--output", small, "--latent-dim", "5")
    assert "--latent-dim 8" in line
    copy = tmp_path / "copy"
    copy.mkdir()
    for content, complaint in (
        ("[1]", "holds no run"),
        ("{", "holds no run"),
        ("[" * 100_000, "holds no run"),
        ("{}", "settings.json is not of this script: no batch_size, "),
        (json.dumps({**example.DEFAULTS, "start_from": None, "kappa": "3"}), "finite number"),
    ):
        (copy / "settings.json").write_text(content)
        assert complaint in _complaint(example, capsys, "--resume", "--output", copy)
    (copy / "settings.json").write_bytes((small / "settings.json").read_bytes())
    whole = (small / "training.npz").read_bytes()
    (copy / "training.npz").write_bytes(whole[: len(whole) // 2])
    assert "truncated" in _complaint(example, capsys, "--resume", "--output", copy)


@pytest.mark.parametrize(
    "options, complaint",
    [
        (["--steps", "0"], "--steps must be at least 1"),
        (["--learning-rate", "0"], "--learning-rate must be above 0, got 0.0"),
        (["--learning-rate", "nan"], "--learning-rate must be a finite number"),
        (["--minutes", "0"], "--minutes must be above 0"),
        (["--minutes", "inf"], "--minutes must be a finite number"),
        (["--seed", "-1"], "--seed must be at least 0, got -1"),
        (["--seed", str(2**32)], "between 0 and 2**32 - 1"),
        (["--dropout", "1"], "dropout must be in"),
        (["--num-heads", "0"], "--num-heads must be at least 1"),
        (["--latent", "cauchy"], "invalid choice"),
        (["--num-latent-layers", "3"], "num_latent_layers must be from 1 to num_layers - 1 = 2"),
        (["--hidden-dim", "31"], "must divide hidden_dim"),
        (["--max-length", "3"], "No sentence of"),
    ],
)
def test_settings_that_do_not_go(example, capsys, tmp_path, corpus, options, complaint):
    options = ["--small", "--corpus", corpus, "--output", tmp_path / "out", *options]
    assert complaint in _complaint(example, capsys, *options)


def test_options_that_the_model_to_start_from_contradicts(example, capsys, tmp_path, corpus, small):
    """It keeps what it was made with, and says so rather than doing something else."""
    options = ["--corpus", corpus, "--output", tmp_path / "out", "--from", small / "model.keras"]
    given = ["--latent", "gaussian", "--length", "conditioned", "--latent-dim", "5"]
    given += ["--kappa", "3", "--max-length", "9", "--dropout", "0.5", "--num-layers", "3"]
    line = _complaint(example, capsys, *options, *given)
    own = f"--dropout 0.0, --kappa {example.DEFAULTS['kappa']}, --latent vmf, --latent-dim 8, "
    assert f"The model has {own}--length fixed, --max-length 22: say the same" in line
    folder = SCRIPT.parents[1] / "tests" / "golden" / "models" / "roformer_mlm_emb16"
    given = ["--num-latent-layers", "2", "--num-layers", "7"]
    line = _complaint(example, capsys, *options[:-1], folder, *given)
    assert "The model has --num-layers 3" in line


def test_settings_are_those_of_the_model_to_start_from(
    example, tmp_path, corpus, small, monkeypatch
):
    def train(*arguments):
        raise StopIteration

    monkeypatch.setattr(example, "train", train)
    options = ["--corpus", corpus, "--output", tmp_path, "--from", small / "model.keras"]
    with pytest.raises(StopIteration):
        example.main([str(option) for option in options])
    settings = json.loads((tmp_path / "settings.json").read_text())
    made_with = json.loads((small / "settings.json").read_text())
    for name in ("num_layers", "hidden_dim", "latent_dim", "kappa", "max_length", "latent"):
        assert settings[name] == made_with[name], name
    assert settings["hidden_dim"] != example.DEFAULTS["hidden_dim"]


def test_what_the_report_needs_is_looked_for_before_the_training(example, capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    line = _complaint(example, capsys, "--small")
    assert 'matplotlib, sacrebleu are not installed: pip install "kerasattn[examples]"' in line


@pytest.mark.skipif(sys.platform != "linux", reason="huge pages are asked for on Linux")
def test_as_a_script(monkeypatch):
    """It starts again with huge pages, and is then what `main` is."""

    def started(*arguments):
        raise StopIteration(*arguments)

    monkeypatch.setenv("GLIBC_TUNABLES", "")
    monkeypatch.delenv("GLIBC_TUNABLES")
    monkeypatch.setattr(os, "execv", started)
    with pytest.raises(StopIteration) as stopped:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert stopped.value.args == (sys.executable, sys.orig_argv)
    assert "hugetlb" in os.environ["GLIBC_TUNABLES"]
    monkeypatch.setattr(sys, "argv", ["univae.py", "--steps", "0"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert stopped.value.code == 2


def test_a_full_disk(example, capsys, tmp_path, corpus, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(example, "write_whole", full)
    line = _complaint(example, capsys, "--small", "--corpus", corpus, "--output", tmp_path)
    assert "settings.json: No space left on device" in line
