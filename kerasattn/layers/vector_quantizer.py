import keras
from keras import ops

NEVER = 2**30  # steps without use that no training reaches


@keras.saving.register_keras_serializable(package="kerasattn")
class VectorQuantizer(keras.layers.Layer):
    """Replaces each vector by the nearest one of a learned codebook.

    The gradient passes straight through to the input, and a commitment loss keeps the input near
    its code. The codebook has no gradient: while training, each code moves to an exponential
    moving average of the vectors that chose it. A code that no vector has chosen for
    `revive_after` steps is moved onto a vector of the batch; the first batches place all codes.
    Under tf.distribute the averages are those of all replicas, and codes are moved onto vectors of
    the first one.

    Args:
        codebook_size: int >= 1, the number of codes.
        commitment: float >= 0, the weight of the squared distance between an input and its code,
            averaged over vectors and dimensions.
        decay: float, 0 <= decay < 1, of the moving averages, per training step.
        revive_after: int >= 1 or None, steps without use after which a code is moved. None moves
            none.
        seed: int or None, for revivals and drawn codes that repeat.

    Inputs:
        x: (..., dim). mask: optional bool (...), True = real. Padding is quantized, but neither
        moves the codebook nor counts in the loss.

    Shapes:
        (..., dim) -> (..., dim)

    Raises:
        ValueError: if an argument is out of its range.

    Example:

    >>> import numpy as np
    >>> import kerasattn.layers as layers
    >>> quantizer = layers.VectorQuantizer(codebook_size=2, seed=0)
    >>> x = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> for _ in range(2):  # the first step puts the codes onto the batch
    ...     _ = quantizer(x, training=True)
    >>> np.asarray(quantizer(x)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    >>> len(set(np.asarray(quantizer.codes(x)).tolist()))
    2

    Source: https://arxiv.org/abs/1711.00937, sections 3.1, 3.2 and appendix A.1; revival:
    https://arxiv.org/abs/2005.00341, section 3.1.
    """

    def __init__(
        self, codebook_size, commitment=0.25, decay=0.99, revive_after=100, seed=None, **kwargs
    ):
        super().__init__(**kwargs)
        if codebook_size < 1:
            raise ValueError(f"codebook_size must be at least 1, got {codebook_size}.")
        if not commitment >= 0:
            raise ValueError(f"commitment must not be negative, got {commitment}.")
        if not 0 <= decay < 1:
            raise ValueError(f"decay must be at least 0 and less than 1, got {decay}.")
        if revive_after is not None and revive_after < 1:
            raise ValueError(f"revive_after must be at least 1 or None, got {revive_after}.")
        self.codebook_size = int(codebook_size)
        self.commitment = float(commitment)
        self.decay = float(decay)
        self.revive_after = revive_after
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.supports_masking = True

    def build(self, input_shape):
        size, dim = self.codebook_size, input_shape[-1]
        self.codebook = self._add("codebook", (size, dim), "random_normal")
        self.counts = self._add("counts", (size,), "zeros")  # moving average of uses a step
        self.sums = self._add("sums", (size, dim), "zeros")  # of the vectors that used a code
        # Steps since the last use. New codes are dead: the first batches place them.
        idle = keras.initializers.Constant(NEVER)
        self.idle = self._add("idle", (size,), idle, "int32")

    def _add(self, name, shape, initializer, dtype="float32"):
        return self.add_weight(
            shape=shape,
            initializer=initializer,
            dtype=dtype,
            trainable=False,
            autocast=False,
            aggregation="only_first_replica",  # a mean of moved codes is a vector of nobody
            name=name,
        )

    def call(self, x, mask=None, training=False):
        x = ops.convert_to_tensor(x)
        vectors = ops.reshape(ops.cast(x, "float32"), (-1, x.shape[-1]))  # (vectors, dim)
        codes = self._nearest(vectors)
        real = ops.ones_like(codes, dtype="float32")  # (vectors,)
        if mask is not None:
            mask = ops.broadcast_to(mask, ops.shape(x)[:-1])
            real = ops.cast(ops.reshape(mask, (-1,)), "float32")
        quantized = ops.take(ops.convert_to_tensor(self.codebook), codes, axis=0)
        quantized = ops.stop_gradient(quantized)  # (vectors, dim)
        distance = ops.mean(ops.square(vectors - quantized), axis=-1)
        distance = ops.sum(distance * real) / ops.maximum(ops.sum(real), 1.0)
        self.add_loss(self.commitment * distance)
        if training:
            self._update(ops.stop_gradient(vectors), codes, real, padded=mask is not None)
        # The value is the code's to the last bit, the gradient is that of x.
        quantized = quantized + (vectors - ops.stop_gradient(vectors))
        return ops.cast(ops.reshape(quantized, ops.shape(x)), x.dtype)

    def codes(self, x):
        """The number of the nearest code: (..., dim) -> (...) int32."""
        x = ops.convert_to_tensor(x)
        codes = self._nearest(ops.reshape(ops.cast(x, "float32"), (-1, x.shape[-1])))
        return ops.reshape(codes, ops.shape(x)[:-1])

    def lookup(self, codes):
        """The vectors of codes: (...) int -> (..., dim)."""
        return ops.cast(
            ops.take(ops.convert_to_tensor(self.codebook), codes, axis=0), self.compute_dtype
        )

    def prior(self):
        """The share of each code in recent training batches: (codebook_size,), sums to 1."""
        counts = ops.convert_to_tensor(self.counts) + 1e-8  # uniform before training
        return counts / ops.sum(counts)

    def sample_codes(self, shape, seed=None):
        """Draws codes from the prior: -> (*shape) int32."""
        seed = self.seed_generator if seed is None else seed
        count = 1
        for size in shape:
            count *= size
        logits = ops.log(self.prior())[None]
        codes = keras.random.categorical(logits, count, dtype="int32", seed=seed)
        return ops.reshape(codes, tuple(shape))

    def perplexity(self):
        """The perplexity of the prior: 1 = one code used, codebook_size = all used alike."""
        prior = self.prior()
        return ops.exp(-ops.sum(prior * ops.log(prior)))

    def compute_mask(self, inputs, mask=None):
        return mask

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "codebook_size": self.codebook_size,
            "commitment": self.commitment,
            "decay": self.decay,
            "revive_after": self.revive_after,
            "seed": self.seed,
        }

    def _nearest(self, vectors):
        """(vectors, dim) -> (vectors,) int32."""
        codebook = ops.convert_to_tensor(self.codebook)
        similarity = ops.matmul(vectors, ops.transpose(codebook))  # (vectors, codes)
        similarity = similarity - 0.5 * ops.sum(ops.square(codebook), axis=-1)
        return ops.cast(ops.argmax(similarity, axis=-1), "int32")

    def _update(self, vectors, codes, real, padded):
        """One step of the moving averages, then the revival of dead codes."""
        size = self.codebook_size
        count = _over_replicas(ops.segment_sum(real, codes, num_segments=size))  # (codes,)
        total = ops.segment_sum(vectors * real[:, None], codes, num_segments=size)
        total = _over_replicas(total)  # (codes, dim)
        rate = 1 - self.decay
        counts = self.decay * self.counts + rate * count
        sums = self.decay * self.sums + rate * total  # (codes, dim)
        old_idle = ops.convert_to_tensor(self.idle)
        idle = ops.where(count > 0, 0, ops.minimum(old_idle, NEVER - 1) + 1)

        # The n-th dead code moves to the n-th real vector, counted from a random one: no two to
        # the same one. Those beyond the batch wait for the next.
        num_real = ops.cast(ops.sum(real), "int32")
        dead = old_idle >= NEVER  # not even placed yet
        if self.revive_after is not None:
            dead = dead | (idle >= self.revive_after)
        rank = ops.cumsum(ops.cast(dead, "int32")) - 1
        dead = dead & (rank < num_real)
        start = keras.random.uniform((), dtype="float32", seed=self.seed_generator)
        start = ops.cast(start * ops.cast(num_real, "float32"), "int32")
        row = (rank + start) % ops.maximum(num_real, 1)
        if padded:
            row = ops.take(ops.argsort(-real), row)  # real vectors first
        revived = ops.take(vectors, row, axis=0)  # (codes, dim)

        used = counts > 1e-6
        means = sums / ops.where(used, counts, 1.0)[:, None]
        codebook = ops.where(used[:, None], means, ops.convert_to_tensor(self.codebook))
        self.codebook.assign(ops.where(dead[:, None], revived, codebook))
        self.counts.assign(ops.where(dead, rate, counts))
        self.sums.assign(ops.where(dead[:, None], rate * revived, sums))
        self.idle.assign(ops.where(dead, 0, idle))


def _over_replicas(x):
    """The mean of what the replicas of tf.distribute have; x itself where there is but one."""
    several = keras.backend.backend() == "tensorflow"  # the others have no replicas
    return ops.moments(x[None], axes=[0], synchronized=several)[0]
