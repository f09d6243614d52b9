"""XLNet's checkpoints: Hugging Face folders, and TensorFlow ones as its authors have them.

Its projections are of rank 3 there, (hidden, heads, head size), and ours dense kernels. Biases of
the scores and segments of all layers are one tensor each in TensorFlow.
"""

import dataclasses

from kerasattn.weights.configs import EncoderConfig
from kerasattn.weights.rules import (
    Rule,
    Table,
    Transform,
    keras_layer,
    row,
    torch_dense,
    torch_norm,
)
from kerasattn.weights.tables import bert

ATTENTION, DENSE = "block_{i}/attention", ("kernel", "bias")
PROJECTIONS = {"query": "q", "key": "k", "value": "v", "position": "r"}
BIASES = {"content": "r_w_bias", "position": "r_r_bias", "segment": "r_s_bias"}


def split_heads(num_heads):
    """The transforms of the projections to heads and of that from heads.

    The number of heads is needed for saving alone.
    """

    def merge(array):
        return array.reshape(array.shape[0], -1)

    def split(array):
        return array.reshape(array.shape[0], num_heads, -1)

    return (
        Transform(load=merge, save=split),
        Transform(load=lambda array: merge(array).T, save=lambda array: split(array.T)),
    )


def table(num_heads):
    """The table of models with so many heads."""
    to_heads, from_heads = split_heads(num_heads)
    layer, attention = "transformer.layer.{i}", ATTENTION
    return Table(
        (
            Rule(
                "token_embedding/embeddings",
                "transformer.word_embedding.weight",
                aliases=("lm_loss.weight",),
            ),
            Rule("query_stream/mask_embedding", "transformer.mask_emb"),
            *(
                Rule(f"{attention}/{ours}/kernel", f"{layer}.rel_attn.{theirs}", to_heads)
                for ours, theirs in PROJECTIONS.items()
            ),
            Rule(f"{attention}/output/kernel", f"{layer}.rel_attn.o", from_heads),
            *(
                Rule(f"{attention}/biases/{ours}", f"{layer}.rel_attn.{theirs}")
                for ours, theirs in BIASES.items()
            ),
            Rule(f"{attention}/segments", f"{layer}.rel_attn.seg_embed"),
            *torch_norm(f"{attention}_norm", f"{layer}.rel_attn.layer_norm"),
            *torch_dense("block_{i}/feed_forward/intermediate", f"{layer}.ff.layer_1"),
            *torch_dense("block_{i}/feed_forward/output", f"{layer}.ff.layer_2"),
            *torch_norm("block_{i}/feed_forward_norm", f"{layer}.ff.layer_norm"),
            Rule("head/bias", "lm_loss.bias"),
            *torch_dense("classifier/dense", "sequence_summary.summary"),
            *torch_dense("classifier/output", "logits_proj"),
            *torch_dense("token_classifier/output", "classifier"),
            *torch_dense("span/output", "qa_outputs"),
        ),
        prefix="transformer.",
    )


def tensorflow_table():
    """The same under TensorFlow's names."""
    to_heads, from_heads = split_heads(1)
    model, layer, attention = "model/transformer", "model/transformer/layer_{i}", ATTENTION
    return Table(
        (
            Rule("token_embedding/embeddings", f"{model}/word_embedding/lookup_table"),
            Rule("query_stream/mask_embedding", f"{model}/mask_emb/mask_emb"),
            *(
                Rule(f"{attention}/{ours}/kernel", f"{layer}/rel_attn/{theirs}/kernel", to_heads)
                for ours, theirs in PROJECTIONS.items()
            ),
            Rule(f"{attention}/output/kernel", f"{layer}/rel_attn/o/kernel", from_heads),
            *(
                Rule(f"{attention}/biases/{ours}", f"{model}/{theirs}", row)
                for ours, theirs in BIASES.items()
            ),
            Rule(f"{attention}/segments", f"{model}/seg_embed", row),
            *keras_layer(f"{attention}_norm", f"{layer}/rel_attn/LayerNorm", "gamma", "beta"),
            *keras_layer("block_{i}/feed_forward/intermediate", f"{layer}/ff/layer_1", *DENSE),
            *keras_layer("block_{i}/feed_forward/output", f"{layer}/ff/layer_2", *DENSE),
            *keras_layer("block_{i}/feed_forward_norm", f"{layer}/ff/LayerNorm", "gamma", "beta"),
            Rule("head/bias", "model/lm_loss/bias"),
            # So they are spelled there.
            *keras_layer("classifier/dense", "model/sequnece_summary/summary", *DENSE),
        ),
        ignored=bert.OPTIMIZER,
    )


