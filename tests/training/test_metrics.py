"""Metrics of strings and perplexity, against numbers counted by hand."""

import math

import keras
import numpy as np
import pytest

from kerasattn.training import metrics
from kerasattn.training.ngram import CharacterNGram
from kerasattn.training.patterns import content_and_pattern, kept, mean_kept, words

ORIGINALS = ["今日好熱。", "落雨", "abc"]
REBUILT = ["今日好凍。", "落雨", "abcd"]


def test_exact_match_is_of_whole_strings():
    assert metrics.exact_match(ORIGINALS, REBUILT) == pytest.approx(1 / 3)
    assert metrics.exact_match(["a "], ["a"]) == 0.0


def test_character_accuracy_goes_by_place_over_the_originals_length():
    # 4 of 5, 2 of 2, 3 of 3; what is beyond the end does not count.
    assert metrics.character_accuracy(ORIGINALS, REBUILT) == pytest.approx(9 / 10)
    assert metrics.character_accuracy(["abcd"], ["bcd"]) == 0.0  # all shifted by one
    assert metrics.character_accuracy(["abcd"], [""]) == 0.0


@pytest.mark.parametrize("function", [metrics.exact_match, metrics.character_accuracy])
@pytest.mark.parametrize("pair", [([], []), (["a"], []), ("ab", "ab")])
def test_pairs_that_are_none(function, pair):
    with pytest.raises(ValueError, match="Expected"):
        function(*pair)


def test_bleu_is_100_for_equal_texts_and_that_of_its_formula_else():
    pytest.importorskip("sacrebleu")
    assert metrics.bleu(ORIGINALS, ORIGINALS) == pytest.approx(100.0)
    # n-gram precisions of ABCDE against ABCDX: 4/5, 3/4, 2/3, 1/2; equal lengths.
    expected = 100 * math.exp(sum(map(math.log, (4 / 5, 3 / 4, 2 / 3, 1 / 2))) / 4)
    assert metrics.bleu(["ABCDX"], ["ABCDE"]) == pytest.approx(expected)


def test_distinct_n():
    # Bigrams: ab ba ab, ab; then words: (a b) (b a), (a b).
    assert metrics.distinct_n(["abab", "ab", "c"]) == pytest.approx(2 / 4)
    assert metrics.distinct_n(["a b a", "a b"], 2, str.split) == pytest.approx(2 / 3)
    assert metrics.distinct_n(["aab"], 1) == pytest.approx(2 / 3)
    assert metrics.distinct_n(["a", ""]) == 0.0
    with pytest.raises(ValueError, match="at least 1"):
        metrics.distinct_n(["a"], 0)


def test_chrf_is_that_of_its_formula():
    pytest.importorskip("sacrebleu")
    assert metrics.chrf(["abcdef", "xyz"], ["abcdef", "xyz"]) == pytest.approx(100)
    # Of "ab" for "abc": precisions 1, 1; recalls 2/3, 1/2; F2 of their means. Higher n have none.
    precision, recall = 1.0, (2 / 3 + 1 / 2) / 2
    expected = 5 * precision * recall / (4 * precision + recall)
    assert metrics.chrf(["abc"], ["ab"]) == pytest.approx(100 * expected, rel=1e-6)


def test_ngram_precision_clips_and_goes_over_all_texts():
    found = metrics.ngram_precision(["aab", "c"], ["aaaa", "c"], max_n=2)
    assert found == pytest.approx(((2 + 1) / 5 + (1 + 0) / 3) / 2)
    assert metrics.ngram_precision(["abc"], ["abc"]) == 1
    assert metrics.ngram_precision(["abc"], [""]) == 0
    with pytest.raises(ValueError, match="max_n"):
        metrics.ngram_precision(["a"], ["a"], max_n=0)


def test_self_bleu_is_high_where_texts_are_alike():
    pytest.importorskip("sacrebleu")
    same, other = ["abcdefg"] * 3, ["abcdefg", "hijklmn", "opqrstu"]
    assert metrics.self_bleu(same) == pytest.approx(100)
    some = metrics.self_bleu(["abcdefg", "abcdefx", "opqrstu"])
    assert metrics.self_bleu(other) < some < 100
    with pytest.raises(ValueError, match="two texts"):
        metrics.self_bleu(["one"])


def test_copied_counts_texts_not_kinds():
    assert metrics.copied(["a", "a", "b", "x"], ["a", "b", "c"]) == 0.75
    assert metrics.copied([], ["a"]) == 0.0


