"""RoFormer's checkpoints: Hugging Face folders, and TensorFlow ones as ZhuiyiTechnology has them.

The block rows are those of BERT, which other families share.
"""

import numpy as np

from kerasattn.weights import sources
from kerasattn.weights.formats import Format
from kerasattn.weights.rules import Rule, Table, keras_layer, torch_dense, torch_norm

# Our layers inside a block, and what BERT calls them in both formats.
BLOCK_DENSE = {
    "self_attention/query": "attention/self/query",
    "self_attention/key": "attention/self/key",
    "self_attention/value": "attention/self/value",
    "self_attention/output": "attention/output/dense",
    "feed_forward/intermediate": "intermediate/dense",
    "feed_forward/output": "output/dense",
}
BLOCK_NORM = {
    "self_attention_norm": "attention/output/LayerNorm",
    "feed_forward_norm": "output/LayerNorm",
}


def torch_blocks(prefix):
    """The rules of BERT's blocks under PyTorch names, such as `bert.encoder.layer.{i}`."""
    rules = ()
    for ours, theirs in BLOCK_DENSE.items():
        rules += torch_dense(f"block_{{i}}/{ours}", f"{prefix}.{theirs.replace('/', '.')}")
    for ours, theirs in BLOCK_NORM.items():
        rules += torch_norm(f"block_{{i}}/{ours}", f"{prefix}.{theirs.replace('/', '.')}")
    return rules


def tensorflow_blocks(prefix):
    """The rules of BERT's blocks under TensorFlow names, such as `bert/encoder/layer_{i}`."""
    rules = ()
    for ours, theirs in BLOCK_DENSE.items():
        rules += keras_layer(f"block_{{i}}/{ours}", f"{prefix}/{theirs}", "kernel", "bias")
    for ours, theirs in BLOCK_NORM.items():
        rules += keras_layer(f"block_{{i}}/{ours}", f"{prefix}/{theirs}", "gamma", "beta")
    return rules


HUGGINGFACE_TABLE = Table(
    (
        Rule(
            "token_embedding/embeddings",
            "roformer.embeddings.word_embeddings.weight",
            aliases=("cls.predictions.decoder.weight",),
        ),
        Rule("segment_embedding/embeddings", "roformer.embeddings.token_type_embeddings.weight"),
        *torch_norm("embedding_norm", "roformer.embeddings.LayerNorm"),
        *torch_dense("embedding_projection", "roformer.embeddings_project"),
        *torch_blocks("roformer.encoder.layer.{i}"),
        *torch_dense("head/transform", "cls.predictions.transform.dense"),
        *torch_norm("head/norm", "cls.predictions.transform.LayerNorm"),
        Rule("head/bias", "cls.predictions.bias", aliases=("cls.predictions.decoder.bias",)),
    ),
    ignored=("roformer.encoder.embed_positions.weight", "*.position_ids"),
    prefix="roformer.",
)

TENSORFLOW_TABLE = Table(
    (
        Rule("token_embedding/embeddings", "bert/embeddings/word_embeddings"),
        Rule("segment_embedding/embeddings", "bert/embeddings/token_type_embeddings"),
        *keras_layer("embedding_norm", "bert/embeddings/LayerNorm", "gamma", "beta"),
        *keras_layer(
            "embedding_projection", "bert/encoder/embedding_hidden_mapping_in", "kernel", "bias"
        ),
        *tensorflow_blocks("bert/encoder/layer_{i}"),
        *keras_layer("head/transform", "cls/predictions/transform/dense", "kernel", "bias"),
        *keras_layer("head/norm", "cls/predictions/transform/LayerNorm", "gamma", "beta"),
        Rule("head/bias", "cls/predictions/output_bias"),
    ),
    ignored=(
        "bert/pooler/*",
        "cls/seq_relationship/*",
        "*/adam_[mv]",  # optimizer slots
        "*/Adam*",
        "*/lamb_*",
        "beta[12]_power",
        "*global_step",
    ),
)

# === Sizes ===

