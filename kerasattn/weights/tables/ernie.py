"""ERNIE's checkpoints, as Hugging Face has them: BERT's, and kinds of tasks."""

from kerasattn.weights.configs import EncoderConfig
from kerasattn.weights.rules import Rule
from kerasattn.weights.tables import bert

TABLE = bert.torch_table(
    "ernie",
    Rule("task_embedding/embeddings", "ernie.embeddings.task_type_embeddings.weight"),
)
SIZES = bert.SIZES | {
    "use_task_id": ("use_tasks", False),
    "task_type_vocab_size": ("num_tasks", 3),
}
CONFIG = EncoderConfig("ernie", "Ernie", SIZES, bert.ARCHITECTURES)
FORMATS = (bert.huggingface("ERNIE", TABLE, CONFIG),)