def test_distances_of_distributions():
    same = metrics.distribution_distances([3, 1, 2], [1, 2, 3, 1, 2, 3])
    assert same == {"total_variation": 0.0, "kolmogorov_smirnov": 0.0}
    apart = metrics.distribution_distances([1, 1], [5])
    assert apart == {"total_variation": 1.0, "kolmogorov_smirnov": 1.0}
    # Shares 1/2 0 1/2 against 0 1 0: differences 1/2, -1, 1/2; sums of these 1/2, -1/2, 0.
    mixed = metrics.distribution_distances([1, 3], [2])
    assert mixed == {"total_variation": 1.0, "kolmogorov_smirnov": 0.5}
    with pytest.raises(ValueError, match="no values"):
        metrics.distribution_distances([], [1])


def test_kolmogorov_smirnov_is_scipys():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 20, 300), rng.integers(2, 25, 200)
    ours = metrics.distribution_distances(a, b)["kolmogorov_smirnov"]
    assert ours == pytest.approx(stats.ks_2samp(a, b).statistic, abs=1e-12)


def test_perplexity_weighs_tokens_and_adds_up_over_batches():
    metric = metrics.Perplexity()
    metric.update_state([[math.log(2.0), math.log(8.0)]], sample_weight=[[1.0, 1.0]])
    metric.update_state([[math.log(4.0), 50.0]], sample_weight=[[2.0, 0.0]])
    assert float(metric.result()) == pytest.approx(4.0, rel=1e-5)  # (1 + 3 + 2·2) / 4 bits
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(metric))
    assert again.name == metric.name


# === Patterns ===


def test_words_of_both_scripts():
    assert words("佢哋唔係買iPhone12，") == ["佢哋", "唔係", "買", "iPhone12", "，"]
    assert words("I don’t know: 3 of us!") == ["I", "don’t", "know", ":", "3", "of", "us", "!"]
    assert words("") == []


def test_the_pattern_is_what_is_no_content():
    content, pattern = content_and_pattern("佢買咗蘋果？")
    assert content == ["買", "蘋", "果"]
    assert "".join(pattern) == "佢·咗··？"
    assert content_and_pattern("Do you like cats?") == (
        ["like", "cats"],
        ["Do", "you", "·", "·", "?"],
    )


def test_what_a_rewriting_keeps():
    # Patterns 佢·咗··？ and 我·咗·？: they have ·咗·？ in common, 4 of 6.
    assert kept("佢買咗蘋果？", "我食咗果？") == {
        "content": pytest.approx(1 / 3),
        "function_words": pytest.approx(1 / 2),
        "punctuation": 1.0,
        "length": 0.0,
        "pattern": pytest.approx(4 / 6),
    }
    assert set(kept("佢買咗蘋果？", "佢買咗蘋果？").values()) == {1.0}
    assert kept("蘋果", "") == {
        "content": 0.0,
        "function_words": None,
        "punctuation": 1.0,
        "length": 0.0,
        "pattern": 0.0,
    }
    # As often as they were: one 果 does for one of two.
    assert kept("果果", "果")["content"] == 0.5


def test_means_leave_out_what_is_not_there():
    means = mean_kept(["蘋果", "佢買"], ["蘋果", "我買"])
    assert means["content"] == 1.0
    assert means["function_words"] == 0.0  # of the second alone


# === n-grams ===


def test_unigrams_by_hand():
    # aab + end, a + end: a 3 of 6, b 1, end 2. Orders: unigram and 1 / (3 kinds + 1).
    model = CharacterNGram(["aab", "a"], order=1)
    low, high = model.weights
    expected = math.log(low / 4 + high * 3 / 6) + math.log(low / 4 + high * 2 / 6)
    assert model.log_probability("a") == pytest.approx(expected)
    assert model.perplexity(["a"]) == pytest.approx(math.exp(-expected / 2))


def test_probabilities_sum_to_one_in_every_context():
    texts = ["abca", "cab", "bb"]
    model = CharacterNGram(texts, order=3)

    def probability(text, place):
        return math.exp(model.log_probabilities([text])[place])

    for context in ("", "a", "ab", "ca"):
        # One place, here that of d, is kept for all characters that were never seen.
        following = [context + c for c in ("a", "b", "c", "", "d")]
        assert sum(probability(text, len(context)) for text in following) == pytest.approx(1.0)
    assert model.log_probability("b") == pytest.approx(
        math.log(probability("b", 0)) + math.log(probability("b", 1))
    )


def test_shuffled_text_is_less_likely():
    rng = np.random.default_rng(0)
    texts = ["thequickbrownfox", "thelazydog", "thefox"] * 5
    model = CharacterNGram(texts)
    shuffled = ["".join(rng.permutation(list(text))) for text in texts]
    assert model.perplexity(shuffled) > 3 * model.perplexity(texts)
