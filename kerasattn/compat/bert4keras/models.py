"""The front door for bert4keras' users: `build_transformer_model`, and its classes of models."""

import inspect

import keras
import numpy as np

from kerasattn.compat.bert4keras import layers
from kerasattn.compat.bert4keras.backend import K
from kerasattn.compat.bert4keras.bert import BERT
from kerasattn.compat.bert4keras.decoders import GPT, GPT2, GPT2_ML
from kerasattn.compat.bert4keras.encoders import (
    ALBERT,
    ELECTRA,
    NEZHA,
    ALBERT_Unshared,
    RoFormer,
    RoFormerV2,
)
from kerasattn.compat.bert4keras.t5 import T5, T5_Base, T5_Decoder, T5_Encoder
from kerasattn.compat.bert4keras.transformer import Transformer
from kerasattn.weights.sources import read_json

__all__ = [
    "ALBERT",
    "BERT",
    "ELECTRA",
    "GPT",
    "GPT2",
    "GPT2_ML",
    "MODELS",
    "NEZHA",
    "T5",
    "ALBERT_Unshared",
    "LM_Mask",
    "RoFormer",
    "RoFormerV2",
    "T5_Base",
    "T5_Decoder",
    "T5_Encoder",
    "Transformer",
    "UniLM_Mask",
    "build_transformer_model",
    "extend_with_language_model",
    "extend_with_unified_language_model",
]
# A file with a model of its own begins with `from ...models import *`, and finds layers too.
OTHERS = {name: getattr(layers, name) for name in layers.__all__}
OTHERS |= {"K": K, "Model": keras.Model, "keras": keras, "np": np}
globals().update(OTHERS)
__all__ += sorted(OTHERS)

MODELS = {
    "bert": BERT,
    "roberta": BERT,
    "albert": ALBERT,
    "albert_unshared": ALBERT_Unshared,
    "nezha": NEZHA,
    "roformer": RoFormer,
    "roformer_v2": RoFormerV2,
    "electra": ELECTRA,
    "gpt": GPT,
    "gpt2": GPT2,
    "gpt2_ml": GPT2_ML,
}
T5_MODELS = {"": T5, "_encoder": T5_Encoder, "_decoder": T5_Decoder}
T5_VERSIONS = {
    "t5": "t5.1.0",
    "t5.1.0": "t5.1.0",
    "t5.1.1": "t5.1.1",
    "mt5": "mt5.1.1",
    "mt5.1.1": "mt5.1.1",
}
MODELS |= {name + end: cls for name in T5_VERSIONS for end, cls in T5_MODELS.items()}
APPLICATIONS = ("encoder", "lm", "unilm")
# Arguments -> what a config calls them, and their value where it does not say.
FROM_CONFIG = {
    "max_position": ("max_position_embeddings", 512),
    "dropout_rate": ("hidden_dropout_prob", None),
    "attention_dropout_rate": ("attention_probs_dropout_prob", None),
    "segment_vocab_size": ("type_vocab_size", 2),
}
NEEDED = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_act",
)


class LM_Mask:
    """Makes a model causal, as the first base of a class: `class Mine(LM_Mask, BERT)`."""

    application = "lm"


class UniLM_Mask:
    """Lets a model read segment 0 both ways and write segment 1, as the first base of a class."""

    application = "unilm"


def extend_with_language_model(BaseModel):
    """A class of models as `application="lm"` makes them."""
    return type("LanguageModel", (LM_Mask, BaseModel), {"__init__": _with_words(BaseModel)})


def extend_with_unified_language_model(BaseModel):
    """A class of models as `application="unilm"` makes them."""
    return type(
        "UnifiedLanguageModel", (UniLM_Mask, BaseModel), {"__init__": _with_words(BaseModel)}
    )


def _with_words(base):
    """The constructor of a base that then has the head for words."""

    def __init__(self, *args, **kwargs):
        base.__init__(self, *args, **kwargs)
        self.with_mlm = self.with_mlm or True

    return __init__


