"""Corpora, pictures and `tf.data` pipelines."""

from kerasattn.data.algorithms import associative_recall_task, copy_task, repeat_copy_task
from kerasattn.data.captions import digit_captions
from kerasattn.data.corpora import (
    cantonese_sentences,
    chitchat_conversations,
    chitchat_questions,
    chitchat_utterances,
    text_file,
    train_test_split,
)
from kerasattn.data.documents import chinese_reviews, cloze_questions, split_sentences
from kerasattn.data.images import idx_images, mnist_digits
from kerasattn.data.pipelines import BucketPlan, bucketed_batches
from kerasattn.data.pronunciations import english_pronunciations
from kerasattn.data.span_stories import span_stories
from kerasattn.data.squad import SpanQuestion, read_squad, squad_file, token_span
from kerasattn.data.stories import StoryQuestion, babi_file, story_arrays, story_vocabulary
from kerasattn.data.story_generator import generate_stories
from kerasattn.data.vocabulary import (
    Vocabulary,
    encode_characters,
    pad_documents,
    pad_rows,
    split_words,
)
from kerasattn.data.word_vectors import chinese_word_vectors, glove_file, word2vec_file

__all__ = [
    "BucketPlan",
    "SpanQuestion",
    "StoryQuestion",
    "Vocabulary",
    "associative_recall_task",
    "babi_file",
    "bucketed_batches",
    "cantonese_sentences",
    "chinese_reviews",
    "chinese_word_vectors",
    "chitchat_conversations",
    "chitchat_questions",
    "chitchat_utterances",
    "cloze_questions",
    "copy_task",
    "digit_captions",
    "encode_characters",
    "english_pronunciations",
    "generate_stories",
    "glove_file",
    "idx_images",
    "mnist_digits",
    "pad_documents",
    "pad_rows",
    "read_squad",
    "repeat_copy_task",
    "span_stories",
    "split_sentences",
    "split_words",
    "squad_file",
    "story_arrays",
    "story_vocabulary",
    "text_file",
    "token_span",
    "train_test_split",
    "word2vec_file",
]
