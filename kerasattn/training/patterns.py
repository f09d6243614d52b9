"""Topic and sentence pattern of short texts, as far as lists of function words can tell."""

import collections
import re
import unicodedata


def _listed(words):
    return re.findall(r"\S+", words)


# Particles, pronouns, auxiliaries, conjunctions, classifiers of wide use, question words.
CHINESE = _listed("""
嘅 係 唔 個 你 我 佢 喺 咗 哋 都 呢 啲 啊 呀 嗰 噉 咁 就 同 有 冇 會 要 喇 啦 囉 咩 咪 嘢 邊 乜
點 過 緊 住 晒 嚟 去 到 俾 畀 可以 唔係 唔好 唔使 未 仲 先 再 又 也 亦 添 吓 吖 㗎 𡃉 喎 嘞 咯
啩 吧 嗎 嘛 呃 的 了 是 不 在 他 她 它 們 這 那 和 與 及 或 而 但 但是 因為 所以 如果 為 之 以
於 被 把 將 從 對 向 由 等 最 好 幾 多 一個 自己 我哋 你哋 佢哋 人哋 邊個 乜嘢 點解 點樣 幾時
邊度 呢個 嗰個 呢啲 嗰啲 一 我们 你们 他们 什么 怎么 为什么 因为 没 没有 这 说 吗 会 还 还有 个
们 对 为 从 将 与
""")

ENGLISH = _listed("""
a an the this that these those i you he she it we they me him her us them my your his its our
their mine yours is are was were am be been being do does did have has had will would can could
shall should may might must not no n't don't doesn't didn't isn't aren't wasn't can't won't and
or but if so because as of in on at to for from by with about into over than then there here
what who whom whose which when where why how any some all just too very i'm you're it's that's
what's he's she's we're they're i've you've i'd you'd i'll you'll up out
""")

FUNCTION_WORDS = frozenset(CHINESE) | frozenset(ENGLISH)
_LONG = sorted((w for w in CHINESE if len(w) > 1), key=lambda word: (-len(word), word))
_TOKEN = re.compile("|".join([r"[A-Za-z0-9]+(?:['’][A-Za-z]+)*", *_LONG, r"\S"]))

SLOT = "·"  # stands in a pattern for a content word


def words(text):
    """Cuts a text: Latin words and numbers whole, other scripts into characters and listed words.

    Example:
    >>> from kerasattn.training.patterns import words
    >>> words("點解你買iPad？"), words("what's up, doc?")
    (['點解', '你', '買', 'iPad', '？'], ["what's", 'up', ',', 'doc', '?'])
    """
    return _TOKEN.findall(text)


def is_punctuation(word):
    return all(unicodedata.category(c)[0] in "PS" for c in word)


def content_and_pattern(text):
    """The content words of a text, and its pattern: the same text with a slot for each of them.

    Example:
    >>> from kerasattn.training.patterns import content_and_pattern
    >>> content, pattern = content_and_pattern("我鍾意食魚。")
    >>> content, "".join(pattern)
    (['鍾', '意', '食', '魚'], '我····。')
    """
    found = words(text)
    keeps = [is_punctuation(w) or w.lower().replace("’", "'") in FUNCTION_WORDS for w in found]
    content = [w for w, keep in zip(found, keeps) if not keep]
    return content, [w if keep else SLOT for w, keep in zip(found, keeps)]


def kept(original, rewritten):
    """What a rewritten text keeps of its original.

    Returns:
        dict of shares from 0 to 1, or None where the original has nothing of the kind:
        `content` and `function_words`, of those of the original that are still there (as often
        as they were); `punctuation`, 1 if it is the same in the same order; `length`, 1 if the
        number of words is the same; `pattern`, the longest common subsequence of both patterns
        over the longer one.

    Example:
    >>> from kerasattn.training.patterns import kept
    >>> kept("你食魚？", "佢食肉？")
    {'content': 0.5, 'function_words': 0.0, 'punctuation': 1.0, 'length': 1.0, 'pattern': 0.75}
    """
    content, pattern = content_and_pattern(original)
    new_content, new_pattern = content_and_pattern(rewritten)

    def marks(pattern):
        return [word for word in pattern if is_punctuation(word) and word != SLOT]

    def function_words(pattern):
        return [word for word in pattern if not is_punctuation(word)]

    return {
        "content": _recall(content, new_content),
        "function_words": _recall(function_words(pattern), function_words(new_pattern)),
        "punctuation": float(marks(pattern) == marks(new_pattern)),
        "length": float(len(pattern) == len(new_pattern)),
        "pattern": _common(pattern, new_pattern) / max(1, len(pattern), len(new_pattern)),
    }


def mean_kept(originals, rewritten):
    """The means of `kept` over pairs of texts; None where no original has anything of the kind."""
    rows = [kept(a, b) for a, b in zip(originals, rewritten, strict=True)]
    means = {}
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows if row[name] is not None]
        means[name] = sum(values) / len(values) if values else None
    return means


def _recall(wanted, found):
    if not wanted:
        return None
    both = collections.Counter(wanted) & collections.Counter(found)
    return both.total() / len(wanted)


def _common(a, b):
    """The length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for x in a:
        before = 0
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], before + 1 if x == y else max(row[j], row[j - 1])
    return row[-1]
