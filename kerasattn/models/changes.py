"""What was done to the layers of a model after it was built: kept in its config, and done again.

So a `.keras` file of a quantized model loads, and one of a model with bottleneck adapters. Of a
LoRA Keras saves the sum, so that the loaded model has none.
"""

from kerasattn.training import adapters


def describe(model):
    """The changes as a dict for a config, empty if there are none."""
    changes = {
        "quantized": {
            layer.path: layer.quantization_mode
            for layer in model._flatten_layers()
            if getattr(layer, "quantization_mode", None)
        },
        "bottlenecks": adapters.bottlenecks_of(model),
    }
    if changes["bottlenecks"]:
        changes["trained"] = [variable.path for variable in model.trainable_variables]
    return {name: places for name, places in changes.items() if places}


def check_unchanged(model):
    """Refuses what a published format cannot hold.

    Raises:
        ValueError: for a quantized model, or one with adapters.
    """
    changed = describe(model)
    if "quantized" in changed:
        raise ValueError(f"{model.name} is quantized: such a model is saved as a .keras file.")
    if "bottlenecks" in changed or adapters.with_lora(model):
        raise ValueError(f"{model.name} has adapters: merge them before, or save them alone.")


def repeat(model, changes):
    """Does to a newly built model what `describe` told of another."""
    if "bottlenecks" in changes:
        with adapters.inserting(model, {}, changes["bottlenecks"], changes["trained"]):
            pass
    places = {layer.path: layer for layer in model._flatten_layers()}
    for path, mode in changes.get("quantized", {}).items():
        places[path].quantize(mode)
