"""A WordPiece vocabulary from a corpus."""

from collections import Counter

from kerasattn.tokenizers.checks import SPECIAL_TOKENS


def learn_vocabulary(texts, split_words, alone, size, min_count):
    """Special tokens, words of one character by frequency, then pieces of longer words.

    Args:
        texts: list of str.
        split_words: function of strings (batch,) to ragged words.
        alone: pattern of the words of one character that are never parts of others.
        size, min_count: as of `WordPieceTokenizer.build`.
    """
    import tensorflow as tf

    words = Counter()
    for start in range(0, len(texts), 8192):
        split = split_words(tf.constant(texts[start : start + 8192]))
        words.update(split.flat_values.numpy().tolist())
    words = {word.decode("utf-8"): count for word, count in words.items()}
    is_alone = tf.strings.regex_full_match(list(words), alone).numpy() if words else []
    single = {word: n for (word, n), is_one in zip(words.items(), is_alone) if is_one}
    found = sorted(single.items(), key=lambda item: (-item[1], item[0]))
    tokens = [*SPECIAL_TOKENS, *(c for c, n in found if n >= min_count)][:size]
    longer = {word: n for word, n in words.items() if word not in single}
    return tokens + _learn_pieces(longer, size - len(tokens), min_count)


def _learn_pieces(word_counts, size, min_count):
    """At most `size` pieces of words, single characters first."""
    if size <= 0 or not word_counts:
        return []
    from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib as learner

    # The learner searches for the count from which on pieces are kept. Every word of that count
    # is one, so `size` words bound it from below; four times fewer are ample from above.
    counts = sorted(word_counts.values(), reverse=True)
    lowest = counts[size] + 1 if size < len(counts) else min_count
    highest = counts[min(size // 4, len(counts) - 1)]
    pieces = learner.learn(
        word_counts,
        size,
        [],
        lower_thresh=max(lowest, min_count),
        upper_thresh=max(highest, lowest, min_count),
        max_token_length=24,
        max_unique_chars=max(1, size // 4),
    )
    return pieces[:size]
