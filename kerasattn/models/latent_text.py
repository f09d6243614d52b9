"""What can be done with a model that turns text into latents and latents into text."""

import numpy as np

from kerasattn.models.base import as_numpy, check_range
from kerasattn.models.latent_writing import LatentWriting
from kerasattn.models.settings import check_whole
from kerasattn.ops.compiled import compiled


class LatentText(LatentWriting):
    """Encode, generate, sample, reconstruct, interpolate and resample, for `UniVAE`.

    Texts are token ids (batch, length) or, with a tokenizer attached, strings; what goes in as
    strings comes out as strings. Latents are float32 (batch, num_latent_layers, latent_dim); those
    of latent="vmf" are unit vectors, and others are refused.
    """

    def encode(self, texts, batch_size=256):
        """The means of the latents.

        Args:
            texts: token ids (batch, length), padded, refused beyond max_length; or strings, of
                which tokens beyond max_length are cut.
            batch_size: int, how many are read at a time.

        Returns:
            numpy float32 (batch, num_latent_layers, latent_dim).

        Raises:
            ValueError: for ids out of range, rows of more ids, or strings without a tokenizer.

        Example:
        >>> from kerasattn.models import UniVAE
        >>> model = UniVAE(9, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=8,
        ...                num_latent_layers=1, latent_dim=4, max_length=6)
        >>> model.encode([[2, 7, 3], [2, 8, 3]]).shape
        (2, 1, 4)
        """
        token_ids = self._token_ids(texts)
        check_whole("batch_size", batch_size, 1)
        if not hasattr(self, "_encode"):
            # Set past Keras' tracking, which would look for layers inside.
            vars(self)["_encode"] = compiled(
                lambda ids: self.encoder(ids, training=False), lambda: self.variables
            )
        latents = [np.zeros((0, *self.latent_shape), "float32")]
        for first in range(0, len(token_ids), batch_size):
            batch = token_ids[first : first + batch_size]
            padded = _pad_to_bucket(batch, self.max_length, self.pad_id)
            latents.append(as_numpy(self._encode(padded))[: len(batch)])
        return np.concatenate(latents)

    def sample(self, n, seed=None):
        """Latents of the prior: (n, num_latent_layers, latent_dim) float32.

        Uniform on the sphere (vmf), standard normal (gaussian), or the codes as often as training
        used them (quantized). An autoencoder (latent=None) has no prior.

        Args:
            n: int >= 0.
            seed: int, for draws that repeat.

        Raises:
            ValueError: for an autoencoder, or a negative n or seed.

        Example:
        >>> from kerasattn.models import UniVAE
        >>> model = UniVAE(9, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=8,
        ...                num_latent_layers=1, latent_dim=4, max_length=6)
        >>> model.sample(3, seed=0).shape
        (3, 1, 4)
        """
        check_whole("n", n)
        check_whole("seed", 0 if seed is None else seed)
        rng = np.random.default_rng(seed)
        layers, dim = self.latent_shape
        if self.latent is None:
            raise ValueError("latent=None is a plain autoencoder: it has no prior to sample from.")
        if self.latent == "quantized":
            return np.stack([_draw_codes(q, n, rng) for q in self.quantizers], axis=1)
        normal = rng.standard_normal((n, layers, dim)).astype("float32")
        return _unit(normal) if self.latent == "vmf" else normal

    def reconstruct(self, texts, strategy=None, seed=None):
        """Encodes and writes again: token ids to token ids, strings to strings.

        Example:
        >>> from kerasattn.models import UniVAE
        >>> model = UniVAE(9, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=8,
        ...                num_latent_layers=1, latent_dim=4, max_length=6)
        >>> model.reconstruct([[2, 7, 3]]).shape
        (1, 6)
        """
        token_ids = self._token_ids(texts)
        return self.generate(
            self.encode(token_ids),
            strategy,
            self._own_lengths(token_ids),
            seed=seed,
            as_text=_is_text(texts),
        )

    def interpolate(self, a, b, steps=8, lengths=None):
        """The way from a to b, both included, layer by layer: on the sphere for vmf, else straight.

        Args:
            a, b: latents (num_latent_layers, latent_dim), or strings.
            steps: int >= 2.
            lengths: see `generate`; for strings, by default from that of a to that of b.

        Returns:
            Latents (steps, num_latent_layers, latent_dim), or a list of strings.

        Raises:
            ValueError: for fewer than two steps, or lengths beside latents.

        Example:
        >>> from kerasattn.models import UniVAE
        >>> model = UniVAE(9, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=8,
        ...                num_latent_layers=1, latent_dim=4, max_length=6)
        >>> model.interpolate(*model.sample(2, seed=0), steps=5).shape
        (5, 1, 4)
        """
        check_whole("steps", steps, 2)  # it counts both ends
        if isinstance(a, str):
            token_ids = self._token_ids([a, b])
            own = self._own_lengths(token_ids)
            if lengths is None and own is not None:
                lengths = np.linspace(*own, steps).round().astype("int32")
            path = self.interpolate(*self.encode(token_ids), steps)
            return self.generate(path, lengths=lengths)
        _check_no_lengths(lengths)
        a, b = (self._check_latents(as_numpy(end)[None])[0] for end in (a, b))
        t = np.linspace(0, 1, steps, dtype="float32")[:, None, None]
        if self.latent != "vmf":
            return (1 - t) * a + t * b
        return _on_the_sphere(a, b, t)

    def resample(self, latents, layers, seed=None, lengths=None):
        """Replaces the latents of some layers by draws from the prior and keeps the rest.

        Args:
            latents: (batch, num_latent_layers, latent_dim), or strings.
            layers: ints, which latents; 0 is that of the lowest latent layer, -1 of the top one.
            seed: int, for draws that repeat.
            lengths: see `generate`; for strings, by default their own.

        Returns:
            Latents of the same shape, or a list of strings.

        Raises:
            ValueError: for layers that there are not, or lengths beside latents.

        Example:
        >>> from kerasattn.models import UniVAE
        >>> model = UniVAE(9, num_layers=3, num_heads=2, hidden_dim=8, intermediate_dim=8,
        ...                num_latent_layers=2, latent_dim=4, max_length=6)
        >>> latents = model.sample(3, seed=0)
        >>> other = model.resample(latents, layers=[0], seed=1)
        >>> bool((other[:, 1] == latents[:, 1]).all()), bool((other[:, 0] == latents[:, 0]).any())
        (True, False)
        """
        if _is_text(latents):
            token_ids = self._token_ids(latents)
            lengths = self._own_lengths(token_ids) if lengths is None else lengths
            return self.generate(
                self.resample(self.encode(token_ids), layers, seed), lengths=lengths
            )
        _check_no_lengths(lengths)
        latents = self._check_latents(latents).copy()
        chosen, count = np.atleast_1d(as_numpy(layers)), self.latent_shape[0]
        if chosen.size == 0:
            return latents
        wrong = chosen.dtype.kind not in "iu" or ((chosen < -count) | (chosen >= count)).any()
        if wrong or chosen.ndim != 1:
            raise ValueError(
                f"layers takes latent layers from {-count} to {count - 1}, got {layers!r}."
            )
        latents[:, chosen] = self.sample(len(latents), seed)[:, chosen]
        return latents

    # === Front doors ===
    def _token_ids(self, texts):
        if _is_text(texts):
            texts = [texts] if isinstance(texts, str) else list(texts)
            texts = self._require_tokenizer().encode(texts, max_length=self.max_length)
        texts = as_numpy(texts)
        if texts.shape == (0,):
            raise ValueError("There is nothing to encode: got an empty list.")
        if texts.ndim != 2 or texts.dtype.kind not in "iu":
            raise ValueError(
                f"Token ids are integers of the shape (batch, length), got {texts.dtype} of the "
                f"shape {texts.shape}."
            )
        if not 1 <= texts.shape[1] <= self.max_length:
            raise ValueError(
                f"Sentences have 1 to max_length = {self.max_length} tokens, got {texts.shape[1]}."
            )
        check_range("token_ids", texts, self.vocabulary_size)
        return texts.astype("int32")

    def _check_latents(self, latents):
        latents = as_numpy(latents)
        if latents.shape[1:] != self.latent_shape or latents.dtype.kind not in "fiu":
            wanted = ", ".join(map(str, self.latent_shape))
            raise ValueError(
                f"latents take numbers of the shape (batch, {wanted}), got {latents.dtype} of the "
                f"shape {latents.shape}."
            )
        if not np.isfinite(latents).all():
            raise ValueError("latents hold NaN or infinity.")
        latents = latents.astype("float32")
        if self.latent == "vmf":
            norms = np.linalg.norm(latents, axis=-1)
            if (np.abs(norms - 1) > 1e-2).any():
                raise ValueError(
                    "Latents of the von Mises-Fisher kind are unit vectors, got norms from "
                    f"{norms.min():.3g} to {norms.max():.3g}: divide each by its norm."
                )
        return latents

    def _own_lengths(self, token_ids):
        """The lengths of texts with which they are written again; None where none is asked for."""
        if self.length != "conditioned":
            return None
        return np.sum(token_ids != self.pad_id, axis=1)

    def _require_tokenizer(self):
        if self.tokenizer is None:
            raise ValueError("Strings need a tokenizer: build the model with tokenizer=...")
        return self.tokenizer


