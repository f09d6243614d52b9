"""How spans of tokens are written as one tag a token."""

import numpy as np

OUTSIDE = "O"
OUT_OF_SENTENCE = "OOS"
# What stands before the type: of a span's first, middle and last token, and of a lone one.
PARTS = {
    "IO": ("I", "I", "I", "I"),
    "BIO": ("B", "I", "I", "B"),
    "BIOES": ("B", "I", "E", "S"),
    "BMEWO": ("B", "M", "E", "W"),
    "BMEWO+": ("B", "M", "E", "W"),
}
# What tokens outside of spans are in BMEWO+: the first of several, by the type before it; the last
# of several, and a lone one, by the type behind it. Those between are MM_O.
FIRST_OUT, LAST_OUT, LONE_OUT, MIDDLE_OUT = "BB_O", "EE_O", "WW_O", "MM_O"
BEGINS, GOES_ON = {"B", "S", "W"}, {"B", "M", "I"}


class TaggingScheme:
    """Spans of tokens as one tag a token, and back, with what may follow what.

    A span is a triple (start, end, type), its tokens are start to end - 1; spans do not overlap. A
    tag is what its token is of a span and the span's type, as B-PER, or O outside:

        IO      I of every token; neighbours of one type become one span
        BIO     B first, I behind it
        BIOES   B first, I between, E last, S alone
        BMEWO   B first, M between, E last, W alone
        BMEWO+  as BMEWO, and tokens outside say what is near: BB_O-X behind a span of type X,
                MM_O, EE_O-X before one of type X, WW_O-X alone and before one. The sentence's
                bounds count as a type OOS: BB_O-OOS is its first token, WW_O-OOS its last one.

    Args:
        name: str, one of these.
        types: list of str, the types of spans.
        outside: bool, whether there are tokens outside of spans. Without, the spans cover a text:
            BMEWO without O is what segmentation calls BMES.

    Attributes:
        tags: list of str, all tags; a tag's place is its id.
        allowed_transitions: bool (num_tags, num_tags), whether a column may follow a row.
        allowed_starts, allowed_ends: bool (num_tags,), what may be first and last.

    Raises:
        ValueError: for another scheme; types that are given twice, empty, or OOS in BMEWO+.

    Example:
    >>> from kerasattn.data.tagging import TaggingScheme
    >>> scheme = TaggingScheme("BIOES", ["PER", "LOC"])
    >>> tags = scheme.to_tags([(0, 2, "PER"), (3, 4, "LOC")], length=5)
    >>> tags
    ['B-PER', 'E-PER', 'O', 'S-LOC', 'O']
    >>> scheme.to_spans(tags)
    [(0, 2, 'PER'), (3, 4, 'LOC')]
    >>> scheme.is_valid(["O", "E-PER"]), scheme.repair(["O", "E-PER"])
    (False, ['O', 'S-PER'])

    Source: https://lingpipe-blog.com/2009/10/14/coding-chunkers-as-taggers-io-bio-bmewo-and-bmewo/
    """

    def __init__(self, name, types, outside=True):
        if name not in PARTS:
            raise ValueError(f"The schemes are {list(PARTS)}, got {name!r}.")
        self.name, self.types, self.outside = name, list(types), outside
        wrong = len(set(self.types)) < len(self.types) or not all(
            isinstance(kind, str) and kind for kind in self.types
        )
        if wrong or not self.types:
            raise ValueError(f"types must be different strings, at least one, got {self.types}.")
        if name == "BMEWO+" and (OUT_OF_SENTENCE in self.types or not outside):
            raise ValueError(
                f"BMEWO+ has tokens outside, and takes {OUT_OF_SENTENCE} for the sentence's bounds."
            )
        self.parts = PARTS[name]
        self.tags = self._tags()
        self._ids = {tag: i for i, tag in enumerate(self.tags)}
        pairs = [[self._follows(a, b) for b in self.tags] for a in self.tags]
        self.allowed_transitions = np.array(pairs, bool)
        self.allowed_starts = np.array([self._may_start(tag) for tag in self.tags], bool)
        self.allowed_ends = np.array([self._may_end(tag) for tag in self.tags], bool)

    @property
    def num_tags(self):
        """How many tags there are."""
        return len(self.tags)

    def constraints(self):
        """What `layers.CRF` takes, so that only valid tags have a probability: a dict of lists.

        Example:
        >>> from kerasattn import layers
        >>> from kerasattn.data.tagging import TaggingScheme
        >>> crf = layers.CRF(**TaggingScheme("BIO", ["PER"]).constraints())
        """
        names = ("allowed_transitions", "allowed_starts", "allowed_ends")
        return {name: getattr(self, name).tolist() for name in names}

    # === Spans and tags ===
    def to_tags(self, spans, length):
        """The tags of a sentence, a list of str.

        Args:
            spans: triples (start, end, type), in any order.
            length: int, tokens of the sentence.

        Raises:
            ValueError: for spans that are empty, beyond the sentence, of no type of the scheme or
                over one another; for tokens without a span, if there is no outside.
        """
        tags, ends = [None] * length, {}
        for start, end, kind in spans:
            if not (0 <= start < end <= length and kind in self.types):
                raise ValueError(
                    f"A span is (start, end, type) with 0 <= start < end <= {length} and a type of "
                    f"{self.types}, got {(start, end, kind)}."
                )
            if any(tags[start:end]):
                raise ValueError(f"The span {(start, end, kind)} lies over another one.")
            first, middle, last, lone = self.parts
            inner = [first, *[middle] * (end - start - 2), last] if end - start > 1 else [lone]
            tags[start:end] = [f"{part}-{kind}" for part in inner]
            ends[start] = end
        if not self.outside and None in tags:
            raise ValueError(f"Token {tags.index(None)} is in no span, and there is no outside.")
        if self.name == "BMEWO+":
            _tell_neighbours(tags)
        return [tag or OUTSIDE for tag in tags]

    def to_spans(self, tags, repair=False):
        """The spans of a sentence's tags: a list of triples (start, end, type), in their order.

        Args:
            tags: list of str.
            repair: bool, whether tags that the scheme does not allow are read as far as possible:
                what goes on with another type, or with nothing before it, begins a span, and what
                does not end goes up to the next one. It is how CoNLL's and seqeval's scores read.

        Raises:
            ValueError: for a tag that is none of the scheme; without repair also for an order of
                them that is not allowed.
        """
        for place, tag in enumerate(tags):
            if tag not in self._ids:
                raise ValueError(f"{tag!r} at {place} is no tag of {self.name}: {self.tags}.")
        if not repair and not self.is_valid(tags):
            raise ValueError(f"{self.name} does not allow {list(tags)}; repair=True reads it.")
        spans, start, open_type = [], None, None
        for place, tag in enumerate([*tags, OUTSIDE]):
            part, kind = _parse(tag)
            goes_on = kind is not None and kind == open_type and part not in BEGINS
            if open_type is not None and not goes_on:
                spans.append((start, place, open_type))
                open_type = None
            if kind is not None and not goes_on:
                start, open_type = place, kind
            if open_type is not None and part not in GOES_ON:  # it ends here
                spans.append((start, place + 1, open_type))
                open_type = None
        return spans

    def is_valid(self, tags):
        """Whether the tags are of the scheme and in an order that it allows."""
        ids = [self._ids.get(tag) for tag in tags]
        if None in ids:
            return False
        if not ids:
            return True
        pairs = self.allowed_transitions[ids[:-1], ids[1:]]
        return bool(self.allowed_starts[ids[0]] and self.allowed_ends[ids[-1]] and pairs.all())

    def repair(self, tags):
        """Valid tags of the spans that `to_spans(tags, repair=True)` reads.

        Tags that are valid stay as they are. Without an outside every token is in a span already.
        """
        return self.to_tags(self.to_spans(tags, repair=True), len(tags))

    def convert(self, tags, scheme, repair=False):
        """The same spans in another scheme: a list of its tags.

        Example:
        >>> from kerasattn.data.tagging import TaggingScheme
        >>> bio, bioes = TaggingScheme("BIO", ["PER"]), TaggingScheme("BIOES", ["PER"])
        >>> bio.convert(["B-PER", "I-PER", "B-PER"], bioes)
        ['B-PER', 'E-PER', 'S-PER']
        """
        return scheme.to_tags(self.to_spans(tags, repair), len(tags))

    # === Ids ===
    def encode(self, tags):
        """Ids of tags: a list of int.

        Raises:
            ValueError: for a tag that is none of the scheme.
        """
        unknown = [tag for tag in tags if tag not in self._ids]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no tag of {self.name}: {self.tags}.")
        return [self._ids[tag] for tag in tags]

    def decode(self, ids):
        """Tags of ids: a list of str."""
        return [self.tags[i] for i in ids]

    # === The rules ===
    def _tags(self):
        tags = [f"{part}-{kind}" for kind in self.types for part in dict.fromkeys(self.parts)]
        if self.name != "BMEWO+":
            return [*([OUTSIDE] if self.outside else []), *tags]
        near = [f"{part}-{k}" for part in (FIRST_OUT, LAST_OUT, LONE_OUT) for k in self.types]
        bounds = [f"{part}-{OUT_OF_SENTENCE}" for part in (FIRST_OUT, LONE_OUT)]
        return [MIDDLE_OUT, *bounds, *near, *tags]

    def _follows(self, before, after):
        part, kind = _parse(before)
        next_part, next_kind = _parse(after)
        if self.name == "IO":
            return True
        if self.name == "BMEWO+" and (kind is None or next_kind is None):
            return _follows_outside(before, after)
        # BIO has no end of its own: a span may end anywhere.
        open_end = kind is not None and part in GOES_ON
        if next_kind is None or next_part in BEGINS:
            return self.name == "BIO" or not open_end
        return open_end and kind == next_kind

    def _may_start(self, tag):
        part, kind = _parse(tag)
        if kind is not None:
            return self.name == "IO" or part in BEGINS
        return tag in (OUTSIDE, f"{FIRST_OUT}-{OUT_OF_SENTENCE}") or tag.startswith(LONE_OUT)

    def _may_end(self, tag):
        part, kind = _parse(tag)
        if kind is not None:
            return self.name in ("IO", "BIO") or part not in GOES_ON
        return tag in (OUTSIDE, f"{LONE_OUT}-{OUT_OF_SENTENCE}")


