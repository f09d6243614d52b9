"""RoBERTa's checkpoints, as Hugging Face has them: BERT's body, heads of its own."""

from kerasattn.weights.configs import EncoderConfig
from kerasattn.weights.rules import Table
from kerasattn.weights.tables import bert

TABLE = Table(
    (
        *bert.torch_embeddings("roberta", decoder="lm_head.decoder"),
        *bert.torch_mlm("lm_head.dense", "lm_head.layer_norm", "lm_head.bias", "lm_head.decoder"),
        *bert.torch_classifiers("classifier.out_proj", dense="classifier.dense"),
    )
) + bert.torch_table("roberta")
SIZES = bert.SIZES | {
    "vocab_size": ("vocabulary_size", 50265),
    "pad_token_id": ("pad_id", 1),
}
ARCHITECTURES = {end: heads for end, heads in bert.ARCHITECTURES.items() if "nsp" not in heads}
CONFIG = EncoderConfig(
    "roberta", "Roberta", SIZES, ARCHITECTURES, aliases=("xlm-roberta", "camembert")
)
FORMATS = (bert.huggingface("RoBERTa", TABLE, CONFIG),)
