import keras

from kerasattn import heads as head_layers
from kerasattn import layers
from kerasattn.models.encoder import Encoder
from kerasattn.models.parts import Parts
from kerasattn.models.xlnet_writing import XLNetWriting
from kerasattn.weights.tables import xlnet as tables


@keras.saving.register_keras_serializable(package="kerasattn")
class XLNet(XLNetWriting, Encoder):
    """An encoder that tells tokens in any order: a stream that sees them, one that asks for them.

    Args:
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim, num_classes,
            activation, dropout, attention_dropout, classifier_dropout, layer_norm_epsilon,
            initializer_range, pad_id, seed: as `BERT`.
        memory_length: int or None, how many vectors of each layer `memories` keeps; None keeps all,
            0 gives no memories.
        max_distance: int or None, from which on all distances count as this one.
        application: "encoder" sees all that the masks leave; "lm" is causal; "unilm" sees all of
            segment 0 and writes segment 1 from left to right.
        heads: as `BERT`; "mlm" is the language model's head, "class" judges the last real token.

    Inputs:
        token_ids: int (batch, length). Padding may stand on either side.
        segment_ids: int (batch, length), by default 0. Only what is equal counts.
        padding_mask, attention_mask: as `BERT`.
        permutation_mask: bool (batch, length, length), True = may attend: which tokens come before
            one in the order in which they are told. A token of the content stream sees itself too.
        target_mapping: float (batch, target, length), 1 where each target stands. With it, hidden
            and logits are the query stream's at the targets, which do not see their own tokens.
        memories: float (batch, num_layers, memory, hidden_dim), of the segment before.
        memory_mask: bool (batch, memory), True = real token, by default all True.

    Outputs:
        hidden: (batch, length or target, hidden_dim).
        lm_logits: (batch, length or target, vocabulary_size), of the tokens at these positions
            themselves; in "lm" and "unilm" of the next ones.
        memories: (batch, num_layers, memory, hidden_dim), for the next segment.
        class_logits, token_logits, start_logits, end_logits: as `BERT`.

    Example:
    >>> import numpy as np
    >>> from kerasattn.models import XLNet
    >>> model = XLNet(30, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    >>> outputs = model({"token_ids": [[7, 8, 9, 3]], "target_mapping": np.eye(4)[None, 2:3]})
    >>> tuple(outputs["lm_logits"].shape), tuple(outputs["memories"].shape)
    ((1, 1, 30), (1, 1, 4, 16))
    >>> model.generate([[7, 8, 9]], max_new_tokens=5, jit=False).shape
    (1, 5)

    Source: https://arxiv.org/abs/1906.08237, sections 2.3 to 2.5.
    """

    formats = tables.FORMATS

    def __init__(
        self,
        vocabulary_size,
        num_layers=12,
        num_heads=12,
        hidden_dim=768,
        intermediate_dim=3072,
        memory_length=None,
        max_distance=None,
        application="encoder",
        heads=("mlm",),
        num_classes=2,
        activation="gelu",
        dropout=0.1,
        attention_dropout=None,
        classifier_dropout=None,
        layer_norm_epsilon=1e-12,
        initializer_range=0.02,
        pad_id=5,
        seed=None,
        dtype=None,
        name="xlnet",
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}

        # === Layers ===
        make = Parts(config)
        token_embedding = make.table(vocabulary_size, "token_embedding")
        dropout_layer, last_dropout = make.dropout(), make.dropout("last_dropout")
        sinusoids = layers.RelativeSinusoids(
            True, max_distance, dtype=make.policy, name="distances"
        )
        query_stream = layers.QueryStream(
            make.initializer(), dtype=make.policy, name="query_stream"
        )
        blocks = [
            layers.RelativeTransformerBlock(
                num_heads,
                intermediate_dim,
                with_segments=True,
                activation=activation,
                dropout=dropout,
                attention_dropout=dropout if attention_dropout is None else attention_dropout,
                layer_norm_epsilon=layer_norm_epsilon,
                kernel_initializer=make.initializer(),
                seed=make.seed(f"block_{i}"),
                dtype=make.policy,
                name=f"block_{i}",
            )
            for i in range(num_layers)
        ]

        # === Inputs ===
        def given(name, shape, dtype):
            return keras.Input(shape, dtype=dtype, name=name, optional=True)

        text = make.text()
        del text.inputs["position_ids"]  # it knows distances alone
        permutation = given("permutation_mask", (None, None), "bool")
        mapping = given("target_mapping", (None, None), "float32")
        memories = given("memories", (num_layers, None, hidden_dim), "float32")
        memory_mask = given("memory_mask", (None,), "bool")
        more = [permutation, mapping, memories, memory_mask]
        text.inputs.update({x.name: x for x in more})

        # === Model ===
        x = dropout_layer(token_embedding(text.token_ids))  # (batch, length, hidden)
        memories = layers.Memories(num_layers, dtype=make.policy, name="earlier")(x, memories)
        with_memory = layers.MemoryMask(name="with_memory")
        content_mask, query_mask = (
            with_memory(mask, memories, memory_mask)  # (batch, 1, length, memory + length)
            for mask in layers.TwoStreamMasks(name="stream_masks")(text.mask, permutation)
        )
        same_segment = layers.SameSegment(name="same_segment")(text.segment_ids, memories)
        distances = dropout_layer(sinusoids(x, memories))  # (1, distance, hidden)
        targets = query_stream(x, mapping)  # (batch, target, hidden)
        hidden = [x]
        for i, block in enumerate(blocks):
            x, targets = block(
                x,
                distances,
                memory=memories[:, i],
                attention_mask=content_mask,
                same_segment=same_segment,
                targets=targets,
                target_mapping=mapping,
                target_mask=query_mask,
            )
            hidden.append(x)
        told = layers.ToldStream(dtype=make.policy, name="told")(x, targets, mapping)
        outputs = make.outputs(
            last_dropout(told),
            token_embedding,
            class_activation="tanh",
            judged=head_layers.SentenceEmbedding("last", False, name="last_token")(x, text.real),
            plain=True,
        )
        if "mlm_logits" in outputs:
            outputs["lm_logits"] = outputs.pop("mlm_logits")
        if memory_length != 0:
            kept = layers.NextMemories(memory_length, dtype=make.policy, name="next_memories")
            outputs["memories"] = kept(memories, hidden[:-1], text.real)
        super().__init__(make, text, hidden, outputs)

    def _tells_next(self, name):
        return super()._tells_next(name) and self.application != "encoder"

    def save_pretrained(self, folder):
        """Writes the weights and the config; the number of heads is in the weights' shapes."""
        tables.huggingface(self._config["num_heads"]).save(self, self._config, folder)