# === Sizes ===

SIZES = {
    "vocab_size": ("vocabulary_size", 32000),
    "n_layer": ("num_layers", 24),
    "n_head": ("num_heads", 16),
    "d_model": ("hidden_dim", 1024),
    "d_inner": ("intermediate_dim", 4096),
    "ff_activation": ("activation", "gelu"),
    "dropout": ("dropout", 0.1),
    "summary_last_dropout": ("classifier_dropout", 0.1),
    "layer_norm_eps": ("layer_norm_epsilon", 1e-12),
    "initializer_range": ("initializer_range", 0.02),
    "pad_token_id": ("pad_id", 5),
}
ARCHITECTURES = {
    "Model": (),
    "LMHeadModel": ("mlm",),
    "ForSequenceClassification": ("class",),
    "ForTokenClassification": ("token",),
    "ForQuestionAnsweringSimple": ("span",),
}
# How sequences are judged: by a dense layer of the last vector.
SUMMARY = {
    "summary_type": ("last",),
    "summary_use_proj": (True,),
    "summary_activation": ("tanh",),
}
CONFIG = EncoderConfig("xlnet", "XLNet", SIZES, ARCHITECTURES)


def arguments(config, folder):
    """Constructor arguments from `config.json`.

    Raises:
        ValueError: for parts of the original that are not supported.
    """
    values = CONFIG.arguments(config, folder)
    expected = {"attn_type": ("bi", "uni"), "bi_data": (False,), "reuse_len": (None, 0)}
    causal = config.get("attn_type") == "uni"
    if causal:
        expected["same_length"] = (False,)  # which else changes nothing
        if "application" not in config:
            values["application"] = "lm"
    if "class" in (values["heads"] or ()):
        expected |= SUMMARY
    if config.get("d_head"):
        expected["d_head"] = (values["hidden_dim"] / values["num_heads"],)
    for name, known in expected.items():
        if config.get(name, known[0]) not in known:
            said = ", ".join(f"{value!r}" for value in known)
            raise ValueError(f"{name} = {config[name]!r} is not supported, only {said}.")
    # 0 and null keep everything there.
    values["memory_length"] = (config.get("mem_len") or None) if keeps_memories(config) else 0
    clamp = config.get("clamp_len", -1)
    values["max_distance"] = clamp if clamp > 0 else None
    return values


def tensorflow_arguments(config, folder):
    """Constructor arguments from `xlnet_config.json`.

    Its "gelu" is read as Hugging Face reads it, as the erf form. The authors' program has the tanh
    form, which `activation="gelu_tanh"` gives.

    Raises:
        ValueError: for biases that all layers share; none was published with these.
    """
    if not config.get("untie_r", True):
        raise ValueError("untie_r = False, biases that all layers share, is not supported.")
    size = {"vocab_size": config["n_token"]} if "n_token" in config else {}
    return arguments({**config, **size}, folder)


def keeps_memories(config):
    """Whether a config's model gives memories without being asked to."""
    return config.get("use_mems_eval", True)


def config(values):
    """`config.json` of a model built with these arguments."""
    heads, kept = set(values["heads"]), values["memory_length"]
    ends = [end for end, has in ARCHITECTURES.items() if has and set(has) <= heads]
    return CONFIG.config(values) | {
        "architectures": ["XLNet" + (ends or ["Model"])[0]],
        "d_head": values["hidden_dim"] // values["num_heads"],
        "attn_type": "uni" if values["application"] == "lm" else "bi",
        "mem_len": kept or None,
        "use_mems_eval": kept != 0,
        "clamp_len": -1 if values["max_distance"] is None else values["max_distance"],
    }


def huggingface(num_heads=1):
    """The format of Hugging Face folders; for saving, of models with so many heads."""
    form = bert.huggingface("XLNet", table(num_heads), CONFIG)
    return dataclasses.replace(form, arguments=arguments, config=config)


def tensorflow():
    """The format of TensorFlow folders, which are read alone."""
    form = bert.tensorflow(
        "XLNet",
        tensorflow_table(),
        CONFIG,
        config_file="xlnet_config.json",
        tells=lambda config, names: "model/transformer/r_w_bias" in names,
    )
    return dataclasses.replace(form, arguments=tensorflow_arguments)


FORMATS = (huggingface(), tensorflow())
