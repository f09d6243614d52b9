"""Sequence labelling: schemes, readers, lexicons, features and scores."""

from kerasattn.data.tagging.features import CharacterFeatures
from kerasattn.data.tagging.lexicon import Lexicon
from kerasattn.data.tagging.metrics import span_scores
from kerasattn.data.tagging.readers import (
    characters,
    conll_file,
    hkcancor,
    named_entities,
    peoples_daily,
    word_tag_lines,
)
from kerasattn.data.tagging.scheme import TaggingScheme, tag_counts

__all__ = [
    "CharacterFeatures",
    "Lexicon",
    "TaggingScheme",
    "characters",
    "conll_file",
    "hkcancor",
    "named_entities",
    "peoples_daily",
    "span_scores",
    "tag_counts",
    "word_tag_lines",
]
