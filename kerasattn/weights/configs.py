"""Between a `config.json` as Hugging Face writes it and our constructors' arguments."""

import dataclasses

# Our heads -> where their variables are in the model.
HEADS = {
    "pooled": "pooler/*",
    "mlm": "head/*",
    "nsp": "nsp/*",
    "sop": "sop/*",
    "discriminator": "discriminator/*",
    "class": "classifier/*",
    "token": "token_classifier/*",
    "span": "span/*",
}

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
    "relu6": "relu6",
    "silu": "silu",
    "swish": "silu",
    "mish": "mish",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "linear": "linear",
}
# What makes an architecture a causal language model.
CAUSAL = ("LMHeadModel", "ForCausalLM")


def activation(name):
    """Our name of an activation that a config calls `hidden_act`."""
    if name not in ACTIVATIONS:
        raise ValueError(f"hidden_act {name!r} is not known, expected one of {list(ACTIVATIONS)}.")
    return ACTIVATIONS[name]


def write_sizes(values, sizes):
    """The part of a config that a table of rows {theirs: (ours, what theirs is if left out)} says.

    A dropout of ours that is None is `dropout`: theirs must be a number, but for one.

    Example:
    >>> from kerasattn.weights.configs import write_sizes
    >>> sizes = {"n_head": ("num_heads", 12), "attn_pdrop": ("attention_dropout", 0.1)}
    >>> write_sizes({"num_heads": 4, "dropout": 0.2, "attention_dropout": None}, sizes)
    {'n_head': 4, 'attn_pdrop': 0.2}
    """
    written = {}
    for theirs, (ours, _) in sizes.items():
        written[theirs] = values[ours]
        if values[ours] is None and ours.endswith("dropout") and theirs != "classifier_dropout":
            written[theirs] = values["dropout"]
    return written


@dataclasses.dataclass(frozen=True)
class EncoderConfig:
    """How the config of a family of encoders says what our constructor's arguments say.

    Args:
        model_type: str, the family's name in a config.
        architecture: str, how the names of its architectures begin.
        sizes: dict from their keys to pairs of our argument and its value where the config leaves
            it out, or has null.
        heads: dict from the ends of the names of architectures to our heads.
        aliases: tuple of str, other values of model_type for the same model.

    Example:
    >>> from kerasattn.weights.configs import EncoderConfig
    >>> family = EncoderConfig("bert", "Bert", {"hidden_size": ("hidden_dim", 768)},
    ...                        {"Model": ("pooled",), "ForMaskedLM": ("mlm",)})
    >>> arguments = family.arguments({"architectures": ["BertForMaskedLM"]}, folder=None)
    >>> arguments["hidden_dim"], arguments["heads"]
    (768, ('mlm',))
    """

    model_type: str
    architecture: str
    sizes: dict
    heads: dict
    aliases: tuple = ()

    def accepts(self, config):
        """Whether a config is of this family, or does not say of which."""
        found = config.get("model_type", self.model_type)
        return found in (self.model_type, *self.aliases)

    def arguments(self, config, folder):
        """Our arguments; `heads` is None where the config does not say them."""
        values = {}
        for theirs, (ours, default) in self.sizes.items():
            value = config.get(theirs)
            values[ours] = default if value is None else value
        if "activation" in values:
            values["activation"] = activation(values["activation"])
        if values.get("embedding_dim") == values["hidden_dim"]:
            values["embedding_dim"] = None
        kind = config.get("position_embedding_type", "absolute")
        if kind != "absolute":
            raise ValueError(f"position_embedding_type {kind!r} is not supported.")
        if config.get("add_cross_attention"):
            raise ValueError("add_cross_attention, which reads another model, is not supported.")
        values["num_classes"] = config.get("num_labels") or len(config.get("id2label") or "01")
        values["heads"] = self._heads(config)
        if config.get("tie_word_embeddings") is False and "mlm" in (values["heads"] or ()):
            raise ValueError(
                "tie_word_embeddings = False, a head with a table of its own, is not supported."
            )
        values["application"] = config.get("application") or (
            "lm" if config.get("is_decoder") else "encoder"
        )
        return values

    def config(self, values):
        """The config of a model that was built with these arguments."""
        config = write_sizes(values, self.sizes)
        for theirs, (ours, _) in self.sizes.items():
            if ours == "activation":
                names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
                config[theirs] = names.get(values[ours], values[ours])
            elif ours == "embedding_dim":
                config[theirs] = values[ours] or values["hidden_dim"]
        causal = values["application"] == "lm"
        config |= {
            "model_type": self.model_type,
            "architectures": [self.architecture + self._end(set(values["heads"]), causal)],
            "application": values["application"],
            "heads": list(values["heads"]),
            "is_decoder": causal,
            "tie_word_embeddings": True,
        }
        if {"class", "token"} & set(values["heads"]):
            labels = [f"LABEL_{i}" for i in range(values["num_classes"])]
            config["id2label"] = {str(i): label for i, label in enumerate(labels)}
            config["label2id"] = {label: i for i, label in enumerate(labels)}
        return config

    def _end(self, heads, causal):
        """The end of the name of the architecture that has the most of some heads, and no other."""
        ends = [end for end, has in self.heads.items() if set(has) <= heads]
        ends = [end for end in ends if (end in CAUSAL) == causal]
        # The pooler comes with other heads and names none.
        return max(ends, key=lambda end: len({*self.heads[end]} - {"pooled"}), default="Model")

    def _heads(self, config):
        if "heads" in config:
            return tuple(config["heads"])
        architecture = (config.get("architectures") or [""])[0]
        ends = [end for end in self.heads if architecture.endswith(end)]
        return self.heads[max(ends, key=len)] if ends else None
