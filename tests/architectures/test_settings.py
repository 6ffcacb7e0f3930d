"""Settings: what is read, ignored, refused; rotary parameters in all spellings; real configs of the best-known models."""

import math

import pytest
from small import BERT, LLAMA, build

from cygnet.architectures.config import Config, activation
from cygnet.architectures.spec import Activation, Mask, Placement, Rotary
from cygnet.architectures.tokens import labels
from cygnet.architectures.validate import check_numbers
from cygnet.errors import UnsupportedModel


def test_unknown_setting_with_a_value_is_refused_by_name():
    with pytest.raises(UnsupportedModel, match="query_key_layer_scaling = 2.5"):
        build({**LLAMA, "query_key_layer_scaling": 2.5})


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}])
def test_unknown_setting_that_switches_nothing_on_is_harmless(value):
    assert build({**LLAMA, "brand_new": value}) == build(LLAMA)


def test_unknown_settings_can_be_accepted():
    config = Config({"brand_new": 3}, "llama")
    config.finish(ignore_unknown=True)
    with pytest.raises(UnsupportedModel):
        config.finish()


@pytest.mark.parametrize(
    "extra",
    [
        {"attention_dropout": 0.1, "initializer_range": 0.02, "use_cache": True, "torch_dtype": "float16", "_name_or_path": "x"},
        {"transformers_version": "4.40.0", "max_length": 20, "num_beams": 4, "id2label": {"0": "A"}, "pretraining_tp": 2},
    ],
)
def test_bookkeeping_is_ignored(extra):
    assert build({**LLAMA, **extra}) == build(LLAMA)


@pytest.mark.parametrize("extra", [{"pruned_heads": {"0": [1]}}, {"use_mrope": True}, {"output_multiplier": 2.0}, {"logits_multiplier": 0.5}])
def test_near_names_of_bookkeeping_are_not_ignored(extra):
    with pytest.raises(UnsupportedModel, match=next(iter(extra))):
        build({**LLAMA, **extra})


@pytest.mark.parametrize("key", ["rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon"])
@pytest.mark.parametrize("value", ["x", -1, math.nan, math.inf, True, [1e-5]])
def test_what_a_norm_adds_is_a_number_of_at_least_0(key, value):
    with pytest.raises(UnsupportedModel, match=f"{key} = .* is not a number of at least 0"):
        check_numbers({**LLAMA, key: value}, "llama")
    check_numbers({**LLAMA, key: 0}, "llama")


def test_classes_have_names_of_their_own():
    assert labels({"id2label": {"0": "a", "2": "c"}, "num_labels": 3}) == ("a", "LABEL_1", "c")
    with pytest.raises(UnsupportedModel, match="two classes 'a'"):
        labels({"id2label": {"0": "a", "1": "a", "2": "b"}})
    with pytest.raises(UnsupportedModel, match="num_labels is 77"):
        labels({"id2label": {"0": "a", "1": "b"}, "num_labels": 77})


def test_quantised_checkpoints_of_other_tools_are_refused():
    with pytest.raises(UnsupportedModel, match="quantization_config"):
        build({**LLAMA, "quantization_config": {"quant_method": "gptq", "bits": 4}})


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("gelu", Activation.GELU),
        ("gelu_new", Activation.GELU_TANH),
        ("gelu_pytorch_tanh", Activation.GELU_TANH),
        ("gelu_fast", Activation.GELU_TANH),
        ("quick_gelu", Activation.GELU_QUICK),
        ("relu", Activation.RELU),
        ("silu", Activation.SILU),
        ("swish", Activation.SILU),
    ],
)
def test_activation_names(name, kind):
    assert activation(name) is kind
    assert build({**BERT, "hidden_act": name}).encoder.layers[0].ffn.activation is kind


def test_unknown_activation_is_refused():
    with pytest.raises(UnsupportedModel, match="hidden_act = 'gelu_9000'"):
        build({**BERT, "hidden_act": "gelu_9000"})


def gemma(**extra):
    return build({**LLAMA, "model_type": "gemma", "architectures": ["GemmaForCausalLM"], "head_dim": 4, **extra})


def test_first_gemma_configs_say_gelu_and_mean_tanh():
    for extra in ({"hidden_act": "gelu", "hidden_activation": None}, {"hidden_act": "gelu"}, {"hidden_activation": "gelu_pytorch_tanh"}, {}):
        assert gemma(**extra).decoder.layers[0].ffn.activation is Activation.GELU_TANH


