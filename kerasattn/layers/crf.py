import keras
import numpy as np
from keras import ops

from kerasattn.layers.attention_pooling import check_padding_mask
from kerasattn.ops import crf


@keras.saving.register_keras_serializable(package="kerasattn")
class CRF(keras.layers.Layer):
    """A linear-chain conditional random field: scores of tags become scores of whole paths.

    It returns log-potentials, one tensor that holds all scores: `CRFLoss` trains on it,
    `CRFDecode` finds the best path, `ops.crf` has marginals and more. So no function is bound to
    a layer, and all of it is saved and loaded.

    Args:
        allowed_transitions: bool (num_tags, num_tags), nested lists or an array, whether the tag of
            a column may follow that of a row; None for all. What is not allowed has probability 0.
        allowed_starts, allowed_ends: bool (num_tags,), which tags may be first and last.
        use_boundaries: bool, whether start and end scores are trained.
        transitions_initializer: of all scores that are trained.

    Call arguments:
        emissions: float (batch, length, num_tags), a score of each tag at each step.
        padding_mask: bool (batch, length), True = real; a path goes from one real step to the
            next, rows may be empty. A Keras mask of the emissions counts too.

    Shapes:
        (batch, length, num_tags) -> (batch, length, num_tags, num_tags), from and to, float32 in
        every policy. It carries no Keras mask: padding is in it, as steps that change nothing.

    Raises:
        ValueError: for emissions of another rank, a mask of another shape, or constraints of
            another shape than the tags'.

    Example:

    >>> import keras
    >>> import numpy as np
    >>> from kerasattn import layers, training
    >>> token_ids = keras.Input((None,), dtype="int32")
    >>> x = keras.layers.Embedding(10, 4)(token_ids)
    >>> emissions = keras.layers.Dense(3)(x)
    >>> potentials = layers.CRF()(emissions, padding_mask=layers.PaddingMask()(token_ids))
    >>> model = keras.Model(token_ids, potentials)
    >>> model.compile("adam", loss=training.CRFLoss())  # then model.fit(ids, tags)
    >>> tagger = keras.Model(token_ids, layers.CRFDecode()(potentials))
    >>> tuple(tagger(np.array([[5, 6, 7, 0]])).shape)
    (1, 4)

    Source: https://repository.upenn.edu/cis_papers/159, section 3.
    """

    NORMALIZE = False

    def __init__(
        self,
        allowed_transitions=None,
        allowed_starts=None,
        allowed_ends=None,
        use_boundaries=True,
        transitions_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.allowed_transitions = _booleans(allowed_transitions, "allowed_transitions", 2)
        self.allowed_starts = _booleans(allowed_starts, "allowed_starts", 1)
        self.allowed_ends = _booleans(allowed_ends, "allowed_ends", 1)
        self.use_boundaries = use_boundaries
        self.transitions_initializer = keras.initializers.get(transitions_initializer)
        self.supports_masking = True

    def build(self, input_shape):
        if len(input_shape) != 3 or input_shape[-1] is None:
            raise ValueError(
                "emissions must be (batch, length, num_tags) with a known number of tags, got "
                f"shape {tuple(input_shape)}."
            )
        num_tags = input_shape[-1]
        for name in ("allowed_transitions", "allowed_starts", "allowed_ends"):
            allowed = getattr(self, name)
            shape = np.shape(allowed)
            if allowed is not None and set(shape) != {num_tags}:
                raise ValueError(f"{name} has shape {shape}, but there are {num_tags} tags.")

        def scores(shape, name):
            # float32 in every policy, as the scores of long paths need it.
            initializer = self.transitions_initializer.clone()
            return self.add_weight(shape, initializer, name=name, autocast=False)

        self.transitions = scores((num_tags, num_tags), "transitions")
        if self.use_boundaries:
            self.start_scores = scores((num_tags,), "start_scores")
            self.end_scores = scores((num_tags,), "end_scores")

    def call(self, emissions, padding_mask=None, mask=None):
        if padding_mask is not None:
            padding_mask = check_padding_mask(ops.cast(padding_mask, "bool"), emissions)
        if mask is not None:
            padding_mask = mask if padding_mask is None else padding_mask & mask
        starts = self.start_scores if self.use_boundaries else None
        ends = self.end_scores if self.use_boundaries else None
        return crf.log_potentials(
            emissions,
            _only(self.allowed_transitions, self.transitions),
            _only(self.allowed_starts, starts),
            _only(self.allowed_ends, ends),
            padding_mask,
            normalize=self.NORMALIZE,
        )

    def compute_mask(self, *args, **kwargs):
        return None

    def get_config(self):
        return {
            **super().get_config(),
            "allowed_transitions": self.allowed_transitions,
            "allowed_starts": self.allowed_starts,
            "allowed_ends": self.allowed_ends,
            "use_boundaries": self.use_boundaries,
            "transitions_initializer": keras.initializers.serialize(self.transitions_initializer),
        }


def _booleans(given, name, rank):
    """Nested lists of bool, which a config can hold."""
    if given is None:
        return None
    array = np.asarray(given)
    if array.ndim != rank or array.dtype != bool:
        raise ValueError(
            f"{name} takes booleans of rank {rank}, got {array.dtype} of shape {array.shape}."
        )
    return array.tolist()


def _only(allowed, scores):
    """The scores, with what is not allowed made impossible."""
    if allowed is None:
        return scores
    scores = 0.0 if scores is None else ops.convert_to_tensor(scores)
    return ops.where(np.array(allowed), scores, crf.FORBIDDEN)
