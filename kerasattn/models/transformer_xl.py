import keras
from keras import ops

from kerasattn import layers
from kerasattn.models.language_model import LanguageModel
from kerasattn.models.settings import check_settings
from kerasattn.ops import seeds
from kerasattn.weights.tables import transformer_xl as tables


@keras.saving.register_keras_serializable(package="kerasattn")
class TransformerXL(LanguageModel):
    """A language model that reads segment by segment, with the hidden vectors of earlier ones.

    Args:
        vocabulary_size: int, number of tokens, frequent ones first.
        num_layers, num_heads, head_dim, hidden_dim, intermediate_dim: int, of the blocks.
        embedding_dim, cutoffs, embedding_divisor: of the embedding and the softmax; see
            `layers.AdaptiveEmbedding`.
        with_head: bool, whether there are log-probabilities.
        tied_head: bool, whether they come from the embedding's tables.
        tied_projections: bools, one a cluster, whether from its projections too; by default from
            all but the first.
        memory_length: int, how many vectors of each layer the next segment sees.
        same_length: bool, whether every token sees itself and the memory_length - 1 tokens before
            it, wherever it stands; otherwise all of its segment before it and all of the memory.
        max_distance: int or None, from which on all distances count as this one.
        shared_biases: bool, whether the scores' biases are the same in all blocks.
        norm: "post" or "pre".
        activation: of the feed-forward parts.
        dropout, attention_dropout: float in [0, 1).
        layer_norm_epsilon: float > 0.
        initializer_range: float > 0, standard deviation of the weights at the start.
        start_id, end_id, pad_id, seed: as `GPT2`.

    Inputs:
        token_ids: int (batch, length). Padding stands behind a text.
        padding_mask, attention_mask: as `GPT2`.
        memories: float (batch, num_layers, memory, hidden_dim), of the segment before; by default
            zeros, which are seen.

    Outputs:
        hidden: (batch, length, hidden_dim).
        lm_logits: (batch, length, vocabulary_size), log-probabilities of the next tokens.
        memories: (batch, num_layers, memory_length, hidden_dim), for the next segment; padding is
            left out.

    Raises:
        ValueError: for same_length without memories.

    Example:
    >>> from kerasattn.models import TransformerXL
    >>> model = TransformerXL(30, num_layers=1, num_heads=2, head_dim=8, hidden_dim=16,
    ...                       intermediate_dim=32, cutoffs=(10,), memory_length=4)
    >>> first = model([[7, 8, 3]])
    >>> second = model({"token_ids": [[5, 6]], "memories": first["memories"]})
    >>> tuple(second["lm_logits"].shape), model.generate([[7, 8]], None, 5, jit=False).shape
    ((1, 2, 30), (1, 5))

    Source: https://arxiv.org/abs/1901.02860, section 3.
    """

    formats = tables.FORMATS

    def __init__(
        self,
        vocabulary_size,
        num_layers=18,
        num_heads=16,
        head_dim=64,
        hidden_dim=1024,
        intermediate_dim=4096,
        embedding_dim=None,
        cutoffs=(),
        embedding_divisor=1,
        with_head=True,
        tied_head=True,
        tied_projections=None,
        memory_length=384,
        same_length=False,
        max_distance=None,
        shared_biases=False,
        norm="post",
        activation="relu",
        dropout=0.1,
        attention_dropout=0.0,
        layer_norm_epsilon=1e-5,
        initializer_range=0.02,
        start_id=None,
        end_id=None,
        pad_id=None,
        seed=None,
        dtype=None,
        name=None,
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_settings(config)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        if same_length and memory_length < 1:
            raise ValueError("same_length=True needs a memory_length of 1 or more, got 0.")

        # === Layers ===
        def initializer():
            return keras.initializers.RandomNormal(stddev=initializer_range)

        embedding = layers.AdaptiveEmbedding(
            vocabulary_size,
            hidden_dim,
            embedding_dim,
            cutoffs,
            embedding_divisor,
            initializer=initializer(),
            dtype=policy,
            name="token_embedding",
        )
        drop = keras.layers.Dropout(
            dropout, seed=seeds.child(seed, "dropout"), dtype=policy, name="dropout"
        )
        sinusoids = layers.RelativeSinusoids(False, max_distance, dtype=policy, name="distances")
        biases = None
        if shared_biases:
            biases = layers.QueryBiases(
                num_heads, head_dim, initializer=initializer(), dtype=policy, name="biases"
            )
        blocks = [
            layers.RelativeTransformerBlock(
                num_heads,
                intermediate_dim,
                head_dim,
                biases=biases,
                activation=activation,
                dropout=dropout,
                attention_dropout=attention_dropout,
                norm=norm,
                layer_norm_epsilon=layer_norm_epsilon,
                kernel_initializer=initializer(),
                seed=seeds.child(seed, f"block_{i}"),
                dtype=policy,
                name=f"block_{i}",
            )
            for i in range(num_layers)
        ]
        head = None
        if with_head:
            if tied_projections is None:
                tied_projections = [False] + [True] * len(cutoffs)
            head = layers.AdaptiveSoftmax(
                embedding, tied_head, tied_projections, dtype=policy, name="head"
            )

        # === Inputs ===
        def given(name, *shape, dtype="bool"):
            return keras.Input(shape, dtype=dtype, name=name, optional=name != "token_ids")

        inputs = [
            given("token_ids", None, dtype="int32"),
            given("padding_mask", None),
            given("attention_mask", None, None),
            given("memories", num_layers, None, hidden_dim, dtype="float32"),
        ]
        token_ids, padding_mask, further_mask, memories = inputs
        real = layers.PaddingMask(pad_id, name="padding")(token_ids, padding_mask)
        mask = layers.AttentionMask("lm", name="mask")(real, None, further_mask)

        # === Model ===
        x = drop(embedding(token_ids))  # (batch, length, hidden)
        earlier = layers.Memories(num_layers, memory_length, dtype=policy, name="earlier")
        memories = earlier(x, memories)  # (batch, layer, memory, hidden)
        with_memory = layers.MemoryMask(memory_length if same_length else None, name="with_memory")
        mask = with_memory(mask, memories)  # (batch, 1, length, memory + length)
        distances = drop(sinusoids(x, memories))  # (1, distance, hidden)
        hidden = [x]
        for i, block in enumerate(blocks):
            x = block(x, distances, memory=memories[:, i], attention_mask=mask)
            hidden.append(x)
        outputs = {"hidden": drop(x)}
        if with_head:
            outputs["lm_logits"] = head(outputs["hidden"])  # (batch, length, vocabulary)
        kept = layers.NextMemories(memory_length, dtype=policy, name="next_memories")
        outputs["memories"] = kept(memories, hidden[:-1], real)
        super().__init__({x.name: x for x in inputs}, outputs, name=name)

        # === Config ===
        lists = {"cutoffs": list(cutoffs), "tied_projections": tied_projections}
        self._keep({**config, **lists}, policy, hidden, finish=head)

    # === Writing ===
    attention_step = None  # its attention does not return weights

    def initial_state(self, inputs, max_new_tokens):
        """The memories of prompts but for their last tokens; for `decoding.generate`.

        Args:
            inputs: dict of `token_ids` and `padding_mask` (batch, prompt).
            max_new_tokens: int; memories are as long whatever it is.

        Raises:
            ValueError: for a model without memories, which would not know what it wrote.
        """
        if not self._config["memory_length"]:
            raise ValueError(f"{self.name} writes from its memories: give a memory_length.")
        token_ids, real = inputs["token_ids"], ops.cast(inputs["padding_mask"], "bool")
        if not token_ids.shape[1]:
            shape = (self._config["num_layers"], self._config["memory_length"])
            shape = (ops.shape(token_ids)[0], *shape, self._config["hidden_dim"])
            return {"memories": ops.zeros(shape, self._hidden[0].dtype)}
        # Padding goes behind the prompts: distances count all that stands between.
        length = token_ids.shape[1]
        unreal = 1 - ops.cast(real, "int32")
        order = ops.argsort(ops.arange(length)[None] + unreal * length, axis=1)
        prompts = {
            "token_ids": ops.take_along_axis(token_ids, order, axis=1),
            "padding_mask": ops.take_along_axis(real, order, axis=1),
        }
        return {"memories": self(prompts, training=False)["memories"]}

    def hidden_step(self, token_ids, index, state):
        """As `step`: (log-probabilities, the token's hidden vector (batch, hidden), the state)."""
        token_ids = token_ids[:, None]
        inputs = {"token_ids": token_ids, "padding_mask": ops.ones_like(token_ids, "bool")}
        outputs = self({**inputs, "memories": state["memories"]}, training=False)
        memories = {"memories": outputs["memories"]}
        return outputs["lm_logits"][:, 0], outputs["hidden"][:, 0], memories
