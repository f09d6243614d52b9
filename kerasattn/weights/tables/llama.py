"""Llama's checkpoints: Hugging Face folders."""

from kerasattn.weights.configs import activation
from kerasattn.weights.huggingface import (
    huggingface_format,
    read_sizes,
    write_activation,
    write_sizes,
)
from kerasattn.weights.rules import Rule, Table, torch_dense

DENSE = {
    "self_attention/query": "self_attn.q_proj",
    "self_attention/key": "self_attn.k_proj",
    "self_attention/value": "self_attn.v_proj",
    "self_attention/output": "self_attn.o_proj",
    "feed_forward/gate": "mlp.gate_proj",
    "feed_forward/intermediate": "mlp.up_proj",
    "feed_forward/output": "mlp.down_proj",
}
TABLE = Table(
    (
        Rule("token_embedding/embeddings", "model.embed_tokens.weight"),
        *(
            rule
            for ours, theirs in DENSE.items()
            for rule in torch_dense(f"block_{{i}}/{ours}", f"model.layers.{{i}}.{theirs}")
        ),
        Rule("block_{i}/self_attention_norm/scale", "model.layers.{i}.input_layernorm.weight"),
        Rule(
            "block_{i}/feed_forward_norm/scale", "model.layers.{i}.post_attention_layernorm.weight"
        ),
        Rule("final_norm/scale", "model.norm.weight"),
        Rule("head/kernel", "lm_head.weight", "transpose"),
    ),
    # Buffers, and the head's copy of a tied token table.
    ignored=("*.rotary_emb.inv_freq", "lm_head.weight"),
    prefix="model.",
)

# === Sizes ===

SIZES = {
    "vocab_size": ("vocabulary_size", 32000),
    "num_hidden_layers": ("num_layers", 32),
    "num_attention_heads": ("num_heads", 32),
    "num_key_value_heads": ("num_key_value_heads", None),
    "head_dim": ("head_dim", None),
    "hidden_size": ("hidden_dim", 4096),
    "intermediate_size": ("intermediate_dim", 11008),
    "max_position_embeddings": ("max_length", 2048),
    "attention_bias": ("attention_bias", False),
    "mlp_bias": ("feed_forward_bias", False),
    "attention_dropout": ("attention_dropout", 0.0),
    "rms_norm_eps": ("layer_norm_epsilon", 1e-6),
    "initializer_range": ("initializer_range", 0.02),
    "tie_word_embeddings": ("tied_head", False),
    "bos_token_id": ("start_id", 1),
    "eos_token_id": ("end_id", 2),
    "pad_token_id": ("pad_id", None),
}
SCALING = (
    "factor",
    "low_freq_factor",
    "high_freq_factor",
    "original_max_position_embeddings",
)


def rotary(config):
    """The rotary's base and the scaling of its frequencies, as old and new configs say them.

    Raises:
        ValueError: for a kind of scaling other than Llama 3's.
    """
    said = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = said.get("rope_type", said.get("type", "default"))
    if kind not in ("default", "llama3"):
        raise ValueError(
            f"rope_scaling of the kind {kind!r} is not supported, only 'llama3' and 'default'."
        )
    base = said.get("rope_theta", config.get("rope_theta", 10000.0))
    scaling = {name: said[name] for name in SCALING} if kind == "llama3" else None
    return {"rotary_base": base, "rotary_scaling": scaling}


def arguments(config, folder):
    """Constructor arguments from `config.json`."""
    return {
        **read_sizes(config, SIZES),
        **rotary(config),
        "activation": activation(config.get("hidden_act", "silu")),
        "with_head": config.get("architectures") != ["LlamaModel"],
    }


def config(values):
    """`config.json` of a model built with these arguments, for old and new readers."""
    written = write_sizes(values, SIZES)
    written["num_key_value_heads"] = values["num_key_value_heads"] or values["num_heads"]
    written["head_dim"] = values["head_dim"] or values["hidden_dim"] // values["num_heads"]
    scaling = values["rotary_scaling"]
    rope = {"rope_type": "llama3", **scaling} if scaling else {"rope_type": "default"}
    return written | {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM" if values["with_head"] else "LlamaModel"],
        "hidden_act": write_activation(values["activation"]),
        "rope_theta": values["rotary_base"],
        "rope_scaling": rope if scaling else None,
        "rope_parameters": {"rope_theta": values["rotary_base"], **rope},
    }


FORMATS = (huggingface_format("llama", "Llama", TABLE, arguments, config),)
