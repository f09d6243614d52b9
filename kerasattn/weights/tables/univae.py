"""UniVAE's checkpoints: our own, RoFormer's to start from, and those of the published reference.

The body is RoFormer's under RoFormer's names; what carries the latents has names of its own.
"""

import dataclasses

from kerasattn.weights import sources
from kerasattn.weights.configs import activation
from kerasattn.weights.formats import Format
from kerasattn.weights.rules import Rule, Table, keras_layer, torch_dense
from kerasattn.weights.tables import roformer

TABLE = roformer.HUGGINGFACE_TABLE + Table(
    (
        Rule("position_embedding/embeddings", "roformer.embeddings.position_embeddings.weight"),
        *torch_dense("latent_in_{i}", "univae.latent_in.{i}"),
        *torch_dense("latent_out_{i}", "univae.latent_out.{i}"),
        Rule("{path}", "univae.{path}"),  # codebooks, weights of the KL
    ),
    # Of a model that is loaded without: isotropy_weight=0, word_dropout=0.
    ignored=("univae.isotropy/*", "univae.word_dropout/*"),
)

# Names of the layers that bert4keras makes.
REFERENCE_DENSE = {
    "embedding_projection": "Embedding-Mapping",
    "block_{i}/self_attention/query": "Transformer-{i}-MultiHeadSelfAttention/q_dense",
    "block_{i}/self_attention/key": "Transformer-{i}-MultiHeadSelfAttention/k_dense",
    "block_{i}/self_attention/value": "Transformer-{i}-MultiHeadSelfAttention/v_dense",
    "block_{i}/self_attention/output": "Transformer-{i}-MultiHeadSelfAttention/o_dense",
    "block_{i}/feed_forward/intermediate": "Transformer-{i}-FeedForward/i0_dense",
    "block_{i}/feed_forward/output": "Transformer-{i}-FeedForward/o_dense",
    "latent_in_{i}": "In-Projection-{i}",
    "latent_out_{i}": "Out-Projection-{i}",
    "head/transform": "MLM-Dense",
}
REFERENCE_NORM = {
    "embedding_norm": "Embedding-Norm",
    "block_{i}/self_attention_norm": "Transformer-{i}-MultiHeadSelfAttention-Norm",
    "block_{i}/feed_forward_norm": "Transformer-{i}-FeedForward-Norm",
    "head/norm": "MLM-Norm",
}
REFERENCE_TABLE = Table(
    (
        Rule("token_embedding/embeddings", "keras/Embedding-Token/embeddings"),
        Rule("segment_embedding/embeddings", "keras/Embedding-Segment/embeddings"),
        *(
            rule
            for ours, theirs in REFERENCE_DENSE.items()
            for rule in keras_layer(ours, f"keras/{theirs}", "kernel", "bias")
        ),
        *(
            rule
            for ours, theirs in REFERENCE_NORM.items()
            for rule in keras_layer(ours, f"keras/{theirs}", "gamma", "beta")
        ),
        Rule("head/bias", "keras/MLM-Bias/beta"),
    ),
    # The same tensors under other names; the sampler's table, which we compute.
    ignored=("ckpt/*", "keras/ReParameterization/*"),
)

# === Sizes ===


def special_ids(folder):
    """Ids of the special tokens, where the folder has a `vocab.txt`: a token's id is its line."""
    path = folder / "vocab.txt"
    if not path.is_file():
        return {}
    # Only "\n" ends a line: some tokens are other kinds of line ends.
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    tokens = {token.rstrip("\r"): i for i, token in reversed(list(enumerate(lines)))}
    names = {"[PAD]": "pad_id", "[UNK]": "unk_id", "[CLS]": "cls_id", "[SEP]": "sep_id"}
    return {name: tokens[token] for token, name in names.items() if token in tokens}


def from_roformer(arguments):
    """RoFormer's `arguments` function for a UniVAE that starts from its weights."""

    def function(config, folder):
        values = arguments(config, folder)
        if values.pop("rotary_value"):
            raise ValueError(f"{folder} has rotary_value, which UniVAE does not.")
        for name in (
            "num_segments",
            "max_length",
            "application",
            "heads",
            "num_classes",
            "classifier_dropout",
        ):
            values.pop(name, None)
        values["head_norm_epsilon"] = values["layer_norm_epsilon"]
        return {**values, **special_ids(folder)}

    return function


def reference_arguments(config, folder):
    """Constructor arguments from the `config.json` of the published reference."""
    sizes = config["settings"]
    epsilons = {
        layer: float(epsilon)
        for epsilon, layers in config["layer_norm_epsilon"].items()
        for layer in layers
    }
    embedding_dim = sizes.get("embedding_size", sizes["hidden_size"])
    return {
        "vocabulary_size": sizes["vocab_size"],
        "num_layers": sizes["num_hidden_layers"],
        "num_heads": sizes["num_attention_heads"],
        "hidden_dim": sizes["hidden_size"],
        "intermediate_dim": sizes["intermediate_size"],
        "embedding_dim": None if embedding_dim == sizes["hidden_size"] else embedding_dim,
        "num_latent_layers": sizes["num_latent_layers"],
        "latent_dim": sizes["z_dim"],
        "latent": "vmf",
        "kappa": float(sizes["kappa"]),
        "max_length": sizes["maxlen"],
        "length": "fixed",
        "activation": activation(sizes.get("hidden_act", "gelu")),
        "layer_norm_epsilon": epsilons["Embedding-Norm"],
        "head_norm_epsilon": epsilons["MLM-Norm"],
        "pad_id": config["pad_id"],
        "cls_id": config["start_id"],
        "sep_id": config["end_id"],
    }


# === Formats ===

# Settings that training may change, and that a model may have though its folder has none.
GUIDES = ("isotropy/*", "word_dropout/*")

OWN = Format(
    name="UniVAE",
    config_file="config.json",
    find=sources.find_safetensors,
    source=sources.SafetensorsSource,
    table=TABLE,
    accepts=lambda config: config.get("model_type") == "univae",
    arguments=lambda config, folder: {k: v for k, v in config.items() if k != "model_type"},
    config=lambda values: {"model_type": "univae", **values},
    fresh=GUIDES,
)
HUGGINGFACE = dataclasses.replace(
    roformer.HUGGINGFACE,
    arguments=from_roformer(roformer.HUGGINGFACE.arguments),
    fresh=("latent_*", *GUIDES),
)
TENSORFLOW = dataclasses.replace(
    roformer.TENSORFLOW,
    arguments=from_roformer(roformer.TENSORFLOW.arguments),
    fresh=("latent_*", *GUIDES),
)
REFERENCE = Format(
    name="UniVAE's published reference",
    config_file="config.json",
    find=sources.find_npz,
    source=sources.NpzSource,
    table=REFERENCE_TABLE,
    accepts=lambda config: {"settings", "layer_norm_epsilon"} <= config.keys(),
    arguments=reference_arguments,
    fresh=GUIDES,
)
FORMATS = (OWN, HUGGINGFACE, REFERENCE, TENSORFLOW)
