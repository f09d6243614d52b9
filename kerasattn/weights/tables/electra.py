"""ELECTRA's checkpoints: Hugging Face folders, and TensorFlow ones with the discriminator."""

from kerasattn.weights.configs import EncoderConfig
from kerasattn.weights.rules import Table, keras_layer, torch_dense
from kerasattn.weights.tables import bert

TABLE = Table(
    (
        *bert.torch_embeddings("electra", decoder="generator_lm_head"),
        *torch_dense("embedding_projection", "electra.embeddings_project"),
        *bert.torch_mlm(
            "generator_predictions.dense",
            "generator_predictions.LayerNorm",
            "generator_lm_head.bias",
            "generator_lm_head",
        ),
        *torch_dense("discriminator/dense", "discriminator_predictions.dense"),
        *torch_dense("discriminator/output", "discriminator_predictions.dense_prediction"),
        *bert.torch_classifiers("classifier.out_proj", dense="classifier.dense"),
    )
) + bert.torch_table("electra")

TENSORFLOW_TABLE = bert.tensorflow_table(
    *keras_layer("embedding_projection", "electra/embeddings_project", "kernel", "bias"),
    *keras_layer("discriminator/dense", "discriminator_predictions/dense", "kernel", "bias"),
    *keras_layer("discriminator/output", "discriminator_predictions/dense_1", "kernel", "bias"),
    prefix="electra",
    ignored=("generator*",),
)

SIZES = bert.SIZES | {
    "hidden_size": ("hidden_dim", 256),
    "intermediate_size": ("intermediate_dim", 1024),
    "num_attention_heads": ("num_heads", 4),
    "embedding_size": ("embedding_dim", 128),
}
ARCHITECTURES = bert.ARCHITECTURES | {"ForPreTraining": ("discriminator",), "Model": ()}
CONFIG = EncoderConfig("electra", "Electra", SIZES, ARCHITECTURES)
FORMATS = (
    bert.huggingface("ELECTRA", TABLE, CONFIG),
    bert.tensorflow(
        "ELECTRA",
        TENSORFLOW_TABLE,
        CONFIG,
        tells=lambda config, names: "electra/embeddings/word_embeddings" in names,
    ),
)
