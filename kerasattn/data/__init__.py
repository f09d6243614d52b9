"""Corpora and `tf.data` pipelines."""

from kerasattn.data.corpora import (
    cantonese_sentences,
    chitchat_conversations,
    chitchat_questions,
    chitchat_utterances,
    text_file,
    train_test_split,
)
from kerasattn.data.pipelines import BucketPlan, bucketed_batches

__all__ = [
    "BucketPlan",
    "bucketed_batches",
    "cantonese_sentences",
    "chitchat_conversations",
    "chitchat_questions",
    "chitchat_utterances",
    "text_file",
    "train_test_split",
]
