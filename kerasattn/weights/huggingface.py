"""What folders of Hugging Face have in common: their files, and tables of sizes."""

from kerasattn.weights.configs import ACTIVATIONS, write_sizes
from kerasattn.weights.formats import Format
from kerasattn.weights.torch_files import find_huggingface, open_huggingface

__all__ = ["huggingface_format", "read_sizes", "write_activation", "write_sizes"]


def huggingface_format(model_type, name, table, arguments, config, **more):
    """The `Format` of a family's Hugging Face folders; see `Format` for the arguments."""
    return Format(
        name=f"Hugging Face {name}",
        config_file="config.json",
        find=find_huggingface,
        source=open_huggingface,
        table=table,
        accepts=lambda found: found.get("model_type") == model_type,
        arguments=arguments,
        config=config,
        **more,
    )


def read_sizes(config, sizes):
    """Our arguments of a config, by a table of rows {theirs: (ours, what theirs is if left out)}.

    Example:
    >>> from kerasattn.weights.huggingface import read_sizes
    >>> read_sizes({"n_head": 4}, {"n_head": ("num_heads", 12), "n_layer": ("num_layers", 12)})
    {'num_heads': 4, 'num_layers': 12}
    """
    return {ours: config.get(theirs, default) for theirs, (ours, default) in sizes.items()}


def write_activation(ours, names=ACTIVATIONS):
    """What a config calls our activation: the first of its names."""
    return next((theirs for theirs, name in names.items() if name == ours), ours)