def build_transformer_model(
    config_path=None,
    checkpoint_path=None,
    model="bert",
    application="encoder",
    return_keras_model=True,
    **kwargs,
):
    """Builds a model as bert4keras does: its names, its inputs in their order, its numbers.

    Args:
        config_path: path of a JSON file with the sizes, such as "bert_config.json".
        checkpoint_path: path of a TensorFlow checkpoint, such as "bert_model.ckpt"; a dict of
            arrays by name; or None for new weights.
        model: a name of `MODELS`, or a class of such a model, perhaps your own.
        application: "encoder"; "lm" is causal; "unilm" reads segment 0 both ways and writes
            segment 1. The last two have the head for words.
        return_keras_model: bool; otherwise the builder is returned, with `model`, `layers` by name
            and, of T5, `encoder` and `decoder`.
        **kwargs: arguments of the model's class, see `BERT`, `T5_Decoder` and `Transformer`; those
            of `Transformer.build`; and sizes that replace the config's.

    Returns:
        a `keras.Model` of a list of inputs, token ids first, with one output or a list of them:
        the last hidden vectors, or what the heads asked for make of them. `get_layer` knows
        bert4keras' names, such as "Transformer-0-MultiHeadSelfAttention".

    Raises:
        ValueError: for another name, an application that the model does not have, arguments that
            no model knows, or weights that do not fit.

    Example:
    >>> from kerasattn.compat.bert4keras import build_transformer_model
    >>> sizes = dict(vocab_size=30, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
    ...              intermediate_size=32, hidden_act="gelu")
    >>> model = build_transformer_model(model="roformer", application="unilm", **sizes)
    >>> [x.name for x in model.inputs], model.output.shape
    (['Input-Token', 'Input-Segment'], (None, None, 30))
    >>> model.get_layer("Transformer-1-FeedForward-Norm").output.shape
    (None, None, 16)

    Source: bert4keras 0.11.5, https://github.com/bojone/bert4keras.
    """
    settings = {} if config_path is None else dict(read_json(config_path))
    cls = model
    name = model.lower() if isinstance(model, str) else None
    if name not in MODELS and not (isinstance(model, type) and issubclass(model, Transformer)):
        raise ValueError(f"model is one of {list(MODELS)} or a class of such, got {model!r}.")
    if name is not None:
        cls = MODELS[name]
        if issubclass(cls, T5_Base):
            settings["version"] = T5_VERSIONS[name.partition("_")[0]]
    _check_arguments(cls, kwargs.keys() - settings.keys())
    settings |= kwargs
    for ours, (theirs, default) in FROM_CONFIG.items():
        settings.setdefault(ours, settings.get(theirs, default))
    missing = [key for key in NEEDED if settings.get(key) is None]
    if missing:
        raise ValueError(f"{config_path or 'The arguments'} must also say {', '.join(missing)}.")

    transformer = cls(**settings)
    _apply(application, transformer)
    transformer.build(**settings)
    if checkpoint_path is not None:
        transformer.load_weights_from_checkpoint(checkpoint_path)
    return transformer.model if return_keras_model else transformer


def _check_arguments(cls, given):
    """Refuses arguments that no model has: classes themselves pass over what they do not know.

    A class of the user's whose constructor takes any may know more.
    """
    known = {theirs for theirs, _ in FROM_CONFIG.values()} | FROM_CONFIG.keys()
    for family in {cls, *MODELS.values()}:
        for base in family.__mro__:
            for method in (vars(base).get("__init__"), vars(base).get("build")):
                if not inspect.isfunction(method):
                    continue
                parameters = inspect.signature(method).parameters
                theirs = not base.__module__.startswith("kerasattn.")
                if theirs and any(p.kind == p.VAR_KEYWORD for p in parameters.values()):
                    return
                known |= parameters.keys()
    unknown = sorted(given - known)
    if unknown:
        raise ValueError(f"No model has the arguments {', '.join(unknown)}.")


def _apply(application, transformer):
    """Makes a transformer a language model, if it is asked to be one."""
    name = str(application).lower()
    if name not in APPLICATIONS:
        raise ValueError(f"application is one of {APPLICATIONS}, got {application!r}.")
    if name == "encoder":
        return
    writes_already = name == "lm" and isinstance(transformer, T5_Decoder)
    if isinstance(transformer, (T5_Base, ELECTRA)) and not writes_already:
        raise ValueError(
            f'{type(transformer).__name__} can\'t be used as application="{name}": leave it out.'
        )
    transformer.application = name
    if hasattr(transformer, "with_mlm") and not transformer.with_mlm:
        transformer.with_mlm = True
