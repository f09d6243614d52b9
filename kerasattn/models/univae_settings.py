"""Which settings of a UniVAE go together."""

import math

from kerasattn.models.settings import check_settings


def check(config):
    """Refuses settings that do not go together."""
    check_settings(config)
    num_layers, num_latent_layers = config["num_layers"], config["num_latent_layers"]
    if not 1 <= num_latent_layers < num_layers:
        raise ValueError(
            f"num_latent_layers must be from 1 to num_layers - 1 = {num_layers - 1}, got "
            f"{num_latent_layers}. The first layer cannot carry a latent: what stands at its "
            "position 0 is the same for every text."
        )
    for name, known in (
        ("latent", ("vmf", "gaussian", "quantized", None)),
        ("length", ("fixed", "conditioned")),
        ("backbone", ("roformer", "bert")),
    ):
        if config[name] not in known:
            raise ValueError(f"{name} must be one of {known}, got {config[name]!r}.")
    if config["latent_dim"] is None and config["latent"] is not None:
        raise ValueError(
            f"latent={config['latent']!r} needs a latent_dim; only latent=None goes without."
        )
    weight = config["isotropy_weight"]
    if not 0 <= weight < math.inf or (weight and config["latent"] != "vmf"):
        raise ValueError(
            "isotropy_weight must be finite and not negative, and is for latent='vmf' alone; got "
            f"{weight} with latent={config['latent']!r}."
        )
    if config["word_dropout"] and not 0 <= config["unk_id"] < config["vocabulary_size"]:
        raise ValueError(
            f"word_dropout puts unk_id = {config['unk_id']} in a word's place, which is none of "
            f"vocabulary_size = {config['vocabulary_size']} ids."
        )
    least = 2 if config["latent"] == "vmf" else 1
    if config["latent_dim"] is not None and config["latent_dim"] < least:
        raise ValueError(f"latent_dim must be at least {least}, got {config['latent_dim']}.")
    if config["hidden_dim"] % config["num_heads"]:
        raise ValueError(
            f"num_heads = {config['num_heads']} must divide hidden_dim = {config['hidden_dim']}."
        )
    if config["max_length"] < 2:
        raise ValueError(
            f"max_length counts [CLS] and [SEP], so 2 or more; got {config['max_length']}."
        )
    rows = config["max_positions"]
    if rows is not None and rows < 2 * config["max_length"]:
        raise ValueError(
            f"The two halves need 2 × max_length = {2 * config['max_length']} positions, "
            f"max_positions is {rows}."
        )
    size, tokenizer = config["vocabulary_size"], config["tokenizer"]
    ids = {name: config[name] for name in ("pad_id", "cls_id", "sep_id")}
    if len(set(ids.values())) < 3 or not all(i in range(size) for i in ids.values()):
        raise ValueError(
            f"pad_id, cls_id, sep_id are three of vocabulary_size = {size} ids: {ids}."
        )
    if tokenizer is not None:
        theirs = {name: getattr(tokenizer, name, None) for name in ids}
        if theirs != ids:
            raise ValueError(f"The tokenizer has {theirs}, the model {ids}: give it the same.")
        if len(tokenizer.vocabulary) > size:
            raise ValueError(
                f"The tokenizer has {len(tokenizer.vocabulary)} tokens, more than "
                f"vocabulary_size = {size}."
            )
