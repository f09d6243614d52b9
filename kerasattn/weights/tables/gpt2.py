"""GPT-2's checkpoints: Hugging Face folders, also those with the names of 2019; OpenAI's own.

The block rows are those of the first GPT too. Their kernels are (in, out), as ours; in TensorFlow
with an axis of 1 before.
"""

import numpy as np

from kerasattn.weights import sources
from kerasattn.weights.configs import activation
from kerasattn.weights.formats import Format
from kerasattn.weights.huggingface import (
    huggingface_format,
    read_sizes,
    write_activation,
    write_sizes,
)
from kerasattn.weights.rules import Rule, Table, Transform, torch_norm


def conv1d(ours, theirs):
    """The two rules of a dense layer whose weight is (in, out)."""
    return (
        Rule(f"{ours}/kernel", f"{theirs}.weight"),
        Rule(f"{ours}/bias", f"{theirs}.bias"),
    )


def fused_attention(attention, theirs):
    """The six rules of queries, keys and values that are one layer there."""
    return tuple(
        Rule(f"{attention}/{name}/{ours}", f"{theirs}.{kind}", f"{name}_of_3")
        for name in ("query", "key", "value")
        for ours, kind in (("kernel", "weight"), ("bias", "bias"))
    )


def blocks(prefix):
    """The rules of GPT's blocks, such as `transformer.h.{i}`."""
    return (
        *fused_attention("block_{i}/self_attention", f"{prefix}.attn.c_attn"),
        *conv1d("block_{i}/self_attention/output", f"{prefix}.attn.c_proj"),
        *torch_norm("block_{i}/self_attention_norm", f"{prefix}.ln_1"),
        *conv1d("block_{i}/feed_forward/intermediate", f"{prefix}.mlp.c_fc"),
        *conv1d("block_{i}/feed_forward/output", f"{prefix}.mlp.c_proj"),
        *torch_norm("block_{i}/feed_forward_norm", f"{prefix}.ln_2"),
    )


# Buffers of masks, and the head's copy of the tied token table.
IGNORED = ("transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias", "lm_head.weight")

TABLE = Table(
    (
        Rule("token_embedding/embeddings", "transformer.wte.weight"),
        Rule("position_embedding/embeddings", "transformer.wpe.weight"),
        *blocks("transformer.h.{i}"),
        *torch_norm("final_norm", "transformer.ln_f"),
        Rule("head/kernel", "lm_head.weight", "transpose"),
    ),
    ignored=IGNORED,
    prefix="transformer.",
)


# === TensorFlow's names ===


def third(index):
    """The transform of the queries', keys' or values' kernel in one of (1, in, 3 * out)."""
    return Transform(
        load=lambda array: np.split(array[0], 3, axis=-1)[index],
        save=lambda array: array[None],
        part=index,
    )


def tensorflow_rules():
    """The rules under OpenAI's names."""
    block = "model/h{i}"
    yield Rule("token_embedding/embeddings", "model/wte")
    yield Rule("position_embedding/embeddings", "model/wpe")
    for i, name in enumerate(("query", "key", "value")):
        ours, theirs = f"block_{{i}}/self_attention/{name}", f"{block}/attn/c_attn"
        yield Rule(f"{ours}/kernel", f"{theirs}/w", third(i))
        yield Rule(f"{ours}/bias", f"{theirs}/b", f"{name}_of_3")
    for ours, theirs in (
        ("self_attention/output", "attn/c_proj"),
        ("feed_forward/intermediate", "mlp/c_fc"),
        ("feed_forward/output", "mlp/c_proj"),
    ):
        yield Rule(f"block_{{i}}/{ours}/kernel", f"{block}/{theirs}/w", "squeeze")
        yield Rule(f"block_{{i}}/{ours}/bias", f"{block}/{theirs}/b")
    norms = {"self_attention_norm": "ln_1", "feed_forward_norm": "ln_2"}
    norms = {f"block_{{i}}/{ours}": f"{block}/{theirs}" for ours, theirs in norms.items()}
    for ours, theirs in {**norms, "final_norm": "model/ln_f"}.items():
        yield Rule(f"{ours}/gamma", f"{theirs}/g")
        yield Rule(f"{ours}/beta", f"{theirs}/b")


# === Sizes ===

# Theirs -> ours, and what a config that leaves it out means.
SIZES = {
    "vocab_size": ("vocabulary_size", 50257),
    "n_layer": ("num_layers", 12),
    "n_head": ("num_heads", 12),
    "n_embd": ("hidden_dim", 768),
    "n_positions": ("max_length", 1024),
    "resid_pdrop": ("dropout", 0.1),
    "embd_pdrop": ("embedding_dropout", 0.1),
    "attn_pdrop": ("attention_dropout", 0.1),
    "layer_norm_epsilon": ("layer_norm_epsilon", 1e-5),
    "initializer_range": ("initializer_range", 0.02),
    "scale_attn_weights": ("scale_attention", True),
    "scale_attn_by_inverse_layer_idx": ("scale_attention_by_layer", False),
    "tie_word_embeddings": ("tied_head", True),
    "bos_token_id": ("start_id", 50256),
    "eos_token_id": ("end_id", 50256),
    "pad_token_id": ("pad_id", None),
}


def arguments(config, folder):
    """Constructor arguments from `config.json`."""
    if config.get("add_cross_attention"):
        raise ValueError("add_cross_attention, a GPT-2 that reads another model, is not supported.")
    values = read_sizes(config, SIZES)
    values["intermediate_dim"] = config.get("n_inner") or 4 * values["hidden_dim"]
    values["activation"] = activation(config.get("activation_function", "gelu_new"))
    values["with_head"] = config.get("architectures") != ["GPT2Model"]
    return values


HPARAMS = {
    "n_vocab": "vocab_size",
    "n_ctx": "n_positions",
    "n_embd": "n_embd",
    "n_head": "n_head",
    "n_layer": "n_layer",
}


def tensorflow_arguments(config, folder):
    """Constructor arguments from `hparams.json`; the last token begins and ends texts."""
    missing = sorted(HPARAMS.keys() - config.keys())
    if missing:
        raise ValueError(f"hparams.json does not say {', '.join(missing)}")
    last = config["n_vocab"] - 1
    sizes = {theirs: config[name] for name, theirs in HPARAMS.items()}
    return arguments({**sizes, "bos_token_id": last, "eos_token_id": last}, folder)


def config(values):
    """`config.json` of a model built with these arguments."""
    return write_sizes(values, SIZES) | {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel" if values["with_head"] else "GPT2Model"],
        "n_inner": values["intermediate_dim"],
        "activation_function": write_activation(values["activation"]),
    }


FORMATS = (
    huggingface_format("gpt2", "GPT-2", TABLE, arguments, config),
    Format(
        name="TensorFlow GPT-2",
        config_file="hparams.json",
        find=sources.find_tensorflow,
        source=sources.TensorFlowSource,
        table=Table(tuple(tensorflow_rules())),
        accepts=lambda config: True,
        arguments=tensorflow_arguments,
        tells=lambda config, names: "model/wte" in names,
    ),
)
