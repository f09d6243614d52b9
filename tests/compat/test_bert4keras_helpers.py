"""bert4keras' small helpers, against brute force or what they are said to do."""

import itertools
import json
import threading
import urllib.error
import urllib.parse
import urllib.request

import pytest

from kerasattn.compat.bert4keras import snippets
from kerasattn.compat.bert4keras.snippets import (
    WebServing,
    longest_common_subsequence,
    longest_common_substring,
    parallel_apply,
    parallel_apply_generator,
)

PAIRS = [("abcde", "xbcdz"), ("", "abc"), ("aab", "baab"), ([1, 2, 3, 1], [3, 1, 2]), ("ab", "cd")]


@pytest.mark.parametrize("source, target", PAIRS)
def test_common_parts(source, target):
    runs = [
        (j - i, source[i:j])
        for i, j in itertools.combinations(range(len(source) + 1), 2)
        if any(source[i:j] == target[k : k + j - i] for k in range(len(target)))
    ]
    length, (a, b, c, d) = longest_common_substring(source, target)
    assert length == max((n for n, _ in runs), default=0) == b - a
    assert source[a:b] == target[c:d]

    length, pairs = longest_common_subsequence(source, target)
    parts = lambda x: {p for n in range(len(x) + 1) for p in itertools.combinations(x, n)}
    assert length == len(pairs) == max(map(len, parts(source) & parts(target)))
    assert [source[i] for i, _ in pairs] == [target[j] for _, j in pairs]
    assert all(a < c and b < d for (a, b), (c, d) in itertools.pairwise(pairs))


def test_strings():
    assert snippets.strQ2B("ｋｅｒａｓ\u3000～") == "keras ~"
    assert snippets.lowercase_and_normalize("ÀÉx") == "aex"
    assert snippets.convert_to_unicode("好".encode()) == snippets.convert_to_str("好") == "好"
    assert snippets.is_string("a") and not snippets.is_string(b"a")
    assert snippets.string_matching("dense/bias", ["Norm", "b.as$"])
    assert not snippets.string_matching("dense/kernel", ["Norm", "bias"])
    x = [1]
    assert snippets.is_one_of(x, [[1], x]) and not snippets.is_one_of(x, [[1]])
    assert snippets.softmax([[0.0, 0.0]]).tolist() == [[0.5, 0.5]]


def test_arguments_of_methods():
    class Base:
        def __init__(self, units):
            self.units = units

    class Derived(Base):
        @snippets.insert_arguments(rate=0.1)
        @snippets.delete_arguments("with_pool")
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)

    assert (Derived(3).rate, Derived(units=3, rate=0.2).rate, Derived(3).units) == (0.1, 0.2, 3)
    with pytest.raises(TypeError, match="Derived does not take the argument 'with_pool'"):
        Derived(3, with_pool=True)


@pytest.mark.parametrize("dummy", [True, False])
def test_many_workers(dummy):
    square = lambda x: x * x  # no module's: it cannot be pickled
    expected = [x * x for x in range(40)]
    assert parallel_apply(square, iter(range(40)), 2, 4, dummy=dummy, unordered=False) == expected
    found = []
    assert parallel_apply(square, range(40), 2, 4, callback=found.append, dummy=dummy) is None
    assert sorted(found) == expected
    pairs = parallel_apply_generator(square, range(9), 3, 2, dummy=dummy, random_seeds=[1, 2, 3])
    assert sorted(pairs) == [(i, i * i) for i in range(9)]
    with pytest.raises(ZeroDivisionError):
        parallel_apply(lambda x: 1 // x, range(9), 2, 4, dummy=dummy)
    with pytest.raises(ValueError, match="at least 1"):
        parallel_apply(square, range(9), 0, 4)


def test_functions_as_pages():
    web = WebServing(port=0)
    repeat = lambda text, n=1: {"text": text * n, "ratio": 1 / n}
    arguments = {"text": (None, True), "n": (int, False)}
    web.route("/repeat", repeat, arguments)
    web.route("/written", repeat, arguments, method="POST")
    web.route("/object", lambda: object(), {})
    with web.make_server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def ask(path, method="GET", **query):
            url = f"http://127.0.0.1:{server.server_port}{path}"
            query = urllib.parse.urlencode(query)
            url, data = (url, query.encode()) if method == "POST" else (f"{url}?{query}", None)
            with urllib.request.urlopen(urllib.request.Request(url, data)) as response:
                return json.load(response)

        good = {"code": 0, "desc": "succeeded", "data": {"text": "好好", "ratio": 0.5}}
        assert ask("/repeat", text="好", n=2) == ask("/written", "POST", text="好", n=2) == good
        assert ask("/repeat", n=2) == {"code": 1, "desc": 'lack of "text" argument', "data": {}}
        assert ask("/repeat", text="a", n="x")["desc"].startswith('wrong "n" argument')
        assert ask("/repeat", text="a", n=0) == {"code": 2, "desc": "division by zero", "data": {}}
        assert "not JSON serializable" in ask("/object")["desc"]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            ask("/written")
        server.shutdown()
