import functools

import numpy as np


class AutoRegressiveDecoder:
    """Beam search and sampling over any `predict` of yours.

    Subclass it and write `predict(self, inputs, output_ids, states)`, decorated by `wraps`, which
    returns the probabilities (rows, vocabulary) of the next token. All hypotheses are rows of one
    call. Models of this library write faster with `model.generate`, in one compiled loop.

    Hypotheses that end are kept: what is returned has the highest score of all that were found,
    and the search goes on as long as one that runs may still beat it.

    Args:
        start_id: int, the first token, or None for none.
        end_id: int, the token that ends.
        maxlen: int, steps at most.
        minlen: int, tokens at least, start and end included; before, no end is taken.

    Raises:
        ValueError: for a topp outside of [0, 1], or counts below 1.

    Example: a "model" that counts.

    >>> import numpy as np
    >>> from kerasattn.compat.bert4keras import AutoRegressiveDecoder
    >>> class Counter(AutoRegressiveDecoder):
    ...     @AutoRegressiveDecoder.wraps(default_rtype="probas")
    ...     def predict(self, inputs, output_ids, states):
    ...         last = output_ids[:, -1:] if output_ids.shape[1] else inputs[0][:, -1:]
    ...         return np.eye(5)[(last[:, 0] + 1) % 5]
    >>> counter = Counter(start_id=None, end_id=4, maxlen=10)
    >>> counter.beam_search([[0, 1]], topk=2).tolist()
    [2, 3, 4]
    >>> [ids.tolist() for ids in counter.beam_search_batch([[[0, 1]], [[3, 2]]], topk=2)]
    [[2, 3, 4], [3, 4]]
    """

    def __init__(self, start_id, end_id, maxlen, minlen=1):
        if maxlen < 1:
            raise ValueError(f"maxlen must be at least 1, got {maxlen}.")
        self.start_id = start_id
        self.end_id = end_id
        self.maxlen = maxlen
        self.minlen = minlen
        self.models = {}
        start = [] if start_id is None else [start_id]
        self.first_output_ids = np.array([start], "int64")

    @staticmethod
    def wraps(default_rtype="probas", use_states=False):
        """Decorates `predict`.

        Args:
            default_rtype: what yours returns, "probas" or "logits".
            use_states: whether yours returns a pair, of it and the states that the next call gets.
                Arrays in them that have as many rows as hypotheses follow these.
        """
        if default_rtype not in ("probas", "logits"):
            raise ValueError(f"default_rtype must be 'probas' or 'logits', got {default_rtype!r}.")

        def decorate(predict):
            @functools.wraps(predict)
            def wrapped(self, inputs, output_ids, states, temperature=1, rtype=default_rtype):
                if rtype not in ("probas", "logits"):
                    raise ValueError(f"rtype must be 'probas' or 'logits', got {rtype!r}.")
                result = predict(self, inputs, output_ids, states)
                result, states = result if use_states else (result, None)
                scores = np.array(result, "float64")  # a copy: we write into it
                if default_rtype == "probas":
                    with np.errstate(divide="ignore"):
                        scores = np.log(scores)
                if temperature != 1 or default_rtype == "logits":
                    scores = log_softmax(scores / temperature)
                return (np.exp(scores) if rtype == "probas" else scores), states

            return wrapped

        return decorate

    def last_token(self, model):
        """A model, made once, that returns the last token's part of `model`'s output."""
        if id(model) not in self.models:
            import keras

            last = keras.Model(model.inputs, model.outputs[0][:, -1])
            self.models[id(model)] = (model, last)  # kept, so that its id stays its own
        return self.models[id(model)][1]

    def predict(self, inputs, output_ids, states=None):
        """Probabilities or logits of the next token, (rows, vocabulary); yours to write."""
        raise NotImplementedError("A subclass writes predict(self, inputs, output_ids, states).")

    # === Beam search ===

    def beam_search(self, inputs, topk, states=None, temperature=1, min_ends=1, add_btz_dim=True):
        """The best output that a beam of topk finds, the start included: int array (length,).

        Args:
            inputs: list of what `predict` takes, of one text, without an axis for the batch; with
                one of size 1 if add_btz_dim is False.
            topk: int, the beam's width; 1 is greedy.
            states: what the first call of `predict` gets.
            temperature: float > 0, the logits are divided by.
            min_ends: int, which `end_id` ends.
        """
        inputs = [np.array([i]) if add_btz_dim else np.array(i) for i in inputs]
        return self._search([inputs], topk, states, temperature, min_ends)[0]

    def beam_search_batch(self, inputs, topk, temperature=1, min_ends=1):
        """The best output of each of many texts, a list of arrays, as `beam_search` finds them.

        Args:
            inputs: list of texts, each a list of what `predict` takes. Those of equal lengths share
                the calls of `predict`, so that none sees padding.
            topk, temperature, min_ends: as of `beam_search`.
        """
        texts = [[np.array([i]) for i in text] for text in inputs]
        groups = {}
        for place, text in enumerate(texts):
            groups.setdefault(tuple(x.shape for x in text), []).append(place)
        results = [None] * len(texts)
        for places in groups.values():
            found = self._search([texts[i] for i in places], topk, None, temperature, min_ends)
            for place, ids in zip(places, found):
                results[place] = ids
        return results

    def _search(self, texts, topk, states, temperature, min_ends):
        """The best outputs of texts whose inputs have equal shapes."""
        if topk < 1:
            raise ValueError(f"topk must be at least 1, got {topk}.")
        best = [(-np.inf, None)] * len(texts)  # score and ids of the best that has ended
        widths = np.full(len(texts), topk)  # a beam is as much smaller as outputs have ended
        owners, sums = np.arange(len(texts)), np.zeros(len(texts))
        inputs = [np.concatenate(parts) for parts in zip(*texts)]
        output_ids = np.repeat(self.first_output_ids, len(texts), axis=0)
        for _ in range(self.maxlen):
            scores, states = self.predict(inputs, output_ids, states, temperature, "logits")
            scores = sums[:, None] + self._allowed(scores, output_ids, min_ends, -np.inf)
            chosen = np.concatenate(
                [_highest(scores, owners == owner, widths[owner]) for owner in np.unique(owners)]
            )  # (rows, 2): hypothesis and token
            rows, tokens = chosen[:, 0], chosen[:, 1]
            sums = scores[rows, tokens]
            inputs, output_ids, owners = [x[rows] for x in inputs], output_ids[rows], owners[rows]
            states = _take_states(states, rows, len(scores))
            output_ids = np.concatenate([output_ids, tokens[:, None]], axis=1)

            ended = self._has_ended(output_ids, min_ends)
            for row in np.flatnonzero(ended):
                owner = owners[row]
                best[owner] = max(best[owner], (sums[row], output_ids[row]), key=lambda b: b[0])
                widths[owner] -= 1
            limit = np.array([score for score, _ in best])[owners]
            runs = np.flatnonzero(~ended & (sums > limit))
            states = _take_states(states, runs, len(sums))
            inputs, output_ids = [x[runs] for x in inputs], output_ids[runs]
            owners, sums = owners[runs], sums[runs]
            if not len(runs):
                break
        for row, owner in enumerate(owners):  # at the limit, as they are
            best[owner] = max(best[owner], (sums[row], output_ids[row]), key=lambda b: b[0])
        return [ids for _, ids in best]

    # === Sampling ===

    def random_sample(
        self,
        inputs,
        n,
        topk=None,
        topp=None,
        states=None,
        temperature=1,
        min_ends=1,
        seed=None,
        add_btz_dim=True,
    ):
        """n outputs drawn at random, a list of int arrays (length,), the start included.

        Args:
            inputs, states, temperature, min_ends, add_btz_dim: as of `beam_search`.
            n: int, how many.
            topk: int, only so many of the most probable tokens are drawn; None for all.
            topp: float in [0, 1], only the most probable tokens that have this probability
                together; None for all.
            seed: int for draws that repeat; None for numpy's global state.
        """
        if n < 1 or (topk is not None and topk < 1):
            raise ValueError(f"n and topk must be at least 1, got {n} and {topk}.")
        if topp is not None and not 0 <= topp <= 1:
            raise ValueError(f"topp must be in [0, 1], got {topp}.")
        random = np.random if seed is None else np.random.default_rng(seed)
        inputs = [np.array([i]) if add_btz_dim else np.array(i) for i in inputs]
        output_ids, results = self.first_output_ids, []
        for step in range(self.maxlen):
            probas, states = self.predict(inputs, output_ids, states, temperature, "probas")
            if step == 0:
                states = _take_states(states, np.zeros(n, int), 1)
                inputs = [np.repeat(i, n, axis=0) for i in inputs]
                probas, output_ids = (np.repeat(x, n, axis=0) for x in (probas, output_ids))
            probas = self._allowed(probas, output_ids, min_ends, 0.0)
            tokens = [random.choice(len(p), p=p) for p in _nucleus(probas, topk, topp)]
            output_ids = np.concatenate([output_ids, np.array(tokens)[:, None]], axis=1)
            ended = self._has_ended(output_ids, min_ends)
            results += list(output_ids[ended])
            runs = np.flatnonzero(~ended)
            states = _take_states(states, runs, len(output_ids))
            inputs, output_ids = [x[runs] for x in inputs], output_ids[runs]
            if not len(runs):
                break
        return results + list(output_ids)

    def _allowed(self, scores, output_ids, min_ends, never):
        """Scores of the next token, in which the end that is too early never comes."""
        if output_ids.shape[1] + 1 < self.minlen:
            counts = (output_ids == self.end_id).sum(axis=1)
            early = np.flatnonzero(counts + 1 >= min_ends)
            scores[early, self.end_id] = never
        return scores

    def _has_ended(self, output_ids, min_ends):
        counts = (output_ids == self.end_id).sum(axis=1)
        return (output_ids[:, -1] == self.end_id) & (counts >= min_ends)


