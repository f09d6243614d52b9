"""BERT's checkpoints, and the rows and sizes that the families after it share with it.

Its layers are called the same in both formats but for the signs between the words.
"""

from kerasattn.weights import sources, torch_files
from kerasattn.weights.configs import HEADS, EncoderConfig
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
TABLES = {
    "token_embedding": "word_embeddings",
    "segment_embedding": "token_type_embeddings",
    "position_embedding": "position_embeddings",
}


# === Rows under PyTorch's names ===


def torch_blocks(prefix, dense=BLOCK_DENSE, norm=BLOCK_NORM, ours="block_{i}"):
    """The rules of blocks, by default BERT's; a prefix is such as `bert.encoder.layer.{i}`."""
    rules = ()
    for part, theirs in dense.items():
        rules += torch_dense(f"{ours}/{part}", f"{prefix}.{theirs.replace('/', '.')}")
    for part, theirs in norm.items():
        rules += torch_norm(f"{ours}/{part}", f"{prefix}.{theirs.replace('/', '.')}")
    return rules


def torch_embeddings(prefix, decoder="cls.predictions.decoder"):
    """The rules of the embeddings; the decoder is the tied layer of the masked-LM head."""
    rules = tuple(
        Rule(
            f"{ours}/embeddings",
            f"{prefix}.embeddings.{theirs}.weight",
            aliases=(f"{decoder}.weight",) if ours == "token_embedding" else (),
        )
        for ours, theirs in TABLES.items()
    )
    return rules + torch_norm("embedding_norm", f"{prefix}.embeddings.LayerNorm")


def torch_mlm(dense, norm, bias, decoder):
    """The rules of a masked-LM head: its transform, its norm, and the bias of the words."""
    return (
        *torch_dense("head/transform", dense),
        *torch_norm("head/norm", norm),
        Rule("head/bias", bias, aliases=(f"{decoder}.bias",)),
    )


def torch_classifiers(output="classifier", dense=None):
    """The rules of the heads for sequences (with a dense layer of their own), tokens and spans."""
    return (
        *(torch_dense("classifier/dense", dense) if dense else ()),
        *torch_dense("classifier/output", output),
        *torch_dense("token_classifier/output", "classifier"),
        *torch_dense("span/output", "qa_outputs"),
    )


# What no family has published a name for, under a name of ours.
OWN = (Rule("{path}", "kerasattn.{path}"),)
BERT_MLM = torch_mlm(
    "cls.predictions.transform.dense",
    "cls.predictions.transform.LayerNorm",
    "cls.predictions.bias",
    "cls.predictions.decoder",
)


def torch_table(prefix, *more, ignored=()):
    """The table of a family with BERT's heads; `more` are rules that count before BERT's."""
    return Table(
        (
            *more,
            *torch_embeddings(prefix),
            *torch_blocks(f"{prefix}.encoder.layer.{{i}}"),
            *torch_dense("pooler/dense", f"{prefix}.pooler.dense"),
            *BERT_MLM,
            *torch_dense("nsp/output", "cls.seq_relationship"),
            *torch_classifiers(),
        ),
        ignored=("*.position_ids", *ignored),
        prefix=f"{prefix}.",
    )


# === Rows under TensorFlow's names ===

OPTIMIZER = ("*/adam_[mv]", "*/Adam*", "*/lamb_*", "beta[12]_power", "*global_step")


def tensorflow_blocks(prefix, dense=BLOCK_DENSE, norm=BLOCK_NORM, ours="block_{i}"):
    """The rules of blocks, by default BERT's; a prefix is such as `bert/encoder/layer_{i}`."""
    rules = ()
    for part, theirs in dense.items():
        rules += keras_layer(f"{ours}/{part}", f"{prefix}/{theirs}", "kernel", "bias")
    for part, theirs in norm.items():
        rules += keras_layer(f"{ours}/{part}", f"{prefix}/{theirs}", "gamma", "beta")
    return rules


