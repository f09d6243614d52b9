"""Tiny models that transformers (PyTorch) made with unusual options, as it saves them.

Each loads by itself and gives the same numbers, or is refused by the name of the option. Skipped
where transformers is not installed: `pip install -e '.[peers]'`.
"""

import json
import re

import numpy as np
import pytest

import kerasattn

torch = pytest.importorskip("torch", reason="the extra [peers] installs PyTorch")
transformers = pytest.importorskip("transformers", reason="the extra [peers] installs transformers")

BERT = dict(vocab_size=31, hidden_size=16, num_hidden_layers=2, num_attention_heads=2)
BERT |= dict(intermediate_size=24, max_position_embeddings=20)
ROBERTA, NARROW = BERT | dict(pad_token_id=1), BERT | dict(embedding_size=8)
XLNET = dict(vocab_size=31, d_model=16, n_layer=2, n_head=2, d_inner=24)
GPT = dict(vocab_size=31, n_embd=16, n_layer=2, n_head=2, n_positions=20)
LLAMA = BERT | dict(num_attention_heads=4, max_position_embeddings=32)
LLAMA3 = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0)
LLAMA3 |= dict(high_freq_factor=4.0, original_max_position_embeddings=16)
T5 = dict(vocab_size=31, d_model=16, num_layers=2, num_heads=2, d_kv=8, d_ff=24)
T5 |= dict(decoder_start_token_id=0)
BART = dict(vocab_size=31, d_model=16, max_position_embeddings=20)
BART |= dict.fromkeys(("encoder_layers", "decoder_layers"), 2)
BART |= dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 2)
BART |= dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 24)

# Their class and its config.
CASES = [
    ("BertForMaskedLM", BERT | dict(hidden_act="gelu_new", type_vocab_size=1)),
    ("BertForMaskedLM", BERT | dict(hidden_act="mish", layer_norm_eps=1e-3, pad_token_id=3)),
    ("BertModel", BERT | dict(tie_word_embeddings=False)),
    ("BertLMHeadModel", BERT | dict(is_decoder=True, type_vocab_size=3)),
    ("BertForSequenceClassification", BERT | dict(num_labels=1)),
    ("RobertaForMaskedLM", ROBERTA | dict(hidden_act="gelu_fast")),
    ("RobertaForCausalLM", ROBERTA | dict(is_decoder=True)),
    ("XLMRobertaForSequenceClassification", ROBERTA | dict(num_labels=3)),
    ("ErnieForMaskedLM", BERT | dict(use_task_id=True, task_type_vocab_size=7)),
    ("ElectraForMaskedLM", NARROW | dict(embedding_size=32, hidden_act="silu")),
    ("ElectraForSequenceClassification", NARROW | dict(summary_type="mean")),
    ("AlbertForMaskedLM", NARROW | dict(num_hidden_groups=2, num_hidden_layers=3)),
    ("AlbertForMaskedLM", NARROW | dict(inner_group_num=2, hidden_act="relu")),
    ("DistilBertForMaskedLM", dict(vocab_size=31, dim=16, n_layers=2, n_heads=2, hidden_dim=24)
     | dict(max_position_embeddings=20, sinusoidal_pos_embds=True, activation="relu")),
    ("RoFormerForMaskedLM", NARROW | dict(rotary_value=True, type_vocab_size=1)),
    ("RoFormerForSequenceClassification", BERT | dict(num_labels=3, hidden_act="relu")),
    ("XLNetLMHeadModel", XLNET | dict(attn_type="uni", clamp_len=2, mem_len=5)),
    ("XLNetLMHeadModel", XLNET | dict(same_length=True, use_mems_eval=False)),
    ("XLNetForSequenceClassification", XLNET | dict(num_labels=3, ff_activation="relu")),
    ("OpenAIGPTLMHeadModel", GPT | dict(afn="silu", tie_word_embeddings=False)),
    ("GPT2LMHeadModel", GPT | dict(scale_attn_by_inverse_layer_idx=True, n_inner=20)
     | dict(reorder_and_upcast_attn=True)),
    ("GPT2LMHeadModel", GPT | dict(scale_attn_weights=False, tie_word_embeddings=False)),
    ("GPT2Model", GPT | dict(activation_function="relu")),
    ("LlamaForCausalLM", LLAMA | dict(num_key_value_heads=2, head_dim=6, attention_bias=True)),
    ("LlamaForCausalLM", LLAMA | dict(mlp_bias=True, tie_word_embeddings=True)),
    ("LlamaForCausalLM", LLAMA | dict(rope_parameters=LLAMA3, hidden_act="gelu_pytorch_tanh")),
    ("T5ForConditionalGeneration", T5 | dict(d_kv=5, num_decoder_layers=1)),
    ("T5ForConditionalGeneration", T5 | dict(feed_forward_proj="gated-silu")),
    ("T5ForConditionalGeneration", T5 | dict(tie_word_embeddings=False)),
    ("T5EncoderModel", T5 | dict(feed_forward_proj="gelu", relative_attention_num_buckets=8)
     | dict(relative_attention_max_distance=12)),
    ("MT5ForConditionalGeneration", T5),
    ("BartForConditionalGeneration", BART | dict(encoder_layers=1, decoder_attention_heads=8)
     | dict(decoder_ffn_dim=36, scale_embedding=True)),
    ("BartModel", BART | dict(activation_function="gelu_new", pad_token_id=3)),
]  # fmt: skip
# What is refused, and what the error says.
REFUSED = [
    ("BertForMaskedLM", BERT | dict(tie_word_embeddings=False), "tie_word_embeddings = False"),
    ("BertForMaskedLM", BERT | dict(hidden_act="relu2"), "hidden_act 'relu2'"),
    ("BertLMHeadModel", BERT | dict(is_decoder=True, add_cross_attention=True),
     "add_cross_attention"),
    ("XLNetLMHeadModel", XLNET | dict(bi_data=True), "bi_data = True"),
    ("XLNetLMHeadModel", XLNET | dict(attn_type="uni", same_length=True), "same_length = True"),
    ("XLNetForSequenceClassification", XLNET | dict(summary_type="mean"), "summary_type = 'mean'"),
    ("XLNetForSequenceClassification", XLNET | dict(summary_use_proj=False), "summary_use_proj"),
    ("GPT2LMHeadModel", GPT | dict(add_cross_attention=True), "add_cross_attention"),
    ("GPT2ForSequenceClassification", GPT | dict(pad_token_id=0), "score.weight"),
    ("LlamaForCausalLM", LLAMA | dict(rope_parameters=dict(rope_type="linear", factor=2.0)
     | dict(rope_theta=10000.0)), "kind 'linear'"),
    ("BartForSequenceClassification", BART, "classification_head"),
]  # fmt: skip


