"""Corpora, pictures and `tf.data` pipelines."""

from kerasattn.data.corpora import (
    cantonese_sentences,
    chitchat_conversations,
    chitchat_questions,
    chitchat_utterances,
    text_file,
    train_test_split,
)
from kerasattn.data.images import idx_images, mnist_digits
from kerasattn.data.pipelines import BucketPlan, bucketed_batches
from kerasattn.data.pronunciations import english_pronunciations
from kerasattn.data.word_vectors import chinese_word_vectors, word2vec_file

__all__ = [
    "BucketPlan",
    "bucketed_batches",
    "cantonese_sentences",
    "chinese_word_vectors",
    "chitchat_conversations",
    "chitchat_questions",
    "chitchat_utterances",
    "english_pronunciations",
    "idx_images",
    "mnist_digits",
    "text_file",
    "train_test_split",
    "word2vec_file",
]
