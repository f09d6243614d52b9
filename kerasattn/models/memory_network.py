import keras
from keras import ops

from kerasattn import layers
from kerasattn.models.base import BaseModel
from kerasattn.models.classifier import Classifier
from kerasattn.models.settings import check_settings
from kerasattn.ops import seeds

TYINGS = ("adjacent", "layerwise")


@keras.saving.register_keras_serializable(package="kerasattn")
class MemoryNetwork(Classifier, BaseModel):
    """An end-to-end memory network: a question looks into a story several times, then is answered.

    Args:
        vocabulary_size: int >= 1.
        hidden_dim: int >= 1, of all vectors.
        num_hops: int >= 1, looks into the memory.
        max_sentences: int >= 1, how many times there are; what is longer ago shares the last.
        tying: "adjacent", what one hop reads the next one looks for, six tables become four for
            three hops; or "layerwise", the same tables in each hop, and a matrix between them.
        position_encoding: bool, whether the order of words tells.
        temporal_encoding: bool, whether the order of sentences tells.
        temporal_noise: float in [0, 1), the share of moments in training when nothing is told.
        linear: bool, whether training begins without softmax; `set_linear(False)` ends that.
        initializer_stddev: float > 0, of all tables.
        pad_id: int, of what is no word.
        seed: int or None, of tables and noise.

    Inputs:
        story_ids: int (batch, sentences, words), the oldest first; pad_id behind the words of a
            sentence, and behind the last sentence.
        question_ids: int (batch, words).

    Outputs:
        hidden (batch, hidden_dim); answer_logits (batch, vocabulary_size), float32;
        attention_weights (batch, num_hops, sentences), float32.

    Raises:
        ValueError: for sizes out of range, another tying, ids out of range.

    Example:

    >>> from kerasattn.data import generate_stories, story_arrays, story_vocabulary
    >>> from kerasattn.models import MemoryNetwork
    >>> questions = generate_stories(1, 20, seed=0)
    >>> vocabulary = story_vocabulary(questions)
    >>> inputs, answers = story_arrays(questions, vocabulary, max_sentences=10)
    >>> model = MemoryNetwork(len(vocabulary), hidden_dim=8, max_sentences=10)
    >>> model.compile("adam")  # then model.fit(inputs, answers): the model knows its loss
    >>> tuple(model(inputs)["attention_weights"].shape)
    (20, 3, 10)

    Source: https://arxiv.org/abs/1503.08895 (Sukhbaatar et al. 2015).
    """

    _logits = "answer_logits"

    def __init__(
        self,
        vocabulary_size,
        hidden_dim=20,
        num_hops=3,
        max_sentences=50,
        tying="adjacent",
        position_encoding=True,
        temporal_encoding=True,
        temporal_noise=0.1,
        linear=False,
        initializer_stddev=0.1,
        pad_id=0,
        seed=None,
        dtype=None,
        name="memory_network",
    ):
        config = dict(
            vocabulary_size=vocabulary_size,
            hidden_dim=hidden_dim,
            num_hops=num_hops,
            max_sentences=max_sentences,
            tying=tying,
            position_encoding=position_encoding,
            temporal_encoding=temporal_encoding,
            temporal_noise=temporal_noise,
            linear=linear,
            initializer_stddev=initializer_stddev,
            pad_id=pad_id,
            seed=seed,
            name=name,
        )
        check_settings(config)
        if tying not in TYINGS:
            raise ValueError(f"tying must be one of {TYINGS}, got {tying!r}.")
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())

        # === Layers ===
        def normal(name):
            of_part = seeds.child(seed, name)
            return keras.initializers.RandomNormal(stddev=initializer_stddev, seed=of_part)

        def words(name):
            options = dict(embeddings_initializer=normal(name), dtype=policy, name=name)
            return layers.BagOfWords(
                vocabulary_size, hidden_dim, position_encoding, pad_id, **options
            )

        # Hop k looks at keys of table k and reads values of table k + 1, or always of the same two.
        adjacent = tying == "adjacent"
        names = range(num_hops + 1 if adjacent else 2)
        tables = [words(f"words_{k}") for k in names]
        times = [
            keras.layers.Embedding(
                max_sentences, hidden_dim, normal(f"times_{k}"), dtype=policy, name=f"times_{k}"
            )
            for k in names
        ]
        time_ids = layers.TimeIds(
            max_sentences, temporal_noise, seeds.child(seed, "noise"), dtype=policy, name="time_ids"
        )
        hop = layers.MemoryHop(linear, dtype=policy, name="hop")
        asked, told_by = (tables[0], tables[-1]) if adjacent else map(words, ("asked", "told_by"))
        between = keras.layers.Dense(
            hidden_dim,
            use_bias=False,
            kernel_initializer=normal("between"),
            dtype=policy,
            name="between",
        )
        scores = layers.WordScores(told_by, dtype=policy, name="answer_logits")

        # === Model ===
        story_ids = keras.Input((None, None), dtype="int32", name="story_ids")
        question_ids = keras.Input((None,), dtype="int32", name="question_ids")
        told = ops.any(ops.not_equal(story_ids, pad_id), axis=-1)  # (batch, sentences)
        memories = [table(story_ids) for table in tables]  # (batch, sentences, hidden_dim) each
        if temporal_encoding:
            ago = time_ids(told)
            memories = [memory + time(ago) for memory, time in zip(memories, times)]
        state = asked(question_ids)  # (batch, hidden_dim)
        states, looks = [state], []
        for k in range(num_hops):
            keys, values = memories[k : k + 2] if adjacent else memories
            found, weights = hop(state, keys, values, attention_mask=told)
            state = (state if adjacent else between(state)) + found
            states.append(state)
            looks.append(weights)
        outputs = {
            "hidden": state,
            "answer_logits": scores(state),  # (batch, vocabulary_size)
            "attention_weights": ops.stack(looks, axis=1),  # (batch, num_hops, sentences)
        }
        inputs = {"story_ids": story_ids, "question_ids": question_ids}
        super().__init__(inputs, outputs, name=name)

        # === Config ===
        self._keep_classes(config, policy, states)
        self._id_ranges = dict.fromkeys(inputs, vocabulary_size)

    def set_linear(self, linear):
        """Takes the softmax out of all hops, or puts it in; a compiled training goes on with it."""
        self.get_layer("hop").is_linear.assign(float(linear))
