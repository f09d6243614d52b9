import keras

from kerasattn import layers
from kerasattn.models.language_model import LanguageModel, text_inputs
from kerasattn.models.parts import language_model_head
from kerasattn.models.settings import check_settings
from kerasattn.ops import seeds
from kerasattn.weights.tables import gpt2 as tables


@keras.saving.register_keras_serializable(package="kerasattn")
class GPT2(LanguageModel):
    """A language model of pre-norm blocks with learned positions.

    Args:
        vocabulary_size: int, number of tokens.
        num_layers, num_heads, hidden_dim, intermediate_dim: int, of the blocks.
        max_length: int, rows of the position table.
        with_head: bool, whether there are logits.
        tied_head: bool, whether they come from the token table.
        activation: of the feed-forward parts; "gelu_tanh" is the tanh form.
        dropout, embedding_dropout, attention_dropout: float in [0, 1); of the last two None means
            as `dropout`.
        layer_norm_epsilon: float > 0.
        initializer_range: float > 0, standard deviation of the kernels at the start.
        scale_attention: bool, whether scores are divided by the root of the head's width.
        scale_attention_by_layer: bool, whether block i divides them by i + 1 besides.
        start_id, end_id: int or None, tokens that begin and end a text; end_id may be several.
        pad_id: int, id of padding; None: nothing is padding, unless a padding_mask says so.
        seed: int or None, of the dropouts.

    Inputs:
        token_ids: int (batch, length).
        padding_mask: bool (batch, length), True = real token, by default token_ids != pad_id.
        position_ids: int (batch, length); by default they count real tokens, so that padding may
            stand on either side.
        attention_mask: bool (batch, length, length), optional: a further mask.

    Outputs:
        hidden: (batch, length, hidden_dim).
        lm_logits: (batch, length, vocabulary_size); position i tells token i + 1.

    Raises:
        ValueError: for inputs longer than max_length.

    Example:
    >>> from kerasattn.models import GPT2
    >>> model = GPT2(30, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    >>> tuple(model([[7, 8, 3]])["lm_logits"].shape), model.generate([[7, 8]], None, 5).shape
    ((1, 3, 30), (1, 5))

    Source: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019, section
    2.3.
    """

    formats = tables.FORMATS
    norm = "pre"  # "post" is the first GPT

    def __init__(
        self,
        vocabulary_size,
        num_layers=12,
        num_heads=12,
        hidden_dim=768,
        intermediate_dim=3072,
        max_length=1024,
        with_head=True,
        tied_head=True,
        activation="gelu_tanh",
        dropout=0.1,
        embedding_dropout=None,
        attention_dropout=None,
        layer_norm_epsilon=1e-5,
        initializer_range=0.02,
        scale_attention=True,
        scale_attention_by_layer=False,
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

        # === Layers ===
        def initializer():
            return keras.initializers.TruncatedNormal(stddev=initializer_range)

        def attention_scale(i):
            scale = (hidden_dim // num_heads) ** -0.5 if scale_attention else 1.0
            return scale / (i + 1) if scale_attention_by_layer else scale

        token_embedding = layers.TokenEmbedding(
            vocabulary_size,
            hidden_dim,
            embeddings_initializer=initializer(),
            dtype=policy,
            name="token_embedding",
        )
        position_embedding = layers.LearnedPositionEmbedding(
            max_length,
            embeddings_initializer=initializer(),
            dtype=policy,
            name="position_embedding",
        )
        dropout_layer = keras.layers.Dropout(
            dropout if embedding_dropout is None else embedding_dropout,
            seed=seeds.child(seed, "embedding_dropout"),
            dtype=policy,
            name="embedding_dropout",
        )
        blocks = [
            layers.TransformerBlock(
                num_heads,
                intermediate_dim,
                activation=activation,
                dropout=dropout,
                attention_dropout=attention_dropout,
                norm=self.norm,
                layer_norm_epsilon=layer_norm_epsilon,
                attention_scale=attention_scale(i),
                kernel_initializer=initializer(),
                seed=seeds.child(seed, f"block_{i}"),
                dtype=policy,
                name=f"block_{i}",
            )
            for i in range(num_layers)
        ]
        final_norm = None
        if self.norm == "pre":
            final_norm = keras.layers.LayerNormalization(
                epsilon=layer_norm_epsilon, dtype=policy, name="final_norm"
            )
        head = None
        if with_head:
            head = language_model_head(token_embedding, tied_head, initializer(), policy)

        # === Parts ===
        def embed(token_ids, position_ids):
            x = token_embedding(token_ids)  # (batch, length, hidden)
            return dropout_layer(position_embedding(x, position_ids=position_ids))

        def normalize(x):
            return x if final_norm is None else final_norm(x)

        # === Model ===
        inputs, position_ids, mask = text_inputs(pad_id)
        hidden = [embed(inputs["token_ids"], position_ids)]  # each (batch, length, hidden)
        for block in blocks:
            hidden.append(block(hidden[-1], attention_mask=mask))
        hidden[-1] = normalize(hidden[-1])
        outputs = {"hidden": hidden[-1]}
        if with_head:
            outputs["lm_logits"] = head(hidden[-1])  # (batch, length, vocabulary)
        super().__init__(inputs, outputs, name=name)

        # === Config ===
        finish = head and (lambda x: head(normalize(x)))
        parts = dict(embed=embed, blocks=blocks, normalize=normalize, finish=finish)
        self._keep(config, policy, hidden, **parts)
        self.max_positions = max_length