def rotary_of(**extra):
    return build({**LLAMA, **extra}).decoder.layers[0].attention.positions


def test_theta_is_read_in_both_styles():
    assert rotary_of(rope_theta=5e5).theta == rotary_of(rope_parameters={"rope_theta": 5e5, "rope_type": "default"}).theta == 5e5
    assert rotary_of() == Rotary(4, 10000.0, max_positions=32)


LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}


def test_scaling_is_read_in_all_spellings():
    old = rotary_of(rope_theta=500.0, rope_scaling={"rope_type": "llama3", **LLAMA3})
    older = rotary_of(rope_theta=500.0, rope_scaling={"type": "llama3", **LLAMA3})
    new = rotary_of(rope_parameters={"rope_type": "llama3", "rope_theta": 500.0, **LLAMA3})
    assert old == older == new
    assert (old.scaling.kind, old.scaling.factor, old.scaling.original_max_positions) == ("llama3", 8.0, 16)


def test_original_length_defaults_to_the_models_own():
    assert rotary_of(rope_scaling={"type": "yarn", "factor": 2.0}).scaling.original_max_positions == 32


def test_partial_rotation_in_both_styles():
    assert rotary_of(partial_rotary_factor=0.5).dim == rotary_of(rope_parameters={"rope_theta": 1e4, "partial_rotary_factor": 0.5}).dim == 2


@pytest.mark.parametrize("scaling", [{"rope_type": "warp", "factor": 2.0}, {"type": "mrope", "mrope_section": [1, 1]}])
def test_unknown_scaling_is_refused(scaling):
    with pytest.raises(UnsupportedModel, match=next(value for value in scaling.values() if isinstance(value, str))):
        rotary_of(rope_scaling=scaling)


def test_unknown_or_missing_field_of_a_scaling_is_refused():
    with pytest.raises(UnsupportedModel, match="missing fields.*factor"):
        rotary_of(rope_scaling={"type": "linear"})
    with pytest.raises(UnsupportedModel, match="unknown fields.*twist"):
        rotary_of(rope_scaling={"type": "linear", "factor": 2.0, "twist": 3})


def test_head_size_stated_and_derived():
    stated = build({**LLAMA, "head_dim": 16}).decoder.layers[0].attention
    assert (stated.head_dim, stated.scale) == (16, 0.25)
    for extra in ({}, {"head_dim": None}):
        assert build({**LLAMA, **extra}).decoder.layers[0].attention.head_dim == 4
    full = {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"}
    assert build(full).decoder.layers[0].attention.kv_heads == 2


def windows(model_type, name, **extra):
    spec = build({**LLAMA, "num_hidden_layers": 4, "model_type": model_type, "architectures": [name], **extra})
    return [layer.attention.window for layer in spec.decoder.layers]


def test_windows_fall_on_the_right_layers():
    assert windows("qwen2", "Qwen2ForCausalLM", use_sliding_window=False, sliding_window=4, max_window_layers=1) == [None] * 4
    assert windows("qwen2", "Qwen2ForCausalLM", use_sliding_window=True, sliding_window=4, max_window_layers=3) == [None, None, None, 4]
    listed = ["sliding_attention", "full_attention", "full_attention", "sliding_attention"]
    assert windows("qwen2", "Qwen2ForCausalLM", use_sliding_window=True, sliding_window=4, layer_types=listed) == [4, None, None, 4]
    assert windows("gemma2", "Gemma2ForCausalLM", sliding_window=4) == [4, None, 4, None]
    assert windows("gemma3_text", "Gemma3ForCausalLM", sliding_window=4, sliding_window_pattern=3) == [4, 4, None, 4]
    assert windows("mistral", "MistralForCausalLM", sliding_window=5) == [5] * 4
    assert windows("mistral", "MistralForCausalLM", sliding_window=None) == [None] * 4
    assert windows("mistral", "MistralForCausalLM") == [4096] * 4


def test_layer_types_must_fit():
    for types in (["full_attention"], ["chunked_attention"] * 4):
        with pytest.raises(UnsupportedModel, match="layer_types"):
            windows("qwen2", "Qwen2ForCausalLM", use_sliding_window=True, layer_types=types)


def test_gemma2_caps_null_and_absent():
    config = {**LLAMA, "model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"], "query_pre_attn_scalar": 16, "head_dim": 8}
    off = build({**config, "attn_logit_softcapping": None, "final_logit_softcapping": None})
    assert off.decoder.layers[0].attention.softcap is None and off.head.softcap is None
    spec = build(config)
    assert (spec.decoder.layers[0].attention.softcap, spec.head.softcap, spec.decoder.layers[0].attention.scale) == (50.0, 30.0, 0.25)
    assert spec.decoder.layers[0].placement is Placement.SANDWICH and spec.decoder.embedding.scale == 8**0.5