def made(name, config):
    """A model whose every weight is away from where it starts; RoFormer's sinusoids are none."""
    torch.manual_seed(0)
    cls = getattr(transformers, name)
    model = cls(cls.config_class(**config, attn_implementation="eager"))
    weights = dict(model.named_parameters())
    if name.startswith("RoFormer"):
        weights = {k: v for k, v in weights.items() if "embed_positions" not in k}
    weights |= {k: v for k, v in model.named_buffers() if k == "final_logits_bias"}
    with torch.no_grad():
        for weight in weights.values():
            weight.add_(0.2 * torch.randn_like(weight))
    model.tie_weights()
    return model.eval()


def named(row):
    """The class of a case and its options beside the sizes."""
    sizes = (31, 24, 20, 16)
    return re.sub(r"\W+", "-", f"{row[0]}-{[k for k, v in row[1].items() if v not in sizes][-3:]}")


@pytest.mark.parametrize("name, config", CASES, ids=map(named, CASES))
def test_options(name, config, tmp_path, same_outputs):
    twin = made(name, config)
    twin.save_pretrained(tmp_path)
    model = kerasattn.from_pretrained(tmp_path)
    causal = config.get("attn_type") == "uni"  # it takes no mask then
    same_outputs(model, twin, left=name.startswith("XLNetForSeq"), without_mask=causal)


@pytest.mark.parametrize("name, config, said", REFUSED, ids=map(named, REFUSED))
def test_refused(name, config, said, tmp_path):
    made(name, config).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=said):
        kerasattn.from_pretrained(tmp_path)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(
    "name, config", [("BertForMaskedLM", BERT), ("LlamaForCausalLM", LLAMA)], ids=["bert", "llama"]
)
def test_shards_of_half_precision(name, config, dtype, tmp_path, same_outputs):
    twin = made(name, config).to(getattr(torch, dtype))
    twin.save_pretrained(tmp_path, max_shard_size="5KB")
    assert (tmp_path / "model.safetensors.index.json").is_file()
    same_outputs(kerasattn.from_pretrained(tmp_path), twin.float())


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("family", ["T5", "MT5"])
def test_a_head_that_its_config_calls_tied(family, tied, tmp_path, same_outputs):
    """T5 1.1 and mT5 have a table of their own for it, and transformers 5 says "tied" of them."""
    name = f"{family}ForConditionalGeneration"
    twin = made(name, T5 | dict(tie_word_embeddings=tied))
    twin.lm_head.weight = torch.nn.Parameter(torch.randn(31, 16))
    twin.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["tie_word_embeddings"] is True
    twin = getattr(transformers, name).from_pretrained(tmp_path)
    model = kerasattn.from_pretrained(tmp_path)
    same_outputs(model, twin)

    model.save_pretrained(tmp_path / "again")  # and back
    same_outputs(model, getattr(transformers, name).from_pretrained(tmp_path / "again"))


@pytest.mark.parametrize(
    "name, config",
    [
        ("BartForConditionalGeneration", BART | dict(decoder_attention_heads=8)),
        ("GPT2LMHeadModel", GPT | dict(scale_attn_by_inverse_layer_idx=True)),
        ("LlamaForCausalLM", LLAMA | dict(num_key_value_heads=2, head_dim=6)),
        ("T5ForConditionalGeneration", T5 | dict(d_kv=5, num_decoder_layers=1)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_they_write_the_same(name, config, tmp_path):
    twin = made(name, config)
    twin.save_pretrained(tmp_path)
    model = kerasattn.from_pretrained(tmp_path)
    read = np.random.default_rng(1).integers(5, 31, (3, 6))
    given = dict(inputs=torch.tensor(read), attention_mask=torch.ones(3, 6, dtype=torch.long))
    twin.generation_config.update(eos_token_id=None, forced_eos_token_id=None, pad_token_id=0)
    expected = twin.generate(**given, max_new_tokens=5, do_sample=False, num_beams=1)
    expected = expected[:, 1 if hasattr(model, "shift_right") else 6 :].numpy()
    written = model.generate(read, None, 5, np.ones((3, 6), bool), end_id=None, jit=False)
    np.testing.assert_array_equal(written, expected)
