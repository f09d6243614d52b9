"""BART's checkpoints: Hugging Face folders. MASS, which is not in transformers, has its names."""

import functools

from kerasattn.weights.configs import activation
from kerasattn.weights.huggingface import (
    huggingface_format,
    read_sizes,
    write_activation,
    write_sizes,
)
from kerasattn.weights.rules import Rule, Table, torch_dense, torch_norm

# Our attentions -> theirs.
ATTENTIONS = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}


def stack(name):
    """The rules of the encoder or the decoder; an encoder has no use for those that it lacks."""
    block, theirs = f"{name}_block_{{i}}", f"model.{name}.layers.{{i}}"
    rules = [
        Rule(f"{name}_position_embedding/embeddings", f"model.{name}.embed_positions.weight"),
        *torch_norm(f"{name}_embedding_norm", f"model.{name}.layernorm_embedding"),
        *torch_dense(f"{block}/feed_forward/intermediate", f"{theirs}.fc1"),
        *torch_dense(f"{block}/feed_forward/output", f"{theirs}.fc2"),
        *torch_norm(f"{block}/feed_forward_norm", f"{theirs}.final_layer_norm"),
    ]
    for ours, attention in ATTENTIONS.items():
        rules += torch_norm(f"{block}/{ours}_norm", f"{theirs}.{attention}_layer_norm")
        for part, projection in PROJECTIONS.items():
            rules += torch_dense(f"{block}/{ours}/{part}", f"{theirs}.{attention}.{projection}")
    return tuple(rules)


TABLE = Table(
    (
        Rule(
            "token_embedding/embeddings",
            "model.shared.weight",
            aliases=("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"),
        ),
        *stack("encoder"),
        *stack("decoder"),
        Rule("head/kernel", "lm_head.weight", "transpose"),
        Rule("head/bias", "final_logits_bias", "squeeze"),  # (1, vocabulary) there
    ),
    # The head's copy of the tied token table; an old name of the version.
    ignored=("lm_head.weight", "model.encoder.version", "model.decoder.version"),
    prefix="model.",
)

# === Sizes ===

SIZES = {
    "vocab_size": ("vocabulary_size", 50265),
    "encoder_layers": ("num_layers", 12),
    "decoder_layers": ("num_decoder_layers", 12),
    "encoder_attention_heads": ("num_heads", 16),
    "decoder_attention_heads": ("num_decoder_heads", 16),
    "d_model": ("hidden_dim", 1024),
    "encoder_ffn_dim": ("intermediate_dim", 4096),
    "decoder_ffn_dim": ("decoder_intermediate_dim", 4096),
    "max_position_embeddings": ("max_length", 1024),
    "scale_embedding": ("scale_embedding", False),
    "tie_word_embeddings": ("tied_head", True),
    "dropout": ("dropout", 0.1),
    "attention_dropout": ("attention_dropout", 0.0),
    "activation_dropout": ("feed_forward_dropout", 0.0),
    "init_std": ("initializer_range", 0.02),
    "pad_token_id": ("pad_id", 1),
    "decoder_start_token_id": ("start_id", 2),
    "eos_token_id": ("end_id", 2),
}


def arguments(config, folder):
    """Constructor arguments from `config.json`."""
    return {
        **read_sizes(config, SIZES),
        "activation": activation(config.get("activation_function", "gelu")),
        "with_head": config.get("architectures") not in (["BartModel"], ["MassModel"]),
    }


def config(name, values):
    """`config.json` of a model built with these arguments; the name is "bart" or "mass"."""
    written = write_sizes(values, SIZES)
    for part in ("layers", "attention_heads", "ffn_dim"):  # by default as the encoder's
        written[f"decoder_{part}"] = written[f"decoder_{part}"] or written[f"encoder_{part}"]
    kind = "ForConditionalGeneration" if values["with_head"] else "Model"
    return written | {
        "model_type": name,
        "architectures": [name.capitalize() + kind],
        "activation_function": write_activation(values["activation"]),
        "is_encoder_decoder": True,
    }


def formats(name, title):
    """The formats of a family with these names."""
    # Models that were saved without a head lack its bias, which is 0 in published ones.
    written = functools.partial(config, name)
    return (huggingface_format(name, title, TABLE, arguments, written, fresh=("head/bias",)),)


FORMATS = formats("bart", "BART")
MASS_FORMATS = formats("mass", "MASS")
