"""The checkpoints of the first GPT: Hugging Face folders. Its blocks are called as GPT-2's."""

from kerasattn.weights.configs import activation
from kerasattn.weights.huggingface import huggingface_format, read_sizes, write_sizes
from kerasattn.weights.rules import Rule, Table
from kerasattn.weights.tables import gpt2

TABLE = Table(
    (
        Rule("token_embedding/embeddings", "transformer.tokens_embed.weight"),
        Rule("position_embedding/embeddings", "transformer.positions_embed.weight"),
        *gpt2.blocks("transformer.h.{i}"),
        Rule("head/kernel", "lm_head.weight", "transpose"),
    ),
    ignored=(*gpt2.IGNORED, "transformer.position_ids"),
    prefix="transformer.",
)

SIZES = {
    "vocab_size": ("vocabulary_size", 40478),
    "n_layer": ("num_layers", 12),
    "n_head": ("num_heads", 12),
    "n_embd": ("hidden_dim", 768),
    "n_positions": ("max_length", 512),
    "resid_pdrop": ("dropout", 0.1),
    "embd_pdrop": ("embedding_dropout", 0.1),
    "attn_pdrop": ("attention_dropout", 0.1),
    "layer_norm_epsilon": ("layer_norm_epsilon", 1e-5),
    "initializer_range": ("initializer_range", 0.02),
    "tie_word_embeddings": ("tied_head", True),
    "bos_token_id": ("start_id", None),
    "eos_token_id": ("end_id", None),
    "pad_token_id": ("pad_id", None),
}
ACTIVATIONS = {"gelu_tanh": "gelu", "relu": "relu", "silu": "silu"}  # ours -> theirs


def arguments(config, folder):
    """Constructor arguments from `config.json`, whose "gelu" is the tanh form."""
    values = read_sizes(config, SIZES)
    values["intermediate_dim"] = 4 * values["hidden_dim"]
    name = config.get("afn", "gelu")
    values["activation"] = activation("gelu_new" if name == "gelu" else name)
    values["with_head"] = config.get("architectures") != ["OpenAIGPTModel"]
    return values


def config(values):
    """`config.json` of a model built with these arguments.

    Raises:
        ValueError: for what that format cannot say.
    """
    wide = values["intermediate_dim"] != 4 * values["hidden_dim"]
    scaled = not values["scale_attention"] or values["scale_attention_by_layer"]
    if wide or scaled or values["activation"] not in ACTIVATIONS:
        raise ValueError(
            "A config of GPT has intermediate_dim = 4 * hidden_dim, the usual attention scale and "
            f"an activation of {list(ACTIVATIONS)}; this model has others."
        )
    return write_sizes(values, SIZES) | {
        "model_type": "openai-gpt",
        "architectures": ["OpenAIGPTLMHeadModel" if values["with_head"] else "OpenAIGPTModel"],
        "afn": ACTIVATIONS[values["activation"]],
    }


FORMATS = (huggingface_format("openai-gpt", "GPT", TABLE, arguments, config),)
