"""Sizes and settings that the tiny models share."""

SMALL = dict(vocab_size=61, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3, max_position_embeddings=64)
ODD = dict(vocab_size=53, hidden_size=40, intermediate_size=52, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=64)
WIDE = dict(vocab_size=70, hidden_size=20, intermediate_size=28, num_hidden_layers=2, num_attention_heads=2, head_dim=14, max_position_embeddings=64)
GPT = dict(vocab_size=61, n_embd=24, n_layer=2, n_head=3, n_positions=64)
SEQ = dict(
    vocab_size=59,
    d_model=24,
    encoder_layers=1,
    decoder_layers=2,
    encoder_attention_heads=3,
    decoder_attention_heads=2,
    encoder_ffn_dim=40,
    decoder_ffn_dim=52,
    max_position_embeddings=40,
)
T5 = dict(
    vocab_size=59, d_model=24, d_ff=40, num_layers=2, num_heads=3, d_kv=10, relative_attention_num_buckets=6, relative_attention_max_distance=11
)
DEBERTA = dict(SMALL, relative_attention=True, pos_att_type=["p2c", "c2p"])


def rope(kind, theta=10000.0, **fields):
    """rope_parameters of one kind."""
    return {"rope_parameters": {"rope_type": kind, "rope_theta": theta, **fields}}


LLAMA3 = rope("llama3", 500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
YARN = rope("yarn", 1000.0, factor=4.0, original_max_position_embeddings=16)
LONGROPE = dict(
    original_max_position_embeddings=16,
    **rope("longrope", short_factor=[1.0, 1.1, 1.3, 1.5], long_factor=[1.2, 2.0, 4.0, 7.0], original_max_position_embeddings=16),
)
BOTH_ROPES = {
    "full_attention": {"rope_type": "linear", "rope_theta": 1e5, "factor": 4.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 300.0},
}
ENCODER_HEADS = ("ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")


def heads(stem, settings, classes=ENCODER_HEADS, **more):
    """The bare model and each of its heads."""
    return [(stem + "Model", settings), *((stem + name, dict(ODD, num_labels=2 if "Question" in name else 3, **more)) for name in classes)]
