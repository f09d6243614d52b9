"""Writing the sentences that latents stand for."""

import numpy as np

from kerasattn import decoding
from kerasattn.decoding.strategies import as_strategy
from kerasattn.models.settings import check_whole
from kerasattn.models.writing import fed_tokens


class LatentWriting:
    """`generate` for `UniVAE`."""

    def generate(
        self,
        latents,
        strategy=None,
        lengths=None,
        max_new_tokens=None,
        seed=None,
        as_text=None,
        return_scores=False,
        batch_size=256,
        stream=False,
        **options,
    ):
        """Writes the sentences that latents stand for.

        Args:
            latents: float (batch, num_latent_layers, latent_dim).
            strategy: of `kerasattn.decoding`: `Greedy()` by default, `Sampling(...)`, `Beam(...)`.
            lengths: int or ints (batch,), tokens of the sentences with [CLS] and [SEP]; needed if
                the model's length is "conditioned", and only then.
            max_new_tokens: int >= 0, by default max_length - 1; with backbone="bert" at most as
                many as there are positions for.
            seed: int, for sampling that repeats.
            as_text: bool, whether to return strings; by default if there is a tokenizer.
            return_scores: bool, whether to return the scores (batch,) too.
            batch_size: int, how many are written at a time.
            stream: bool, whether to return an iterator of the token ids (batch,) of each step.
            **options: `stop`, `processors`, `banned`, `forced`, `min_new_tokens`, `limits` and
                `jit` of `decoding.generate`.

        Returns:
            numpy int32 (batch, 1 + max_new_tokens) that start with [CLS] and are padded after
            [SEP]; or a list of strings. Of `Beam(num_return=n)` n of them for each latent.

        Raises:
            ValueError: for latents, lengths or numbers of tokens that do not go with the model.

        Example:
        >>> from kerasattn.models import UniVAE
        >>> model = UniVAE(9, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=8,
        ...                num_latent_layers=1, latent_dim=4, max_length=6)
        >>> model.generate(model.sample(2, seed=0), jit=False).shape
        (2, 6)
        """
        latents = self._check_latents(latents)
        start = self._start(lengths, len(latents))
        steps = self.max_length - 1 if max_new_tokens is None else max_new_tokens
        strategy = as_strategy(strategy)
        self._check_steps(steps, start, strategy)
        check_whole("batch_size", batch_size, 1)
        check_whole("seed", 0 if seed is None else seed)
        as_text = self.tokenizer is not None if as_text is None else as_text
        if as_text and not stream:
            self._require_tokenizer()
        seed = np.random.SeedSequence().entropy if seed is None else seed
        banned = [*self._banned_ids(), *options.pop("banned", ())]

        def write(first, last, **more):
            rows = slice(first, last)
            return decoding.generate(
                self,
                {"latents": latents[rows], "start": start[rows]},
                strategy,
                start_ids=np.full(len(latents[rows]), self.cls_id, "int32"),
                max_new_tokens=steps,
                end_id=self.sep_id,
                pad_id=self.pad_id,
                banned=banned,
                seed=[[seed, row] for row in range(len(latents))[rows]],
                **_of_rows(options, rows),
                **more,
            )

        if stream:
            return write(0, None, stream=True)
        firsts = range(0, max(len(latents), 1), batch_size)
        results = [write(first, first + batch_size, return_scores=True) for first in firsts]
        ids, scores = (
            np.concatenate([getattr(result, name) for result in results])
            for name in ("token_ids", "scores")
        )
        first = [(0, 0)] * (ids.ndim - 1) + [(1, 0)]
        texts = np.pad(ids, first, constant_values=self.cls_id)
        if as_text:
            texts = self._strings(texts)
        return (texts, scores) if return_scores else texts

    def _strings(self, texts):
        """A list of strings of ids (batch, length), of lists of them of (batch, n, length)."""
        tokenizer = self._require_tokenizer()
        if texts.ndim == 2:
            return tokenizer.decode(texts)
        return [tokenizer.decode(several) for several in texts]

    def _check_steps(self, steps, start, strategy):
        """Refuses a number of new tokens that is none, or beyond the table of positions."""
        check_whole("max_new_tokens", steps)
        if self.max_positions is None or not len(start):
            return
        most = self.max_positions - int(start.max())
        most -= fed_tokens(strategy, 0) + 1
        if steps > most:
            raise ValueError(
                f'backbone="bert" has {self.max_positions} positions, and writing starts at '
                f"{start.max()}: max_new_tokens is at most {most}, got {steps}."
            )

    def _start(self, lengths, batch):
        """The first position of the writing: (batch,)."""
        if self.length == "fixed":
            if lengths is not None:
                raise ValueError('lengths needs a model of length="conditioned".')
            return np.full(batch, self.max_length, "int32")
        if lengths is None:
            raise ValueError('A model of length="conditioned" needs lengths.')
        lengths = np.asarray(lengths)
        if lengths.dtype.kind not in "iu" or lengths.shape not in ((), (batch,)):
            raise ValueError(f"lengths takes an int or ints ({batch},), got {lengths!r}.")
        if lengths.size and not 2 <= lengths.min() <= lengths.max() <= self.max_length:
            raise ValueError(
                f"lengths go from 2 to max_length = {self.max_length}, got {lengths!r}."
            )
        return np.broadcast_to(lengths, (batch,)).astype("int32")

    def _banned_ids(self):
        """Tokens that no text contains, and ids that the tokenizer has no token for."""
        tokenizer = self.tokenizer
        if tokenizer is None:
            return []
        special = [tokenizer.pad_id, tokenizer.cls_id, tokenizer.mask_id, tokenizer.unk_id]
        return [*special, *range(len(tokenizer.vocabulary), self.vocabulary_size)]


def _of_rows(options, rows):
    """The options of some rows: those that have a value for each row are cut."""
    own = {"limits"} if options.get("limits") is not None else set()
    if np.ndim(options.get("forced")) == 2:
        own.add("forced")
    lists = (list, tuple, np.ndarray)
    if any(isinstance(part, lists) for row in options.get("stop", ()) for part in row):
        own.add("stop")
    return {name: value[rows] if name in own else value for name, value in options.items()}