def log_softmax(x):
    """Of the last axis, in numpy."""
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def _highest(scores, chosen_rows, count):
    """(row, token) of the `count` highest scores of those rows, that are possible, best first."""
    rows = np.flatnonzero(chosen_rows)
    flat = scores[rows].ravel()
    order = np.argsort(-flat, kind="stable")[:count]
    order = order[flat[order] > -np.inf]
    return np.stack([rows[order // scores.shape[1]], order % scores.shape[1]], axis=1)


def _nucleus(probas, topk, topp):
    """Probabilities of which the tail is 0: (rows, vocabulary), each row's sum 1."""
    order = np.argsort(-probas, axis=1, kind="stable")
    ranked = np.take_along_axis(probas, order, axis=1)
    ranked = ranked / ranked.sum(axis=1, keepdims=True)
    if topk is not None:
        ranked[:, topk:] = 0
        ranked = ranked / ranked.sum(axis=1, keepdims=True)
    if topp is not None:
        # The token that crosses topp stays, and so does the first.
        before = np.cumsum(ranked, axis=1) - ranked
        tail = before >= topp - 1e-9
        tail[:, 0] = False
        ranked[tail] = 0
        ranked = ranked / ranked.sum(axis=1, keepdims=True)
    probas = np.zeros_like(ranked)
    np.put_along_axis(probas, order, ranked, axis=1)
    return probas


def _take_states(states, rows, count):
    """The states of some rows: arrays that have `count` rows are cut, all else stays."""
    if isinstance(states, dict):
        return {name: _take_states(x, rows, count) for name, x in states.items()}
    if isinstance(states, list | tuple):
        return type(states)(_take_states(x, rows, count) for x in states)
    if getattr(states, "ndim", 0) and states.shape[0] == count:
        return np.asarray(states)[rows]
    return states