# Theirs -> ours; what a config leaves out has the default of Hugging Face's RoFormerConfig.
SIZES = {
    "vocab_size": ("vocabulary_size", 50000),
    "num_hidden_layers": ("num_layers", 12),
    "num_attention_heads": ("num_heads", 12),
    "hidden_size": ("hidden_dim", 768),
    "intermediate_size": ("intermediate_dim", 3072),
    "max_position_embeddings": ("max_length", 1536),
    "type_vocab_size": ("num_segments", 2),
    "hidden_dropout_prob": ("dropout", 0.1),
    "attention_probs_dropout_prob": ("attention_dropout", 0.1),
    "layer_norm_eps": ("layer_norm_epsilon", 1e-12),
    "initializer_range": ("initializer_range", 0.02),
    "rotary_value": ("rotary_value", False),
    "pad_token_id": ("pad_id", 0),
}
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}


def arguments(config, folder):
    """Constructor arguments from a config of BERT's kind."""
    values = {ours: config.get(theirs, default) for theirs, (ours, default) in SIZES.items()}
    if values["pad_id"] is None:
        values["pad_id"] = 0
    values["activation"] = activation(config.get("hidden_act", "gelu"))
    embedding_dim = config.get("embedding_size") or values["hidden_dim"]
    values["embedding_dim"] = None if embedding_dim == values["hidden_dim"] else embedding_dim
    return values


def activation(name):
    """Our name of an activation that a config calls `hidden_act`."""
    if name not in ACTIVATIONS:
        raise ValueError(f"hidden_act {name!r} is not known, expected one of {list(ACTIVATIONS)}.")
    return ACTIVATIONS[name]


def huggingface_arguments(config, folder):
    """Constructor arguments from `config.json`: of `architectures`, the head and the mask too."""
    values = arguments(config, folder)
    architecture = (config.get("architectures") or ["RoFormerForMaskedLM"])[0]
    values["with_head"] = architecture != "RoFormerModel"
    if config.get("is_decoder"):
        values["application"] = "lm"
    return {**values, **{k: config[k] for k in ("application",) if k in config}}


def huggingface_config(values):
    """`config.json` of a model built with these arguments."""
    config = {theirs: values[ours] for theirs, (ours, _) in SIZES.items() if ours in values}
    names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    lm = values.get("application") == "lm"
    architecture = "RoFormerForCausalLM" if lm else "RoFormerForMaskedLM"
    return config | {
        "model_type": "roformer",
        "architectures": [architecture if values.get("with_head", True) else "RoFormerModel"],
        "application": values.get("application", "encoder"),
        "hidden_act": names.get(values["activation"], values["activation"]),
        "embedding_size": values["embedding_dim"] or values["hidden_dim"],
        "is_decoder": lm,
        "tie_word_embeddings": True,
    }


def position_table(values):
    """The sinusoids that Hugging Face keeps as a weight: (max_length, head size), sin | cos."""
    dim = values["hidden_dim"] // values["num_heads"]
    frequencies = np.power(10000, 2 * np.arange((dim + 1) // 2) / dim)
    angles = np.arange(values["max_length"])[:, None] / frequencies
    table = np.concatenate([np.sin(angles), np.cos(angles[:, : dim // 2])], axis=1)
    return {"roformer.encoder.embed_positions.weight": table.astype("float32")}


HUGGINGFACE = Format(
    name="Hugging Face RoFormer",
    config_file="config.json",
    find=sources.find_safetensors,
    source=sources.SafetensorsSource,
    table=HUGGINGFACE_TABLE,
    accepts=lambda config: config.get("model_type") == "roformer",
    arguments=huggingface_arguments,
    config=huggingface_config,
    extra=position_table,
)

TENSORFLOW = Format(
    name="TensorFlow RoFormer",
    config_file="bert_config.json",
    find=sources.find_tensorflow,
    source=sources.TensorFlowSource,
    table=TENSORFLOW_TABLE,
    accepts=lambda config: config.get("model_type", "roformer") == "roformer",
    arguments=arguments,
)
FORMATS = (HUGGINGFACE, TENSORFLOW)