def tensorflow_table(*more, prefix="bert", pairs="nsp", ignored=()):
    """The table of a family with BERT's names; `more` are rules that count before BERT's.

    `pairs` is the head that judges two sentences.
    """
    return Table(
        (
            *more,
            *(
                Rule(f"{ours}/embeddings", f"{prefix}/embeddings/{theirs}")
                for ours, theirs in TABLES.items()
            ),
            *keras_layer("embedding_norm", f"{prefix}/embeddings/LayerNorm", "gamma", "beta"),
            *tensorflow_blocks(f"{prefix}/encoder/layer_{{i}}"),
            *keras_layer("pooler/dense", f"{prefix}/pooler/dense", "kernel", "bias"),
            *keras_layer("head/transform", "cls/predictions/transform/dense", "kernel", "bias"),
            *keras_layer("head/norm", "cls/predictions/transform/LayerNorm", "gamma", "beta"),
            Rule("head/bias", "cls/predictions/output_bias"),
            Rule(f"{pairs}/output/kernel", "cls/seq_relationship/output_weights", "transpose"),
            Rule(f"{pairs}/output/bias", "cls/seq_relationship/output_bias"),
        ),
        ignored=(*OPTIMIZER, *ignored),
    )


# === Sizes ===

# Theirs -> ours, and BERT's value where a config leaves it out.
SIZES = {
    "vocab_size": ("vocabulary_size", 30522),
    "num_hidden_layers": ("num_layers", 12),
    "num_attention_heads": ("num_heads", 12),
    "hidden_size": ("hidden_dim", 768),
    "intermediate_size": ("intermediate_dim", 3072),
    "max_position_embeddings": ("max_length", 512),
    "type_vocab_size": ("num_segments", 2),
    "hidden_act": ("activation", "gelu"),
    "hidden_dropout_prob": ("dropout", 0.1),
    "attention_probs_dropout_prob": ("attention_dropout", 0.1),
    "classifier_dropout": ("classifier_dropout", None),
    "layer_norm_eps": ("layer_norm_epsilon", 1e-12),
    "initializer_range": ("initializer_range", 0.02),
    "pad_token_id": ("pad_id", 0),
}
# Ends of the names of architectures -> heads.
ARCHITECTURES = {
    "ForPreTraining": ("mlm", "nsp"),
    "Model": ("pooled",),
    "ForMaskedLM": ("mlm",),
    "ForCausalLM": ("mlm",),
    "ForNextSentencePrediction": ("nsp",),
    "ForSequenceClassification": ("class",),
    "ForTokenClassification": ("token",),
    "ForQuestionAnswering": ("span",),
}

# === Formats ===


def huggingface(name, table, config, **options):
    """The format of a family's Hugging Face folders."""
    return Format(
        name=f"Hugging Face {name}",
        config_file="config.json",
        find=torch_files.find_huggingface,
        source=torch_files.open_huggingface,
        table=table + Table(OWN),
        accepts=config.accepts,
        arguments=config.arguments,
        config=config.config,
        heads=HEADS,
        **options,
    )


def tensorflow(name, table, config, config_file="bert_config.json", **options):
    """The format of a family's TensorFlow folders."""
    return Format(
        name=f"TensorFlow {name}",
        config_file=config_file,
        find=sources.find_tensorflow,
        source=sources.TensorFlowSource,
        table=table,
        accepts=config.accepts,
        arguments=config.arguments,
        heads=HEADS,
        **options,
    )


CONFIG = EncoderConfig("bert", "Bert", SIZES, {"LMHeadModel": ("mlm",)} | ARCHITECTURES)
HUGGINGFACE = huggingface("BERT", torch_table("bert"), CONFIG)
TENSORFLOW = tensorflow(
    "BERT",
    tensorflow_table(),
    CONFIG,
    tells=lambda config, names: (
        "bert/encoder/layer_0/output/dense/kernel" in names
        and "bert/embeddings/position_embeddings" in names
    ),
)
FORMATS = (HUGGINGFACE, TENSORFLOW)
