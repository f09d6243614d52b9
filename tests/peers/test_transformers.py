"""What `save_pretrained` writes is read by transformers (PyTorch), and gives the same numbers.

Skipped where these are not installed: `pip install -e '.[peers]'`.
"""

import json

import numpy as np
import pytest

from kerasattn import models
from kerasattn.models.registry import MODELS

torch = pytest.importorskip("torch", reason="the extra [peers] installs PyTorch")
transformers = pytest.importorskip("transformers", reason="the extra [peers] installs transformers")

SIZES = dict(vocabulary_size=31, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=24)
PAIRS = SIZES | dict(num_decoder_layers=2)
PRETRAINING = dict(heads=("mlm", "nsp", "pooled"))
# Families that transformers does not know (any more), or that have a format of their own.
OTHERS = {"nezha", "transformer_xl", "roformer_v2", "mass", "univae", "elmo"}
RANDOM = np.random.default_rng(0)

# Our class, its options, and the class of theirs that must be found in the config.
CASES = [
    (models.BERT, PRETRAINING, "BertForPreTraining"),
    (models.BERT, dict(heads=("mlm",)), "BertForMaskedLM"),
    (models.BERT, dict(heads=("mlm",), application="lm"), "BertLMHeadModel"),
    (models.BERT, dict(heads=("pooled",)), "BertModel"),
    (models.BERT, dict(heads=("class",), num_classes=3), "BertForSequenceClassification"),
    (models.BERT, dict(heads=("token",), num_classes=3), "BertForTokenClassification"),
    (models.BERT, dict(heads=("span",)), "BertForQuestionAnswering"),
    (models.RoBERTa, dict(heads=("mlm",)), "RobertaForMaskedLM"),
    (models.RoBERTa, dict(heads=("class",), num_classes=3), "RobertaForSequenceClassification"),
    (models.ERNIE, dict(heads=("mlm",)), "ErnieForMaskedLM"),
    (models.ERNIE, dict(heads=("pooled",), use_tasks=True), "ErnieModel"),
    (models.DistilBERT, dict(heads=("mlm",)), "DistilBertForMaskedLM"),
    (models.ELECTRA, dict(heads=("mlm",), embedding_dim=8), "ElectraForMaskedLM"),
    (models.ELECTRA, dict(heads=("discriminator",)), "ElectraForPreTraining"),
    (models.ALBERT, dict(heads=("mlm", "sop", "pooled"), embedding_dim=8), "AlbertForPreTraining"),
    (models.RoFormer, dict(heads=("mlm",)), "RoFormerForMaskedLM"),
    (models.RoFormer, dict(heads=("mlm",), embedding_dim=8), "RoFormerForMaskedLM"),
    (models.XLNet, {}, "XLNetLMHeadModel"),
    (models.OpenAIGPT, dict(intermediate_dim=64), "OpenAIGPTLMHeadModel"),
    (models.GPT2, {}, "GPT2LMHeadModel"),
    (models.Llama, dict(num_key_value_heads=1), "LlamaForCausalLM"),
    (models.Llama, dict(tied_head=True), "LlamaForCausalLM"),
    (models.T5, {}, "T5ForConditionalGeneration"),
    (models.T5, dict(activation="relu", gated=False, tied_head=True), "T5ForConditionalGeneration"),
    (models.MT5, {}, "MT5ForConditionalGeneration"),
    (models.T5Encoder, {}, "T5EncoderModel"),
    (models.MT5Encoder, {}, "MT5EncoderModel"),
    (models.BART, {}, "BartForConditionalGeneration"),
]


def test_no_family_is_left_out():
    tried = {cls for cls, *_ in CASES}
    assert {name for name, cls in MODELS.items() if cls not in tried} == OTHERS


@pytest.mark.parametrize(
    "model_class, options, theirs", CASES, ids=[f"{t}-{i}" for i, (*_, t) in enumerate(CASES)]
)
def test_outputs_agree(model_class, options, theirs, tmp_path, same_outputs):
    pairs = issubclass(model_class, (models.T5, models.BART))
    model = model_class(**(PAIRS if pairs else SIZES) | options)
    for variable in model.trainable_variables:  # away from the start, where biases are zero
        noise = RANDOM.normal(size=variable.shape).astype("float32")
        variable.assign_add(0.2 * noise)
    model.save_pretrained(tmp_path)
    [architecture] = json.loads((tmp_path / "config.json").read_text())["architectures"]
    assert architecture == theirs
    twin, found = getattr(transformers, theirs).from_pretrained(
        tmp_path, output_loading_info=True, attn_implementation="eager"
    )
    assert not any(found.values()), found

    same_outputs(model, twin)
