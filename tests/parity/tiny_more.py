"""More rows of tiny models: families that came later; see tiny_models.py."""

from tiny_sizes import BOTH_ROPES, DEBERTA, ENCODER_HEADS, GPT, LLAMA3, ODD, SEQ, SMALL, T5, WIDE, heads, rope

OLMO3_ROPES = {
    "rope_parameters": {
        **BOTH_ROPES,
        "full_attention": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 16},
    }
}
EXPERTS = dict(num_local_experts=5, num_experts_per_tok=2)
GRANITE = dict(embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.2, logits_scaling=2.5)
CODEGEN = dict(vocab_size=61, n_embd=32, n_layer=2, n_head=4, n_positions=64, rotary_dim=4)
XGLM = dict(vocab_size=61, d_model=24, ffn_dim=40, num_layers=2, attention_heads=3, max_position_embeddings=64)

VISION = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, image_size=12, patch_size=4)

MORE = {
    "arcee": [
        ("ArceeForCausalLM", dict(SMALL, num_key_value_heads=1)),
        ("ArceeForCausalLM", dict(WIDE, attention_bias=True, mlp_bias=True, **LLAMA3)),
        ("ArceeForTokenClassification", dict(ODD, num_key_value_heads=2, hidden_act="gelu", num_labels=3)),
    ],
    "bert-generation": [
        ("BertGenerationEncoder", dict(SMALL)),
        ("BertGenerationEncoder", dict(ODD, hidden_act="gelu_new", layer_norm_eps=1e-3)),
    ],
    "biogpt": [
        ("BioGptForCausalLM", dict(SMALL)),
        ("BioGptForCausalLM", dict(ODD, scale_embedding=False, tie_word_embeddings=False, hidden_act="relu", layer_norm_eps=0.3)),
        ("BioGptForTokenClassification", dict(ODD, num_labels=3)),
        ("BioGptModel", dict(SMALL)),
    ],
    "blenderbot-small": [
        ("BlenderbotSmallForConditionalGeneration", dict(SEQ)),
        ("BlenderbotSmallForConditionalGeneration", dict(SEQ, d_model=36, scale_embedding=True, activation_function="relu")),
        ("BlenderbotSmallModel", dict(SEQ)),
    ],
    "codegen": [
        ("CodeGenForCausalLM", CODEGEN),
        ("CodeGenForCausalLM", dict(CODEGEN, n_embd=48, rotary_dim=12, n_inner=20, activation_function="relu")),
    ],
    "cwm": [
        ("CwmForCausalLM", dict(ODD, head_dim=12, num_key_value_heads=2, sliding_window=4)),
        ("CwmForCausalLM", dict(SMALL, head_dim=8, num_key_value_heads=1, sliding_window=3, layer_types=["sliding_attention", "full_attention"])),
    ],
    "data2vec-text": heads("Data2VecText", dict(SMALL, type_vocab_size=1)),
    "deberta": [
        ("DebertaModel", dict(DEBERTA)),
        ("DebertaModel", dict(DEBERTA, pos_att_type=["c2p"], max_relative_positions=9, type_vocab_size=2, position_biased_input=False)),
        ("DebertaModel", dict(DEBERTA, pos_att_type="p2c", hidden_act="relu")),
        ("DebertaModel", dict(SMALL, relative_attention=False)),
        *((f"Deberta{name}", dict(DEBERTA, num_labels=2)) for name in ENCODER_HEADS),
    ],
    "deit": [
        ("DeiTModel", dict(VISION, intermediate_size=40)),
        ("DeiTForImageClassification", dict(VISION, hidden_size=30, intermediate_size=28, patch_size=6, qkv_bias=False, num_labels=4)),
    ],
    "dinov2": [
        ("Dinov2Model", dict(VISION, mlp_ratio=2)),
        ("Dinov2ForImageClassification", dict(VISION, use_swiglu_ffn=True, num_labels=4, image_size=8)),
        ("Dinov2Model", dict(VISION, qkv_bias=False, use_mask_token=False, layer_norm_eps=1e-3, hidden_act="relu")),
    ],
    "dinov2_with_registers": [
        ("Dinov2WithRegistersModel", dict(VISION)),
        ("Dinov2WithRegistersModel", dict(VISION, num_register_tokens=1, use_swiglu_ffn=True)),
    ],
    "ernie": [*heads("Ernie", SMALL), ("ErnieModel", dict(ODD, use_task_id=True, task_type_vocab_size=4, type_vocab_size=3))],
    "ernie4_5": [
        ("Ernie4_5ForCausalLM", dict(SMALL, head_dim=8, num_key_value_heads=1)),
        ("Ernie4_5ForCausalLM", dict(ODD, head_dim=6, num_key_value_heads=2, use_bias=True, tie_word_embeddings=False)),
    ],
    "eurobert": [
        *heads("EuroBert", dict(SMALL, pad_token_id=0), ("ForMaskedLM", "ForTokenClassification"), pad_token_id=0, num_key_value_heads=2),
        *(
            (
                "EuroBertForSequenceClassification",
                dict(ODD, pad_token_id=0, num_labels=3, attention_bias=True, mlp_bias=True, classifier_pooling=pooling),
            )
            for pooling in ("bos", "mean", "late")
        ),
        ("EuroBertForMaskedLM", dict(WIDE, pad_token_id=0, mlp_bias=True)),
    ],
    "exaone4": [
        ("Exaone4ForCausalLM", dict(ODD, num_hidden_layers=4, num_key_value_heads=2, sliding_window=4, sliding_window_pattern=2)),
        ("Exaone4ForCausalLM", dict(SMALL, num_key_value_heads=1, sliding_window=None, layer_types=["full_attention"] * 2)),
        ("Exaone4ForQuestionAnswering", dict(ODD, num_key_value_heads=4, sliding_window=3)),
    ],
    "glm": [
        ("GlmForCausalLM", dict(SMALL, head_dim=8, num_key_value_heads=1, pad_token_id=0)),
        (
            "GlmForCausalLM",
            dict(ODD, head_dim=12, num_key_value_heads=2, pad_token_id=0, attention_bias=False, **rope("default", partial_rotary_factor=1.0)),
        ),
    ],
    "glm4": [
        ("Glm4ForCausalLM", dict(SMALL, head_dim=8, num_key_value_heads=1, pad_token_id=0)),
        ("Glm4ForSequenceClassification", dict(ODD, head_dim=12, num_key_value_heads=2, pad_token_id=0, attention_bias=False, num_labels=3)),
    ],
    "granitemoe": [
        ("GraniteMoeForCausalLM", dict(SMALL, num_key_value_heads=1, **EXPERTS, **GRANITE)),
        ("GraniteMoeForCausalLM", dict(ODD, num_key_value_heads=2, num_local_experts=3, num_experts_per_tok=3, attention_bias=True)),
    ],
    "granitemoeshared": [
        ("GraniteMoeSharedForCausalLM", dict(SMALL, num_key_value_heads=1, shared_intermediate_size=20, **EXPERTS, **GRANITE)),
        ("GraniteMoeSharedForCausalLM", dict(ODD, num_key_value_heads=2, shared_intermediate_size=0, **EXPERTS)),
    ],
    "gte": heads("Gte", SMALL, ENCODER_HEADS[:3]) + [("GteModel", dict(ODD, type_vocab_size=2, hidden_act="silu"))],
    "helium": [
        ("HeliumForCausalLM", dict(SMALL, head_dim=8, num_key_value_heads=1)),
        ("HeliumForCausalLM", dict(ODD, head_dim=10, num_key_value_heads=2, attention_bias=True, mlp_bias=True)),
    ],
    "hunyuan_v1_dense": [
        ("HunYuanDenseV1ForCausalLM", dict(SMALL, head_dim=10, num_key_value_heads=1)),
        ("HunYuanDenseV1ForCausalLM", dict(ODD, head_dim=8, num_key_value_heads=2, attention_bias=True, **rope("dynamic", alpha=1000.0, factor=1.0))),
        ("HunYuanDenseV1ForSequenceClassification", dict(ODD, head_dim=8, num_key_value_heads=4, pad_token_id=0, num_labels=3)),
    ],
    "megatron-bert": heads("MegatronBert", SMALL),
    "ministral": [
        ("MinistralForCausalLM", dict(SMALL, head_dim=8, num_key_value_heads=1, sliding_window=3)),
        ("MinistralForCausalLM", dict(WIDE, num_key_value_heads=2, sliding_window=4, layer_types=["full_attention", "sliding_attention"])),
    ],
    "mvp": [("MvpForConditionalGeneration", dict(SEQ)), ("MvpForSequenceClassification", dict(SEQ, d_model=36, num_labels=3))],
    "nemotron": [
        ("NemotronForCausalLM", dict(SMALL, num_key_value_heads=1)),
        ("NemotronForCausalLM", dict(WIDE, head_dim=12, num_key_value_heads=2, attention_bias=True, mlp_bias=True, norm_eps=1e-3, hidden_act="gelu")),
    ],
    "olmo3": [
        ("Olmo3ForCausalLM", dict(ODD, num_hidden_layers=4, num_key_value_heads=2, sliding_window=4, **OLMO3_ROPES)),
        ("Olmo3ForCausalLM", dict(SMALL, num_key_value_heads=1, sliding_window=3, attention_bias=True, tie_word_embeddings=True)),
    ],
    "olmoe": [
        ("OlmoeForCausalLM", dict(SMALL, num_key_value_heads=1, num_experts=5, num_experts_per_tok=2)),
        (
            "OlmoeForCausalLM",
            dict(ODD, num_key_value_heads=2, num_experts=3, num_experts_per_tok=2, norm_topk_prob=True, clip_qkv=0.7, attention_bias=True),
        ),
    ],
    "openai-gpt": [
        ("OpenAIGPTLMHeadModel", dict(GPT)),
        ("OpenAIGPTLMHeadModel", dict(GPT, n_embd=20, n_head=2, afn="relu", layer_norm_epsilon=1e-3)),
        ("OpenAIGPTModel", dict(GPT)),
    ],
    "persimmon": [
        ("PersimmonForCausalLM", dict(SMALL)),
        ("PersimmonForCausalLM", dict(ODD, qk_layernorm=False, hidden_act="gelu", **rope("linear", factor=3.0, partial_rotary_factor=0.4))),
        ("PersimmonForTokenClassification", dict(SMALL, num_labels=3)),
    ],
    "plbart": [
        ("PLBartForConditionalGeneration", dict(SEQ)),
        ("PLBartForConditionalGeneration", dict(SEQ, d_model=36, scale_embedding=False)),
        ("PLBartForSequenceClassification", dict(SEQ, num_labels=3)),
        ("PLBartModel", dict(SEQ)),
    ],
    "rembert": heads("RemBert", dict(SMALL, input_embedding_size=10, output_embedding_size=14), input_embedding_size=40, output_embedding_size=12),
    "roberta-prelayernorm": heads("RobertaPreLayerNorm", SMALL),
    "roformer": heads("RoFormer", dict(SMALL, embedding_size=12), embedding_size=40)
    + [("RoFormerForMaskedLM", dict(ODD, embedding_size=14, hidden_act="relu"))],
    "seed_oss": [
        ("SeedOssForCausalLM", dict(SMALL, head_dim=8, num_key_value_heads=1)),
        ("SeedOssForCausalLM", dict(WIDE, num_key_value_heads=2, attention_bias=False, attention_out_bias=True, mlp_bias=True)),
    ],
    "umt5": [
        ("UMT5ForConditionalGeneration", dict(T5)),
        ("UMT5ForConditionalGeneration", dict(T5, feed_forward_proj="relu", tie_word_embeddings=False, num_decoder_layers=3)),
        ("UMT5EncoderModel", dict(T5)),
        ("UMT5Model", dict(T5)),
        ("UMT5ForTokenClassification", dict(T5, num_labels=3)),
    ],
    "xlm-roberta-xl": heads("XLMRobertaXL", dict(SMALL, type_vocab_size=2)),
    "xglm": [("XGLMForCausalLM", XGLM), ("XGLMForCausalLM", dict(XGLM, d_model=36, scale_embedding=False, activation_function="relu"))],
}
