"""Settings that config.json may leave out because the reference's config class has them: those that the families themselves do not know better."""

BERT = dict(num_attention_heads=12, num_hidden_layers=12)
# model_type -> values of absent keys; null is a value of its own.
DEFAULTS = {
    **dict.fromkeys(("bert", "camembert", "data2vec-text", "deberta", "deit", "dinov2", "dinov2_with_registers", "ernie", "eurobert", "mpnet"), BERT),
    **dict.fromkeys(("opt", "roberta", "roberta-prelayernorm", "roformer", "vit", "xlm-roberta"), BERT),
    **dict.fromkeys(("cwm", "ministral", "mistral", "mixtral", "seed_oss"), dict(num_key_value_heads=8)),
    **dict.fromkeys(("ernie4_5", "glm", "glm4", "starcoder2"), dict(num_key_value_heads=2)),
    **dict.fromkeys(("exaone4", "qwen2", "qwen3", "stablelm"), dict(num_key_value_heads=32)),
    **dict.fromkeys(("gemma2", "gemma3_text"), dict(num_attention_heads=8, num_key_value_heads=4)),
    **dict.fromkeys(("mt5", "umt5"), dict(num_heads=6, num_layers=8)),
    "blenderbot": dict(encoder_layers=2, decoder_layers=24, encoder_attention_heads=32, decoder_attention_heads=32),
    "blenderbot-small": dict(encoder_layers=8, decoder_layers=8),
    "electra": dict(num_attention_heads=4, num_hidden_layers=12),
    "gemma": dict(num_attention_heads=16, num_key_value_heads=16),
    "gte": dict(BERT, type_vocab_size=1),
    "helium": dict(num_key_value_heads=20),
    "plbart": dict(encoder_layers=6, decoder_layers=6, encoder_attention_heads=12, decoder_attention_heads=12),
    "qwen2_moe": dict(num_attention_heads=16, num_key_value_heads=16, num_experts_per_tok=4),
    "qwen3_moe": dict(num_key_value_heads=4, num_experts_per_tok=8),
    "smollm3": dict(num_attention_heads=16, num_key_value_heads=4),
    "t5": dict(num_heads=8, num_layers=6),
}
