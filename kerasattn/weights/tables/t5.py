"""T5's checkpoints, versions 1.0, 1.1 and mT5: Hugging Face folders, and those of mesh TensorFlow.

Block 0 has the relative bias of its stack. Weights are (in, out) in TensorFlow.
"""

import dataclasses
import functools

from kerasattn.weights import sources
from kerasattn.weights.configs import activation
from kerasattn.weights.formats import Format
from kerasattn.weights.huggingface import (
    huggingface_format,
    read_sizes,
    write_activation,
    write_sizes,
)
from kerasattn.weights.rules import Rule, Table

# Our parts of a block -> the kind of layer there.
ATTENTIONS = {"self_attention": "SelfAttention", "cross_attention": "EncDecAttention"}
PROJECTIONS = {"query": "q", "key": "k", "value": "v", "output": "o"}
GATED = {"gate": "wi_0", "intermediate": "wi_1", "output": "wo"}
PLAIN = {"intermediate": "wi", "output": "wo"}
STACKS = {
    "encoder": ("self_attention", "feed_forward"),
    "decoder": ("self_attention", "cross_attention", "feed_forward"),
}


def blocks(feed_forward):
    """Our variables in the blocks, and where they are there.

    Yields:
        our path, the stack, the number of the layer in its block, and what it is called inside.
    """
    for stack, parts in STACKS.items():
        for number, part in enumerate(parts):
            path = f"{stack}_block_{{i}}/{part}"
            yield f"{path}_norm/scale", stack, number, ("layer_norm",)
            kind = ATTENTIONS.get(part, "DenseReluDense")
            names = feed_forward if part == "feed_forward" else PROJECTIONS
            for ours, theirs in names.items():
                yield f"{path}/{ours}/kernel", stack, number, (kind, theirs)


def torch_rule(ours, stack, number, theirs):
    """A rule of a block under PyTorch's names."""
    transform = "transpose" if ours.endswith("kernel") else "identity"
    name = ".".join((stack, "block.{i}.layer", str(number), *theirs, "weight"))
    return Rule(ours, name, transform)


def tensorflow_rule(ours, stack, number, theirs):
    """The same under TensorFlow's names."""
    name = "/".join((stack, "block_{i:0>3}", f"layer_{number:03}", *theirs))
    ends = {"layer_norm": "/scale", "DenseReluDense": "/kernel"}
    return Rule(ours, name + ends.get(theirs[0], ""))


def huggingface_table(feed_forward):
    """The table of a version with gated or plain feed-forward parts."""
    return Table(
        (
            Rule(
                "token_embedding/embeddings",
                "shared.weight",
                aliases=("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"),
            ),
            *(torch_rule(*row) for row in blocks(feed_forward)),
            *(
                Rule(
                    f"{name}_position_bias/embeddings",
                    f"{name}.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
                )
                for name in STACKS
            ),
            *(Rule(f"{name}_norm/scale", f"{name}.final_layer_norm.weight") for name in STACKS),
            Rule("head/kernel", "lm_head.weight", "transpose"),
        ),
        # The head's copy of a tied token table; a bias that old files have and nothing reads.
        ignored=(
            "lm_head.weight",
            "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
        ),
    )


def tensorflow_table(feed_forward):
    """The same under TensorFlow's names."""
    return Table(
        (
            Rule("token_embedding/embeddings", "shared/embedding"),
            *(tensorflow_rule(*row) for row in blocks(feed_forward)),
            *(
                Rule(
                    f"{name}_position_bias/embeddings",
                    f"{name}/block_000/layer_000/SelfAttention/relative_attention_bias",
                    "transpose",
                )
                for name in STACKS
            ),
            *(Rule(f"{name}_norm/scale", f"{name}/final_layer_norm/scale") for name in STACKS),
            Rule("head/kernel", "decoder/logits/kernel"),
        ),
        ignored=("*_slot_*", "*global_step"),
    )


# === Sizes ===

SIZES = {
    "vocab_size": ("vocabulary_size", 32128),
    "num_layers": ("num_layers", 6),
    "num_decoder_layers": ("num_decoder_layers", None),
    "num_heads": ("num_heads", 8),
    "d_kv": ("head_dim", 64),
    "d_model": ("hidden_dim", 512),
    "d_ff": ("intermediate_dim", 2048),
    "relative_attention_num_buckets": ("num_buckets", 32),
    "relative_attention_max_distance": ("max_distance", 128),
    "dropout_rate": ("dropout", 0.1),
    "layer_norm_epsilon": ("layer_norm_epsilon", 1e-6),
    "initializer_factor": ("initializer_factor", 1.0),
    "pad_token_id": ("pad_id", 0),
    "decoder_start_token_id": ("start_id", 0),
    "eos_token_id": ("end_id", 1),
    "tie_word_embeddings": ("tied_head", True),
    "scale_decoder_outputs": ("scale_output", None),
    "cross_position_bias": ("cross_position_bias", False),
}

# Arguments that an encoder alone does not have.
OF_DECODERS = (
    "num_decoder_layers",
    "start_id",
    "end_id",
    "with_head",
    "tied_head",
    "scale_output",
    "cross_position_bias",
)


