"""What `save_pretrained` writes is read by transformers (PyTorch), and gives the same numbers.

Skipped where these are not installed: `pip install -e '.[peers]'`.
"""

import json

import numpy as np
import pytest
from keras import ops

from kerasattn import models
from kerasattn.models.registry import MODELS

torch = pytest.importorskip("torch", reason="the extra [peers] installs PyTorch")
transformers = pytest.importorskip("transformers", reason="the extra [peers] installs transformers")

SIZES = dict(vocabulary_size=31, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=24)
PAIRS = SIZES | dict(num_decoder_layers=2)
PRETRAINING = dict(heads=("mlm", "nsp", "pooled"))
# Families that transformers does not know (any more), or that have a format of their own.
OTHERS = {"nezha", "transformer_xl", "roformer_v2", "mass", "univae"}
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
OURS = {
    "last_hidden_state": "hidden",
    "pooler_output": "pooled",
    "prediction_logits": "mlm_logits",
    "seq_relationship_logits": "nsp_logits",
    "sop_logits": "sop_logits",
    "start_logits": "start_logits",
    "end_logits": "end_logits",
}


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def test_no_family_is_left_out():
    tried = {cls for cls, *_ in CASES}
    assert {name for name, cls in MODELS.items() if cls not in tried} == OTHERS


@pytest.mark.parametrize(
    "model_class, options, theirs", CASES, ids=[f"{t}-{i}" for i, (*_, t) in enumerate(CASES)]
)
def test_outputs_agree(model_class, options, theirs, tmp_path):
    reads_another = issubclass(model_class, (models.T5, models.BART))
    model = model_class(**(PAIRS if reads_another else SIZES) | options)
    for variable in model.trainable_variables:  # away from the start, where biases are zero
        value = array(variable.value)
        variable.assign(value + 0.2 * RANDOM.normal(size=value.shape).astype("float32"))
    model.save_pretrained(tmp_path)
    [architecture] = json.loads((tmp_path / "config.json").read_text())["architectures"]
    assert architecture == theirs
    twin, found = getattr(transformers, theirs).from_pretrained(
        tmp_path, output_loading_info=True, attn_implementation="eager"
    )
    assert not any(found.values()), found

    ids = RANDOM.integers(5, 31, (3, 9))
    real = np.ones((3, 9), bool)
    real[1, 6:] = real[2, 4:] = False
    ids[~real] = model.get_config()["pad_id"] or 0
    ours = {"token_ids": ids.astype("int32"), "padding_mask": real}
    given = {"input_ids": ids, "attention_mask": real.astype("int64")}
    if "segment_ids" in model._inputs_struct:
        last = model.get_config().get("num_segments", 2) - 1
        given["token_type_ids"] = last * (np.arange(9) > 3) + np.zeros_like(ids)
        ours["segment_ids"] = given["token_type_ids"].astype("int32")
    if reads_another:
        given["decoder_input_ids"] = RANDOM.integers(5, 31, (3, 7))
        ours["decoder_token_ids"] = given["decoder_input_ids"].astype("int32")
    with torch.no_grad():
        expected = twin.eval()(**{name: torch.tensor(x) for name, x in given.items()})
    outputs = model(ours)
    [logits] = [k for k in outputs if k.endswith("logits") and k not in OURS.values()] or [None]
    if reads_another:
        real = np.ones((3, 7), bool)
    compared = 0
    for name, value in expected.items():
        ours_of = OURS.get(name, logits if name == "logits" else None)
        if name == "logits" and ours_of is None:
            ours_of = "mlm_logits"
        if ours_of is None:
            continue
        actual, value = array(outputs[ours_of]), value.numpy()
        if actual.shape[:2] == real.shape:
            actual, value = actual[real], value[real]
        np.testing.assert_allclose(actual, value, rtol=0, atol=1e-4, err_msg=name)
        compared += 1
    assert compared
