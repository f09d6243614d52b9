"""Makes the file that later versions must load, and the numbers that transformers gives for it.

    python tests/compatibility/make.py

writes bert-VERSION.keras and bert-VERSION.json beside this script: once for each version, never
over an older file. Needs the extra [peers].
"""

import json
import tempfile
from pathlib import Path

import keras
import numpy as np
import torch
import transformers

import kerasattn
from kerasattn.models import BERT

HERE = Path(__file__).parent


def main():
    keras.utils.set_random_seed(0)
    random = np.random.default_rng(0)
    model = BERT(
        40,
        num_layers=1,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=12,
        max_length=12,
        heads=("mlm", "nsp"),
        initializer_range=0.3,
    )
    for variable in model.trainable_variables:
        value = keras.ops.convert_to_numpy(variable.value)
        variable.assign(value + random.normal(0, 0.1, value.shape))
    model.compile(keras.optimizers.SGD(1e-3))
    token_ids = random.integers(1, 40, (2, 12))
    token_ids[1, 7:] = 0
    segment_ids = (np.arange(12) > 4).astype(int) + np.zeros_like(token_ids)

    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        twin = transformers.BertForPreTraining.from_pretrained(folder).eval()
    with torch.no_grad():
        outputs = twin(
            torch.tensor(token_ids),
            attention_mask=torch.tensor(token_ids != 0).long(),
            token_type_ids=torch.tensor(segment_ids),
        )
    name = HERE / f"bert-{kerasattn.__version__}"
    model.save(name.with_name(name.name + ".keras"))
    numbers = {
        "token_ids": token_ids.tolist(),
        "segment_ids": segment_ids.tolist(),
        "mlm_logits": outputs.prediction_logits.numpy().round(5).tolist(),
        "nsp_logits": outputs.seq_relationship_logits.numpy().round(5).tolist(),
    }
    name.with_name(name.name + ".json").write_text(json.dumps(numbers) + "\n")


if __name__ == "__main__":
    main()
