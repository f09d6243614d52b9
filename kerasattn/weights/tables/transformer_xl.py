"""Transformer-XL's checkpoints: Hugging Face folders, as written up to transformers 4."""

import numpy as np

from kerasattn.weights.huggingface import huggingface_format, read_sizes, write_sizes
from kerasattn.weights.rules import Rule, Table, Transform, torch_dense, torch_norm

LAYER, ATTENTION = "transformer.layers.{i}", "block_{i}/attention"
BIASES = {"content": "r_w_bias", "position": "r_r_bias"}


def fused(index):
    """The transform of one of three dense layers that are one there, weights (out, in)."""
    return Transform(
        load=lambda array: np.split(array, 3, axis=0)[index].T,
        save=lambda array: array.T,
        part=index,
        axis=0,
    )


TABLE = Table(
    (
        Rule("token_embedding/embeddings_{i}", "transformer.word_emb.emb_layers.{i}.weight"),
        Rule("token_embedding/projection_{i}", "transformer.word_emb.emb_projs.{i}", "transpose"),
        *(
            Rule(f"{ATTENTION}/{name}/kernel", f"{LAYER}.dec_attn.qkv_net.weight", fused(i))
            for i, name in enumerate(("query", "key", "value"))
        ),
        Rule(f"{ATTENTION}/position/kernel", f"{LAYER}.dec_attn.r_net.weight", "transpose"),
        Rule(f"{ATTENTION}/output/kernel", f"{LAYER}.dec_attn.o_net.weight", "transpose"),
        *torch_norm(f"{ATTENTION}_norm", f"{LAYER}.dec_attn.layer_norm"),
        *torch_dense("block_{i}/feed_forward/intermediate", f"{LAYER}.pos_ff.CoreNet.0"),
        *torch_dense("block_{i}/feed_forward/output", f"{LAYER}.pos_ff.CoreNet.3"),
        *torch_norm("block_{i}/feed_forward_norm", f"{LAYER}.pos_ff.layer_norm"),
        *(
            rule
            for ours, theirs in BIASES.items()
            for rule in (
                Rule(f"biases/{ours}", f"transformer.{theirs}"),
                Rule(f"{ATTENTION}/biases/{ours}", f"{LAYER}.dec_attn.{theirs}"),
            )
        ),
        Rule("head/embeddings_{i}", "crit.out_layers.{i}.weight"),
        Rule("head/bias_{i}", "crit.out_layers.{i}.bias"),
        Rule("head/projection_{i}", "crit.out_projs.{i}", "transpose"),
        Rule("head/cluster_embeddings", "crit.cluster_weight"),
        Rule("head/cluster_bias", "crit.cluster_bias"),
    ),
    # Buffers, and copies of what is tied.
    ignored=(
        "transformer.pos_emb.inv_freq",
        "transformer.layers.*.dec_attn.r_[wr]_bias",
        "crit.out_layers.*.weight",
        "crit.out_projs.*",
    ),
    prefix="transformer.",
)

# === Sizes ===

SIZES = {
    "vocab_size": ("vocabulary_size", 267735),
    "n_layer": ("num_layers", 18),
    "n_head": ("num_heads", 16),
    "d_head": ("head_dim", 64),
    "d_model": ("hidden_dim", 1024),
    "d_inner": ("intermediate_dim", 4096),
    "d_embed": ("embedding_dim", 1024),
    "cutoffs": ("cutoffs", [20000, 40000, 200000]),
    "div_val": ("embedding_divisor", 4),
    "tie_word_embeddings": ("tied_head", True),
    "tie_projs": ("tied_projections", None),
    "mem_len": ("memory_length", 1600),
    "same_length": ("same_length", True),
    "dropout": ("dropout", 0.1),
    "dropatt": ("attention_dropout", 0.0),
    "layer_norm_epsilon": ("layer_norm_epsilon", 1e-5),
    "init_std": ("initializer_range", 0.02),
    "bos_token_id": ("start_id", None),
    "eos_token_id": ("end_id", 0),
    "pad_token_id": ("pad_id", None),
}


def arguments(config, folder):
    """Constructor arguments from `config.json`.

    Raises:
        ValueError: for a kind of attention other than Transformer-XL's own.
    """
    if config.get("attn_type", 0) != 0:
        raise ValueError(f"attn_type {config['attn_type']} is not supported, only 0.")
    values = read_sizes(config, SIZES)
    # The vocabulary's size may stand among the cutoffs.
    values["cutoffs"] = [edge for edge in values["cutoffs"] if edge < values["vocabulary_size"]]
    if values["tied_projections"] is None:
        tied = config.get("proj_share_all_but_first", True)
        values["tied_projections"] = [False] + [tied] * len(values["cutoffs"])
    clamp = config.get("clamp_len", 1000)
    return values | {
        "max_distance": clamp if clamp > 0 else None,
        "shared_biases": not config.get("untie_r", True),
        "norm": "pre" if config.get("pre_lnorm", False) else "post",
        "with_head": config.get("architectures") != ["TransfoXLModel"],
    }


def config(values):
    """`config.json` of a model built with these arguments.

    Raises:
        ValueError: for another activation, which such files cannot tell.
    """
    if values["activation"] != "relu":
        raise ValueError(f'Transformer-XL\'s files have "relu", got {values["activation"]!r}.')
    written = write_sizes(values, SIZES)
    tied = values["tied_projections"]
    return written | {
        "model_type": "transfo-xl",
        "architectures": ["TransfoXLLMHeadModel" if values["with_head"] else "TransfoXLModel"],
        "d_embed": values["embedding_dim"] or values["hidden_dim"],
        "tie_projs": [False] + [True] * len(values["cutoffs"]) if tied is None else list(tied),
        "clamp_len": -1 if values["max_distance"] is None else values["max_distance"],
        "untie_r": not values["shared_biases"],
        "pre_lnorm": values["norm"] == "pre",
        "attn_type": 0,
        "adaptive": True,
    }


def frequencies(values):
    """What they keep as a buffer: the sinusoids' frequencies."""
    width = np.float32(values["hidden_dim"])
    powers = np.float32(10000) ** (np.arange(0, values["hidden_dim"], 2, dtype="float32") / width)
    return {"transformer.pos_emb.inv_freq": 1 / powers}


FORMATS = (
    huggingface_format("transfo-xl", "Transformer-XL", TABLE, arguments, config, extra=frequencies),
)
