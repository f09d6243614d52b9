"""Which characters of a text the pieces of SentencePiece stand for."""

SPACE = "\u2581"


def piece_spans(tokenizer, original, text, owners, ids, starts, ends):
    """The (start, end) of a row's tokens in the original text.

    The space before a word is left out of the word's span, and a space that is a token by itself
    stands at the word's first character; but Llama's tokenizer lets spaces in. Both as the
    published ones do.

    Args:
        tokenizer: a `SentencePieceTokenizer`.
        original: str.
        text: str, what the model read.
        owners: the (start, end) in the original of each character of `text`, None if they are
            the same.
        ids, starts, ends: the row's pieces and their bytes in `text`.
    """
    character = _character_of_byte(text)
    commas = tokenizer._comma_rows() if tokenizer.folding else {}
    skip_spaces = tokenizer.family != "llama"
    spans = []
    for token_id, start, end in zip(ids, starts, ends):
        start, end = character[start], character[end]
        piece = tokenizer.vocabulary[token_id]
        if piece.startswith("<0x") and start == end and start < len(text):
            end = start + 1  # the bytes of one character, of which the last has the span
        if skip_spaces or start == end:
            start, end = _without_spaces(text, start, end)
        elif spans == [] and piece.startswith(SPACE):
            start = _without_spaces(text, start, end)[0]
        parts = commas.get(token_id)
        spans += _divide(tokenizer, parts, start, end) if parts else [(start, end)]
    if owners is None:
        return spans
    return [_owned(owners, start, end) for start, end in spans]


def _without_spaces(text, start, end):
    """The span less spaces at its ends; that of the next character if nothing is left."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start == end:
        while start < len(text) and text[start].isspace():
            start += 1
        end = min(start + 1, len(text))
    return start, end


def _divide(tokenizer, parts, start, end):
    """The spans of a piece's parts, the last of which is a comma; a first space counts."""
    spans = [(end - 1, end)]
    place = end - 1
    for part in reversed(parts[1:-1]):
        spans.append((place - len(tokenizer.vocabulary[part]), place))
        place = spans[-1][0]
    return [(start, place), *reversed(spans)]


def _owned(owners, start, end):
    if start >= len(owners):
        last = owners[-1][1] if owners else 0
        return last, last
    return owners[start][0], owners[max(end, start + 1) - 1][1]


def _character_of_byte(text):
    """For each byte of a text, and its end, the number of the character that it is in."""
    places = []
    for i, character in enumerate(text):
        places += [i] * len(character.encode("utf-8"))
    return [*places, len(text)]
