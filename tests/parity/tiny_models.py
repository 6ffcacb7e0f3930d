"""Random tiny models of every family: one row a model_type, made by transformers on the spot and saved as its files are.

A row is a list of variants (class name, settings of the config). Sizes are odd on purpose: widths that are no multiple of eight, one
key/value head, three heads, windows shorter than the texts.
"""

import json

import numpy as np
from tiny_more import MORE
from tiny_sizes import BOTH_ROPES, DEBERTA, ENCODER_HEADS, GPT, LLAMA3, LONGROPE, ODD, SEQ, SMALL, T5, WIDE, YARN, heads, rope

TINY = {
    "albert": [
        ("AlbertModel", dict(SMALL, embedding_size=12)),
        ("AlbertModel", dict(SMALL, embedding_size=24, num_hidden_layers=4, num_hidden_groups=2, inner_group_num=2)),
        *heads("Albert", dict(ODD, embedding_size=10), embedding_size=10)[1:],
    ],
    "bart": [
        *(("Bart" + name, dict(SEQ)) for name in ("Model", "ForSequenceClassification", "ForQuestionAnswering")),
        ("BartForConditionalGeneration", dict(SEQ)),
        ("BartForConditionalGeneration", dict(SEQ, scale_embedding=True, activation_function="relu", d_model=36)),
        ("BartForConditionalGeneration", dict(SEQ, tie_word_embeddings=False)),
    ],
    "bert": [
        *heads("Bert", SMALL),
        ("BertModel", dict(ODD, hidden_act="gelu_new", type_vocab_size=3, layer_norm_eps=1e-3)),
        ("BertForPreTraining", ODD),
    ],
    "blenderbot": [("BlenderbotForConditionalGeneration", dict(SEQ)), ("BlenderbotForConditionalGeneration", dict(SEQ, scale_embedding=True))],
    "bloom": [
        ("BloomForCausalLM", dict(vocab_size=61, hidden_size=24, n_layer=2, n_head=3)),
        ("BloomForCausalLM", dict(vocab_size=61, hidden_size=40, n_layer=1, n_head=5, layer_norm_epsilon=1e-3)),
        ("BloomForCausalLM", dict(vocab_size=61, hidden_size=36, n_layer=2, n_head=3, apply_residual_connection_post_layernorm=True)),
    ],
    "camembert": heads("Camembert", dict(SMALL, type_vocab_size=1)),
    "cohere": [
        ("CohereForCausalLM", dict(SMALL, num_key_value_heads=1)),
        ("CohereForCausalLM", dict(ODD, num_key_value_heads=2, use_qk_norm=True, logit_scale=0.3, attention_bias=True)),
    ],
    "cohere2": [("Cohere2ForCausalLM", dict(ODD, num_key_value_heads=2, sliding_window=4, sliding_window_pattern=2))],
    "deberta-v2": [
        ("DebertaV2Model", dict(DEBERTA, position_buckets=6, norm_rel_ebd="layer_norm", share_att_key=True, position_biased_input=False)),
        ("DebertaV2Model", dict(DEBERTA, pos_att_type=["c2p"], max_relative_positions=9)),
        ("DebertaV2Model", dict(DEBERTA, pos_att_type=["p2c"], share_att_key=True, type_vocab_size=2)),
        ("DebertaV2Model", dict(SMALL, relative_attention=False)),
        ("DebertaV2Model", dict(DEBERTA, position_buckets=6, share_att_key=True, conv_kernel_size=3, conv_act="gelu", type_vocab_size=2)),
        ("DebertaV2ForTokenClassification", dict(DEBERTA, conv_kernel_size=5, conv_groups=3, num_hidden_layers=1, num_labels=3)),
        *((f"DebertaV2{name}", dict(DEBERTA, position_buckets=6, share_att_key=True, num_labels=2)) for name in ENCODER_HEADS),
    ],
    "distilbert": [
        (f"DistilBert{name}", dict(vocab_size=61, dim=24, hidden_dim=40, n_layers=2, n_heads=3, max_position_embeddings=64, num_labels=2))
        for name in ("Model", *ENCODER_HEADS)
    ],
    "electra": [
        *heads("Electra", dict(SMALL, embedding_size=12), embedding_size=40),
        ("ElectraForPreTraining", dict(SMALL, embedding_size=12)),
        ("ElectraForMaskedLM", dict(SMALL, embedding_size=12)),
    ],
    "falcon": [
        ("FalconForCausalLM", dict(vocab_size=61, hidden_size=24, num_hidden_layers=2, num_attention_heads=3)),
        (
            "FalconForCausalLM",
            dict(vocab_size=61, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, num_kv_heads=3, new_decoder_architecture=True),
        ),
        (
            "FalconForCausalLM",
            dict(
                vocab_size=61,
                hidden_size=48,
                num_hidden_layers=1,
                num_attention_heads=6,
                num_kv_heads=2,
                new_decoder_architecture=True,
                num_ln_in_parallel_attn=1,
                bias=True,
            ),
        ),
        (
            "FalconForCausalLM",
            dict(vocab_size=61, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, multi_query=False, parallel_attn=False),
        ),
        (
            "FalconForCausalLM",
            dict(
                vocab_size=61,
                hidden_size=40,
                num_hidden_layers=2,
                num_attention_heads=5,
                multi_query=False,
                parallel_attn=False,
                alibi=True,
                bias=True,
            ),
        ),
    ],
    "gemma": [
        ("GemmaForCausalLM", dict(WIDE, num_key_value_heads=1)),
        ("GemmaForCausalLM", dict(ODD, head_dim=8, num_key_value_heads=2, attention_bias=True)),
    ],
    "gemma2": [
        ("Gemma2ForCausalLM", dict(WIDE, num_key_value_heads=1, sliding_window=3, query_pre_attn_scalar=10)),
        (
            "Gemma2ForCausalLM",
            dict(ODD, head_dim=6, num_key_value_heads=2, attn_logit_softcapping=2.0, final_logit_softcapping=3.0, sliding_window=5),
        ),
    ],
    "gemma3_text": [
        ("Gemma3ForCausalLM", dict(ODD, head_dim=8, num_key_value_heads=1, sliding_window=3, sliding_window_pattern=2, rope_parameters=BOTH_ROPES)),
        ("Gemma3ForCausalLM", dict(WIDE, num_key_value_heads=2, sliding_window=4, sliding_window_pattern=2, query_pre_attn_scalar=9)),
        ("Gemma3TextModel", dict(WIDE, num_key_value_heads=2, sliding_window=4, sliding_window_pattern=2, use_bidirectional_attention=True)),
    ],
    "gpt2": [
        ("GPT2LMHeadModel", dict(GPT)),
        ("GPT2LMHeadModel", dict(GPT, n_embd=20, n_head=2, n_inner=36, scale_attn_by_inverse_layer_idx=True, activation_function="relu")),
        ("GPT2LMHeadModel", dict(GPT, scale_attn_weights=False, tie_word_embeddings=False)),
        ("GPT2ForSequenceClassification", dict(GPT, num_labels=3)),
        ("GPT2Model", dict(GPT)),
    ],
    "gpt_bigcode": [
        ("GPTBigCodeForCausalLM", dict(GPT)),
        ("GPTBigCodeForCausalLM", dict(GPT, multi_query=False)),
    ],
    "gpt_neo": [
        (
            "GPTNeoForCausalLM",
            dict(
                vocab_size=61,
                hidden_size=24,
                num_layers=3,
                num_heads=3,
                attention_types=[[["global", "local", "local"], 1]],
                window_size=3,
                max_position_embeddings=64,
            ),
        )
    ],
    "gpt_neox": [
        ("GPTNeoXForCausalLM", dict(SMALL, **rope("default", partial_rotary_factor=0.5))),
        (
            "GPTNeoXForCausalLM",
            dict(ODD, use_parallel_residual=False, attention_bias=False, **rope("linear", 500.0, factor=2.0, partial_rotary_factor=1.0)),
        ),
    ],
    "gptj": [("GPTJForCausalLM", dict(GPT, rotary_dim=4)), ("GPTJForCausalLM", dict(GPT, n_embd=40, n_head=4, rotary_dim=10, n_inner=44))],
    "granite": [
        ("GraniteForCausalLM", dict(SMALL, num_key_value_heads=1)),
        (
            "GraniteForCausalLM",
            dict(
                ODD,
                num_key_value_heads=2,
                embedding_multiplier=3.0,
                residual_multiplier=0.4,
                attention_multiplier=0.2,
                logits_scaling=2.5,
                mlp_bias=True,
                attention_bias=True,
            ),
        ),
    ],
    "llama": [
        ("LlamaForCausalLM", dict(SMALL, num_key_value_heads=1)),
        ("LlamaForCausalLM", dict(ODD, num_key_value_heads=2, tie_word_embeddings=True, **LLAMA3)),
        ("LlamaForCausalLM", dict(WIDE, attention_bias=True, mlp_bias=True, **YARN)),
        ("LlamaForCausalLM", dict(ODD, **rope("dynamic", factor=2.5, partial_rotary_factor=1.0), max_position_embeddings=10)),
        (
            "LlamaForCausalLM",
            dict(ODD, **rope("yarn", 1000.0, factor=4.0, original_max_position_embeddings=16, attention_factor=1.3, truncate=False)),
        ),
        ("LlamaForCausalLM", dict(ODD, **rope("linear", 2e4, factor=3.0), hidden_act="gelu_pytorch_tanh")),
        ("LlamaForSequenceClassification", dict(SMALL, num_key_value_heads=3, num_labels=4, pad_token_id=0)),
        ("LlamaModel", dict(SMALL)),
    ],
    "m2m_100": [("M2M100ForConditionalGeneration", dict(SEQ)), ("M2M100ForConditionalGeneration", dict(SEQ, scale_embedding=False, d_model=36))],
    "marian": [
        ("MarianMTModel", dict(SEQ, pad_token_id=58, decoder_start_token_id=58, scale_embedding=True, activation_function="swish")),
        ("MarianMTModel", dict(SEQ, pad_token_id=58, decoder_start_token_id=58, decoder_vocab_size=67, share_encoder_decoder_embeddings=False)),
    ],
    "mbart": [
        *(("MBart" + name, dict(SEQ, num_labels=2)) for name in ("Model", "ForSequenceClassification", "ForQuestionAnswering")),
        ("MBartForConditionalGeneration", dict(SEQ, scale_embedding=True)),
        ("MBartForConditionalGeneration", dict(SEQ, d_model=36)),
    ],
    "mistral": [
        ("MistralForCausalLM", dict(SMALL, num_key_value_heads=1, sliding_window=3)),
        ("MistralForCausalLM", dict(WIDE, num_key_value_heads=2, sliding_window=None)),
    ],
    "mixtral": [
        ("MixtralForCausalLM", dict(SMALL, num_key_value_heads=1, num_local_experts=3, num_experts_per_tok=2)),
        ("MixtralForCausalLM", dict(ODD, num_key_value_heads=2, num_local_experts=5, num_experts_per_tok=1, sliding_window=4)),
    ],
    "modernbert": [
        ("ModernBertModel", dict(SMALL, local_attention=4, pad_token_id=0)),
        *(
            (f"ModernBert{name}", dict(ODD, local_attention=6, pad_token_id=0, num_labels=2, norm_bias=True, attention_bias=True, mlp_bias=True))
            for name in ENCODER_HEADS
        ),
        (
            "ModernBertForSequenceClassification",
            dict(SMALL, local_attention=7, pad_token_id=0, classifier_pooling="mean", classifier_bias=True, global_attn_every_n_layers=2),
        ),
    ],
    "mpnet": [*heads("MPNet", SMALL)],
    "mpt": [
        ("MptForCausalLM", dict(vocab_size=61, d_model=24, n_heads=3, n_layers=2, max_seq_len=64)),
        (
            "MptForCausalLM",
            dict(
                vocab_size=61,
                d_model=40,
                n_heads=5,
                n_layers=1,
                max_seq_len=64,
                attn_config={"clip_qkv": 0.7, "alibi_bias_max": 4, "softmax_scale": 0.3},
            ),
        ),
    ],
    "mt5": [
        ("MT5ForConditionalGeneration", dict(T5)),
        ("MT5ForConditionalGeneration", dict(T5, tie_word_embeddings=False, num_decoder_layers=1)),
    ],
    "nomic_bert": [
        ("NomicBertModel", dict(SMALL)),
        ("NomicBertForMaskedLM", dict(ODD)),
        ("NomicBertForSequenceClassification", dict(ODD, num_labels=3)),
    ],
    "olmo": [
        ("OlmoForCausalLM", dict(SMALL, num_key_value_heads=1)),
        ("OlmoForCausalLM", dict(ODD, clip_qkv=0.6, tie_word_embeddings=True)),
    ],
    "olmo2": [("Olmo2ForCausalLM", dict(SMALL, num_key_value_heads=1)), ("Olmo2ForCausalLM", dict(ODD, num_key_value_heads=2, attention_bias=True))],
    "opt": [
        (
            "OPTForCausalLM",
            dict(
                vocab_size=61,
                hidden_size=24,
                ffn_dim=40,
                num_hidden_layers=2,
                num_attention_heads=3,
                max_position_embeddings=64,
                word_embed_proj_dim=24,
            ),
        ),
        (
            "OPTForCausalLM",
            dict(
                vocab_size=61,
                hidden_size=24,
                ffn_dim=40,
                num_hidden_layers=2,
                num_attention_heads=3,
                max_position_embeddings=64,
                word_embed_proj_dim=10,
                do_layer_norm_before=False,
            ),
        ),
        (
            "OPTForCausalLM",
            dict(
                vocab_size=61,
                hidden_size=24,
                ffn_dim=40,
                num_hidden_layers=2,
                num_attention_heads=3,
                max_position_embeddings=64,
                word_embed_proj_dim=24,
                enable_bias=False,
                layer_norm_elementwise_affine=False,
            ),
        ),
    ],
    "pegasus": [("PegasusForConditionalGeneration", dict(SEQ)), ("PegasusForConditionalGeneration", dict(SEQ, scale_embedding=True, d_model=36))],
    "phi": [
        ("PhiForCausalLM", dict(SMALL, num_key_value_heads=1)),
        ("PhiForCausalLM", dict(ODD, qk_layernorm=True, **rope("default", partial_rotary_factor=0.4))),
    ],
    "phi3": [
        ("Phi3ForCausalLM", dict(SMALL, num_key_value_heads=1, pad_token_id=0, sliding_window=4)),
        ("Phi3ForCausalLM", dict(SMALL, num_key_value_heads=3, pad_token_id=0, **LONGROPE)),
        ("Phi3ForCausalLM", dict(ODD, num_key_value_heads=2, pad_token_id=0, tie_word_embeddings=True, **rope("default", partial_rotary_factor=0.6))),
    ],
    "qwen2": [
        ("Qwen2ForCausalLM", dict(SMALL, num_key_value_heads=1, tie_word_embeddings=True)),
        ("Qwen2ForCausalLM", dict(ODD, num_key_value_heads=2, use_sliding_window=True, sliding_window=3, max_window_layers=1)),
    ],
    "qwen2_moe": [
        (
            "Qwen2MoeForCausalLM",
            dict(SMALL, num_key_value_heads=1, num_experts=3, num_experts_per_tok=2, moe_intermediate_size=20, shared_expert_intermediate_size=28),
        ),
        (
            "Qwen2MoeForCausalLM",
            dict(
                ODD,
                num_key_value_heads=2,
                num_experts=4,
                num_experts_per_tok=3,
                moe_intermediate_size=12,
                shared_expert_intermediate_size=20,
                decoder_sparse_step=2,
                norm_topk_prob=True,
            ),
        ),
    ],
    "qwen3": [
        ("Qwen3ForCausalLM", dict(WIDE, num_key_value_heads=1, tie_word_embeddings=True)),
        ("Qwen3ForCausalLM", dict(ODD, head_dim=12, num_key_value_heads=2, attention_bias=True)),
        ("Qwen3ForSequenceClassification", dict(WIDE, num_key_value_heads=2, num_labels=2, pad_token_id=0)),
    ],
    "qwen3_moe": [
        ("Qwen3MoeForCausalLM", dict(WIDE, num_key_value_heads=1, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12)),
        (
            "Qwen3MoeForCausalLM",
            dict(
                WIDE,
                num_key_value_heads=2,
                num_experts=3,
                num_experts_per_tok=1,
                moe_intermediate_size=20,
                mlp_only_layers=[1],
                norm_topk_prob=True,
            ),
        ),
    ],
    "roberta": heads("Roberta", dict(SMALL, type_vocab_size=1), pad_token_id=3),
    "smollm3": [
        ("SmolLM3ForCausalLM", dict(SMALL, num_key_value_heads=1, no_rope_layers=[0, 1], pad_token_id=0)),
        ("SmolLM3ForCausalLM", dict(ODD, num_key_value_heads=2, no_rope_layer_interval=2, pad_token_id=0, use_sliding_window=True, sliding_window=4)),
    ],
    "stablelm": [
        ("StableLmForCausalLM", dict(SMALL, num_key_value_heads=1, **rope("default", partial_rotary_factor=0.5))),
        (
            "StableLmForCausalLM",
            dict(ODD, num_key_value_heads=2, qk_layernorm=True, use_parallel_residual=True, **rope("default", partial_rotary_factor=0.4)),
        ),
        ("StableLmForCausalLM", dict(ODD, num_key_value_heads=4, use_qkv_bias=True, **rope("default", partial_rotary_factor=0.4))),
    ],
    "starcoder2": [
        ("Starcoder2ForCausalLM", dict(SMALL, num_key_value_heads=1)),
        ("Starcoder2ForCausalLM", dict(ODD, num_key_value_heads=2, use_bias=False, sliding_window=4, tie_word_embeddings=False)),
    ],
    "t5": [
        ("T5ForConditionalGeneration", dict(T5)),
        ("T5ForConditionalGeneration", dict(T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False, num_decoder_layers=3)),
        ("T5ForConditionalGeneration", dict(T5, feed_forward_proj="gated-silu")),
        ("T5EncoderModel", dict(T5, feed_forward_proj="gelu")),
        *(
            ("T5" + name, dict(T5, decoder_start_token_id=0))
            for name in ("Model", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
        ),
    ],
    "vit": [
        (
            "ViTForImageClassification",
            dict(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3, image_size=12, patch_size=4, num_labels=5),
        ),
        (
            "ViTModel",
            dict(
                hidden_size=20,
                intermediate_size=28,
                num_hidden_layers=1,
                num_attention_heads=2,
                image_size=9,
                patch_size=3,
                num_channels=1,
                qkv_bias=False,
                hidden_act="gelu_new",
            ),
        ),
    ],
    "xlm-roberta": heads("XLMRoberta", dict(SMALL, type_vocab_size=1)),
} | MORE
# The only family that transformers does not have: its settings are written by hand.
TORCH = {
    "torch_transformer": [
        dict(src_vocab_size=50, tgt_vocab_size=61, d_model=24, nhead=3, num_encoder_layers=2, num_decoder_layers=1, dim_feedforward=40),
        dict(
            src_vocab_size=50,
            tgt_vocab_size=61,
            d_model=20,
            nhead=2,
            num_encoder_layers=1,
            num_decoder_layers=2,
            dim_feedforward=28,
            activation="gelu",
            norm_first=True,
            layer_norm_eps=1e-3,
        ),
        dict(src_vocab_size=50, tgt_vocab_size=61, d_model=12, nhead=1, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=8, bias=False),
    ]
}


def randomise(model, seed):
    """Noise in every parameter and saved buffer, so that each bias, norm weight and projection matters."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if "Sinusoidal" in type(model.get_submodule(name.rpartition(".")[0])).__name__:
                continue
            if parameter.ndim <= 1:
                parameter.add_(0.2 * noise)
            else:
                parameter.copy_(noise * (0.5 if "embed" in name or "wte" in name else 1.3 / parameter.shape[-1] ** 0.5))
        for name, buffer in model.named_buffers():
            if name == "final_logits_bias":
                buffer.copy_(0.3 * torch.randn(buffer.shape, generator=generator))
    if hasattr(model, "tie_weights"):
        model.tie_weights()


def make(class_name, settings, folder, dtype="float32", seed=0):
    """Save a random model of a transformers class in `folder`; returns it as loaded back, widened to float32."""
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    model_class = getattr(transformers, class_name)
    config = model_class.config_class(**settings)
    attention = "sdpa" if settings.get("alibi") else "eager"
    model = model_class._from_config(config, attn_implementation=attention, dtype=torch.float32).eval()
    randomise(model, seed)
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    return model_class.from_pretrained(folder, attn_implementation=attention, dtype=torch.float32).eval()


def make_torch_transformer(settings, folder, seed=0):
    """Save a random torch.nn.Transformer with its embeddings and generator; returns a function (ids, decoder ids) -> logits."""
    import torch

    torch.manual_seed(seed)
    width = settings["d_model"]
    own = {key: value for key, value in settings.items() if not key.endswith("_vocab_size")}
    parts = torch.nn.ModuleDict(
        {
            "src_embed": torch.nn.Embedding(settings["src_vocab_size"], width),
            "tgt_embed": torch.nn.Embedding(settings["tgt_vocab_size"], width),
            "transformer": torch.nn.Transformer(dropout=0.0, batch_first=True, **own),
            "generator": torch.nn.Linear(width, settings["tgt_vocab_size"]),
        }
    ).eval()
    randomise(parts, seed)
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(parts.state_dict(), folder / "model.pt")
    (folder / "config.json").write_text(json.dumps({"model_type": "torch_transformer", "bos_token_id": 1, "eos_token_id": 2, **settings}))

    def embed(name, ids):
        position = np.arange(len(ids))[:, None] / 10000 ** (np.arange(0, width, 2) / width)
        table = np.stack([np.sin(position), np.cos(position)], -1).reshape(len(ids), -1)[:, :width]
        return parts[name](torch.tensor([ids])) * width**0.5 + torch.from_numpy(table).float()

    def forward(ids, decoder_ids):
        causal = torch.triu(torch.ones(len(decoder_ids), len(decoder_ids), dtype=torch.bool), 1)
        with torch.no_grad():
            hidden = parts["transformer"](embed("src_embed", ids), embed("tgt_embed", decoder_ids), tgt_mask=causal)
            return parts["generator"](hidden)[0].numpy()

    return forward