def _check_no_lengths(lengths):
    if lengths is not None:
        raise ValueError("lengths is for strings; latents alone have none: give it to `generate`.")


def _is_text(texts):
    if isinstance(texts, str):
        return True
    return isinstance(texts, (list, tuple)) and len(texts) > 0 and isinstance(texts[0], str)


def _pad_to_bucket(token_ids, max_length, pad_id):
    """Pads the batch to a power of two and the length to a multiple of 8: few shapes to compile."""
    batch, length = token_ids.shape
    more = (1 << (batch - 1).bit_length()) - batch
    longer = min(-(-length // 8) * 8, max_length) - length
    return np.pad(token_ids, [(0, more), (0, longer)], constant_values=pad_id)


def _draw_codes(quantizer, n, rng):
    """n codes' vectors, as often as training used them: (n, latent_dim)."""
    prior = as_numpy(quantizer.prior()).astype("float64")
    codes = rng.choice(len(prior), n, p=prior / prior.sum())
    return as_numpy(quantizer.lookup(codes)).astype("float32")


def _unit(x):
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12)


def _on_the_sphere(a, b, t):
    """Along the great circle through a and b, in the last axis; t (steps, 1, 1) from 0 to 1."""
    a, b = a.astype("float64"), b.astype("float64")
    cosine = np.sum(a * b, axis=-1, keepdims=True)
    side = b - cosine * a  # what b has beside a
    sine = np.linalg.norm(side, axis=-1, keepdims=True)
    # Between opposite points every way is as short: one along the axis that a has least of.
    other = np.eye(a.shape[-1])[np.argmin(np.abs(a), axis=-1)]
    other = other - np.sum(other * a, axis=-1, keepdims=True) * a
    side = _unit(np.where(sine < 1e-6, other, side))
    angle = np.arctan2(sine, cosine) * t
    path = np.cos(angle) * a + np.sin(angle) * side
    path[0], path[-1] = a, b
    return path.astype("float32")