def _parse(tag):
    """What a token is of a span, and the span's type; None for what is outside."""
    part, _, kind = tag.partition("-")
    return (part, None) if part.endswith(OUTSIDE) else (part, kind)


def _follows_outside(before, after):
    """Whether a tag may follow one in BMEWO+, where at least one of them is outside."""
    (part, _, kind), (next_part, _, next_kind) = before.partition("-"), after.partition("-")
    if next_part in (FIRST_OUT, LONE_OUT) and part in ("E", "W"):
        return next_part == LONE_OUT or next_kind == kind
    if next_part in ("B", "W") and part in (LAST_OUT, LONE_OUT):
        return next_kind == kind
    is_end = next_part == LAST_OUT or after == f"{LONE_OUT}-{OUT_OF_SENTENCE}"
    return part in (FIRST_OUT, MIDDLE_OUT) and (next_part == MIDDLE_OUT or is_end)


def _tell_neighbours(tags):
    """Fills in what BMEWO+ says where there is no span yet, in place."""
    start = 0
    while start < len(tags):
        end = start
        while end < len(tags) and tags[end] is None:
            end += 1
        if end > start:
            before = _parse(tags[start - 1])[1] if start else OUT_OF_SENTENCE
            behind = _parse(tags[end])[1] if end < len(tags) else OUT_OF_SENTENCE
            tags[start:end] = [MIDDLE_OUT] * (end - start)
            tags[start] = f"{FIRST_OUT}-{before}"
            lone = end - start == 1 or behind == OUT_OF_SENTENCE
            tags[end - 1] = f"{LONE_OUT if lone else LAST_OUT}-{behind}"
        start = end + 1


def tag_counts(num_types):
    """How many tags each scheme has for so many types: a dict from its name.

    Args:
        num_types: int >= 1.

    Example:
    >>> from kerasattn.data.tagging import tag_counts
    >>> tag_counts(3)
    {'IO': 4, 'BIO': 7, 'BIOES': 13, 'BMEWO': 13, 'BMEWO+': 24}
    """
    types = [str(i) for i in range(num_types)]
    return {name: TaggingScheme(name, types).num_tags for name in PARTS}