@pytest.mark.parametrize("extra", [{"is_decoder": True}, {"add_cross_attention": True}, {"position_embedding_type": "relative_key"}])
def test_bert_settings_that_change_the_mathematics(extra):
    with pytest.raises(UnsupportedModel, match=next(iter(extra))):
        build({**BERT, **extra})


BART = dict(model_type="bart", architectures=["BartForConditionalGeneration"], vocab_size=20, d_model=8)
SIZES = dict(encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=8, decoder_ffn_dim=8)


@pytest.mark.parametrize("model_type", ["bart", "mbart", "pegasus", "marian", "m2m_100", "blenderbot"])
def test_optional_keys_of_bart_and_its_kin(model_type):
    """Norms, scale and positions follow from the model_type where a config says nothing."""
    spec = build({**BART, **SIZES, "model_type": model_type, "scale_embedding": True})
    embedding, layer = spec.encoder.embedding, spec.encoder.layers[0]
    assert embedding.scale == 8**0.5
    assert (embedding.norm is not None) == (model_type in ("bart", "mbart"))
    assert layer.placement is (Placement.POST if model_type in ("bart", "marian") else Placement.PRE)
    assert (spec.encoder.final_norm is None) == (model_type in ("bart", "marian"))
    offset = {"bart": 2, "mbart": 2, "m2m_100": 2}.get(model_type, 0)
    assert embedding.positions.offset == offset
    assert spec.decoder.layers[0].attention.mask is Mask.CAUSAL and spec.decoder.layers[0].cross.mask is Mask.BIDIRECTIONAL


def test_embedding_scale_of_bart_is_off_by_default():
    assert build({**BART, **SIZES}).decoder.embedding.scale == 1.0
    assert build({**BART, **SIZES, "model_type": "m2m_100"}).decoder.embedding.scale == 8**0.5


def t5(**extra):
    base = dict(model_type="t5", architectures=["T5ForConditionalGeneration"], vocab_size=20, d_model=16, d_ff=8, num_layers=1, num_heads=2, d_kv=4)
    return build({**base, **extra})


def test_t5_scales_only_the_first_version():
    assert t5().head.hidden_scale == 0.25
    assert t5(tie_word_embeddings=False).head.hidden_scale == 1.0
    assert t5(scale_decoder_outputs=False).head.hidden_scale == 1.0
    spec = t5()
    assert spec.encoder.layers[0].attention.scale == 1.0
    assert spec.encoder.layers[0].attention.positions.bidirectional and not spec.decoder.layers[0].attention.positions.bidirectional


def test_t5_feed_forward():
    gated = t5(feed_forward_proj="gated-gelu").encoder.layers[0].ffn
    assert gated.gated and gated.activation is Activation.GELU_TANH
    assert t5(feed_forward_proj="gelu").encoder.layers[0].ffn.activation is Activation.GELU
    assert not t5().encoder.layers[0].ffn.gated
    with pytest.raises(UnsupportedModel, match="twice-gated-relu"):
        t5(feed_forward_proj="twice-gated-relu")


def test_roberta_positions_start_behind_the_padding_id():
    config = {**BERT, "model_type": "roberta", "architectures": ["RobertaModel"], "max_position_embeddings": 514, "pad_token_id": 1}
    assert build(config).max_positions == 512
    spec = build({**config, "pad_token_id": 3})
    positions = spec.encoder.embedding.positions
    assert (spec.max_positions, positions.offset, positions.padding_id, positions.padding_row) == (510, 4, 3, 3)


# Keys that the configs of well-known checkpoints have beside those of their size.
HUB = {
    "bart": dict(
        add_bias_logits=False,
        classif_dropout=0.0,
        early_stopping=True,
        force_bos_token_to_be_generated=True,
        normalize_before=False,
        num_hidden_layers=12,
        output_past=True,
        prefix=" ",
        task_specific_params={"summarization": {"num_beams": 4}},
        length_penalty=2.0,
        max_length=142,
        _num_labels=3,
    ),
    "marian": dict(bad_words_ids=[[58100]], normalize_embedding=False, static_position_embeddings=True, num_beams=6, add_final_layer_norm=False),
    "pegasus": dict(extra_pos_embeddings=1, normalize_before=True, add_final_layer_norm=True, length_penalty=0.8),
}


