"""XLNet's checkpoints: Hugging Face folders.

Its projections are of rank 3 there, (hidden, heads, head size), and ours dense kernels.
"""

import dataclasses

from kerasattn.weights.configs import EncoderConfig
from kerasattn.weights.rules import Rule, Table, Transform, torch_dense, torch_norm
from kerasattn.weights.tables import bert

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
    layer, attention = "transformer.layer.{i}", "block_{i}/attention"
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
CONFIG = EncoderConfig("xlnet", "XLNet", SIZES, ARCHITECTURES)


def arguments(config, folder):
    """Constructor arguments from `config.json`.

    Raises:
        ValueError: for parts of the original that are not supported.
    """
    for name in ("bi_data", "reuse_len"):
        if config.get(name):
            raise ValueError(f"{name} = {config[name]!r} is not supported.")
    values = CONFIG.arguments(config, folder)
    if config.get("attn_type", "bi") == "uni" and "application" not in config:
        values["application"] = "lm"
    # 0 and null keep everything there.
    values["memory_length"] = (config.get("mem_len") or None) if keeps_memories(config) else 0
    clamp = config.get("clamp_len", -1)
    values["max_distance"] = clamp if clamp > 0 else None
    return values


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


FORMATS = (huggingface(),)