def arguments(config, folder):
    """Constructor arguments from `config.json`."""
    values = read_sizes(config, SIZES)
    gate, _, name = config.get("feed_forward_proj", "relu").rpartition("-")
    # "gated-gelu" is what version 1.1 was published with, and means the tanh form.
    values["activation"] = activation("gelu_new" if gate and name == "gelu" else name)
    values["gated"] = gate == "gated"
    values["with_head"] = config.get("architectures") not in (["T5Model"], ["MT5Model"])
    if values["scale_output"] is None:
        values["scale_output"] = scales_output(config)
    return values


def scales_output(config):
    """Whether outputs are scaled, of a config that does not say so: those of tied heads are.

    Of mT5 only until version 4 of transformers; since then its configs all say "tied", too.
    """
    tied = bool(config.get("tie_word_embeddings", True))
    if config.get("model_type") != "mt5":
        return tied
    return tied and str(config.get("transformers_version")).startswith(("2.", "3.", "4."))


def is_encoder(config):
    """Whether a config is that of an encoder alone."""
    return (config.get("architectures") or [""])[0].endswith("EncoderModel")


def without_decoder(values):
    """The arguments of an encoder alone, of those of a whole model."""
    return {name: value for name, value in values.items() if name not in OF_DECODERS}


def tensorflow_arguments(config, folder):
    """Constructor arguments from `t5_config.json`, whose version says the kind of the parts."""
    newer = not config.get("version", "t5.1.1").endswith(".0")
    kind = {
        "feed_forward_proj": "gated-gelu" if newer else "relu",
        "tie_word_embeddings": not newer,
    }
    return arguments({**kind, **config}, folder)


def config(name, values):
    """`config.json` of a model built with these arguments; the name is "t5" or "mt5"."""
    ours = values["activation"]
    proj = write_activation(ours)
    if values["gated"]:  # "gated-gelu" means the tanh form
        proj = "gated-" + {"gelu_tanh": "gelu", "gelu": "gelu_python"}.get(ours, proj)
    written = {k: v for k, v in write_sizes(values, SIZES).items() if v is not None}
    if not values["cross_position_bias"]:
        written.pop("cross_position_bias", None)
    written["num_decoder_layers"] = values["num_decoder_layers"] or values["num_layers"]
    if values["scale_output"] is None and values["tied_head"] is not None:
        written["scale_decoder_outputs"] = values["tied_head"] and name == "t5"
    kind = "ForConditionalGeneration" if values["with_head"] else "Model"
    return written | {
        "model_type": name,
        "architectures": [name.upper() + kind],
        "feed_forward_proj": proj,
        "is_encoder_decoder": True,
    }


def encoder_config(name, values):
    """`config.json` of an encoder built with these arguments."""
    written = config(name, dict.fromkeys(OF_DECODERS) | values)
    kept = {k: v for k, v in written.items() if k not in SIZES or v is not None}
    return kept | {"architectures": [f"{name.upper()}EncoderModel"], "is_encoder_decoder": False}


# === Formats ===


def tensorflow_format(name, title, table, arguments):
    """The `Format` of folders of mesh TensorFlow, of which the config says the version."""
    return Format(
        name=f"TensorFlow {title}",
        config_file="t5_config.json",
        find=sources.find_tensorflow,
        source=sources.TensorFlowSource,
        table=table,
        accepts=lambda said: said.get("version", "t5.1.1").startswith(name),
        arguments=arguments,
    )


def formats(name, title):
    """The formats of Hugging Face and TensorFlow, of each the gated version and the plain one."""
    found = []
    for feed_forward, gated in ((GATED, True), (PLAIN, False)):
        huggingface = huggingface_format(
            name,
            title,
            huggingface_table(feed_forward),
            arguments,
            functools.partial(config, name),
        )
        tensorflow = tensorflow_format(
            name, title, tensorflow_table(feed_forward), tensorflow_arguments
        )
        found += [of_kind(huggingface, gated), of_kind(tensorflow, gated)]
    return tuple(found)


def encoder_formats(name, title):
    """The formats of encoders alone, as `formats`; they read those of whole models too."""

    def of_encoders(arguments):
        return lambda config, folder: without_decoder(arguments(config, folder))

    found = []
    for feed_forward, gated in ((GATED, True), (PLAIN, False)):
        huggingface = huggingface_format(
            name,
            f"{title} encoder",
            huggingface_table(feed_forward) + Table((), ignored=("decoder.*",)),
            of_encoders(arguments),
            functools.partial(encoder_config, name),
        )
        tensorflow = tensorflow_format(
            name,
            f"{title} encoder",
            tensorflow_table(feed_forward) + Table((), ignored=("decoder/*",)),
            of_encoders(tensorflow_arguments),
        )
        found += [of_kind(huggingface, gated), of_kind(tensorflow, gated)]
    return tuple(found)


def of_kind(form, gated):
    """The same format, for configs whose feed-forward parts are gated, or are not."""

    def accepts(config):
        return form.accepts(config) and form.arguments(config, None)["gated"] == gated

    return dataclasses.replace(form, accepts=accepts)


def whole(forms):
    """The same formats, but for configs of encoders alone."""

    def but_encoders(accepts):
        return lambda config: accepts(config) and not is_encoder(config)

    return tuple(dataclasses.replace(f, accepts=but_encoders(f.accepts)) for f in forms)


FORMATS = whole(formats("t5", "T5"))
MT5_FORMATS = whole(formats("mt5", "mT5"))
ENCODER_FORMATS = encoder_formats("t5", "T5")
MT5_ENCODER_FORMATS = encoder_formats("mt5", "mT5")