@pytest.mark.parametrize("model_type", HUB)
def test_configs_of_well_known_seq2seq_models(model_type):
    build({**BART, **SIZES, "model_type": model_type, **HUB[model_type]})


def test_config_of_starcoder2():
    extra = dict(activation_function="gelu", attention_softmax_in_fp32=True, layer_norm_epsilon=1e-5, mlp_type="default", norm_type="layer_norm")
    config = {**LLAMA, "model_type": "starcoder2", "architectures": ["Starcoder2ForCausalLM"], "norm_epsilon": 1e-5, "use_bias": True, **extra}
    assert build(config).decoder.layers[0].ffn.activation is Activation.GELU_TANH


def test_config_of_the_first_nomic_files():
    config = dict(
        model_type="nomic_bert",
        architectures=["NomicBertModel"],
        vocab_size=20,
        n_embd=8,
        n_head=2,
        n_inner=12,
        n_layer=1,
        n_positions=8192,
        activation_function="swiglu",
        causal=False,
        dense_seq_output=True,
        fused_bias_fc=True,
        fused_dropout_add_ln=True,
        layer_norm_epsilon=1e-12,
        max_trained_positions=2048,
        pad_vocab_size_multiple=64,
        prenorm=False,
        rotary_emb_base=1000,
        rotary_emb_fraction=1.0,
        rotary_emb_interleaved=False,
        rotary_emb_scale_base=None,
        rotary_scaling_factor=None,
        scale_attn_weights=True,
        type_vocab_size=2,
        use_flash_attn=True,
        use_xentropy=True,
    )
    positions = build(config).encoder.layers[0].attention.positions
    assert (positions.theta, positions.scaling) == (1000.0, None)
    scaled = build({**config, "rotary_scaling_factor": 2}).encoder.layers[0].attention.positions
    assert (scaled.scaling.kind, scaled.scaling.factor, scaled.max_positions) == ("dynamic", 2.0, 2048)
    with pytest.raises(UnsupportedModel, match="prenorm"):
        build({**config, "prenorm": True})


def test_config_of_mpt():
    attention = dict(
        alibi=True, alibi_bias_max=8, attn_impl="torch", attn_pdrop=0, attn_type="multihead_attention", attn_uses_sequence_id=False, clip_qkv=None
    )
    config = dict(
        model_type="mpt",
        architectures=["MPTForCausalLM"],
        vocab_size=20,
        d_model=8,
        n_heads=2,
        n_layers=1,
        attn_config=attention,
        embedding_fraction=1.0,
        expansion_ratio=4,
        init_config={"name": "kaiming_normal_"},
        init_device="cpu",
        learned_pos_emb=True,
        logit_scale=None,
        no_bias=True,
        tokenizer_name="EleutherAI/gpt-neox-20b",
        norm_type="low_precision_layernorm",
        verbose=0,
    )
    assert build(config).decoder.layers[0].attention.positions.slopes == (2**-4, 2**-8)
    with pytest.raises(UnsupportedModel, match="qk_ln"):
        build({**config, "attn_config": {**attention, "qk_ln": True}})


def test_config_of_deberta_v3():
    extra = dict(
        relative_attention=True,
        position_buckets=256,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type="p2c|c2p",
        max_relative_positions=-1,
        position_biased_input=False,
        type_vocab_size=0,
        pooler_dropout=0,
        pooler_hidden_act="gelu",
        pooler_hidden_size=8,
        layer_norm_eps=1e-7,
    )
    spec = build({**BERT, "model_type": "deberta-v2", "architectures": ["DebertaV2Model"], **extra})
    positions = spec.encoder.layers[0].attention.positions
    assert positions.content_to_position and positions.position_to_content and positions.span == 256
    assert spec.max_positions is None
    assert spec.encoder.convolution is None
    with pytest.raises(UnsupportedModel, match="conv_kernel_size = 4"):
        build({**BERT, "model_type": "deberta-v2", "architectures": ["DebertaV2Model"], **extra, "conv_kernel_size": 4})
