"""Scores of spans, by seqeval."""

from kerasattn.data.tagging.scheme import TaggingScheme


def span_scores(scheme, true, predicted):
    """Precision, recall and F1 of spans, counted over all sentences; a span counts if it is exact.

    Tags that the scheme does not allow are read as `TaggingScheme.repair` reads them.

    Args:
        scheme: `TaggingScheme` of both.
        true, predicted: lists of sentences, each a list of tags.

    Returns:
        dict with "precision", "recall", "f1" and "support" (true spans), and of each type such a
        dict under its name.

    Raises:
        ValueError: if seqeval is not installed, or sentences differ in their number or length.

    Example:
    >>> import pytest
    >>> _ = pytest.importorskip("seqeval")
    >>> from kerasattn.data.tagging import TaggingScheme, span_scores
    >>> scheme = TaggingScheme("BIO", ["PER", "LOC"])
    >>> scores = span_scores(scheme, [["B-PER", "I-PER", "B-LOC"]], [["B-PER", "I-PER", "O"]])
    >>> scores["precision"], scores["recall"], scores["PER"]["f1"]
    (1.0, 0.5, 1.0)

    Source: https://www.clips.uantwerpen.be/conll2000/chunking/output.html
    """
    try:
        from seqeval.metrics import classification_report
    except ImportError:
        raise ValueError(
            'Scores of spans need seqeval: pip install "kerasattn[tagging]".'
        ) from None
    lengths = [list(map(len, sentences)) for sentences in (true, predicted)]
    if lengths[0] != lengths[1]:
        raise ValueError("true and predicted differ in their sentences or in how long they are.")
    plain = TaggingScheme("BIO", scheme.types)
    sides = [
        [scheme.convert(tags, plain, repair=True) for tags in side] for side in (true, predicted)
    ]
    if not any(tag != "O" for side in sides for tags in side for tag in tags):
        return dict(precision=0.0, recall=0.0, f1=0.0, support=0)  # seqeval refuses it
    report = classification_report(*sides, output_dict=True, zero_division=0)
    scores = {
        name: dict(
            precision=float(row["precision"]),
            recall=float(row["recall"]),
            f1=float(row["f1-score"]),
            support=int(row["support"]),
        )
        for name, row in report.items()
    }
    total = scores.pop("micro avg")
    return {**total, **{name: row for name, row in scores.items() if name in scheme.types}}
