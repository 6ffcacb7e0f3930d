"""BART (Lewis et al. 2020) and its kin: mBART, PLBART, MVP, Marian, Pegasus, M2M-100, Blenderbot. They differ in norms and positions alone."""

from __future__ import annotations

from cygnet.architectures.family import Family
from cygnet.architectures.seq2seq import CLASSES, HEADS, embedding_rows, encoder_decoder, position_rows, token_names
from cygnet.architectures.spec import (
    AttentionSpec,
    EmbeddingSpec,
    FeedForwardSpec,
    LayerSpec,
    Mask,
    NormKind,
    NormSpec,
    Placement,
    PositionSpec,
    PositionTable,
    StackSpec,
    Task,
)
from cygnet.architectures.weights import Row
from cygnet.records import record

NORM = NormSpec(NormKind.LAYER, 1e-5)
PARTS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
ROWS = (
    Row("{s}.embed.norm", "{s}.layernorm_embedding"),
    *(Row(f"{{s}}.{{i}}.attention.{ours}", f"{{s}}.layers.{{i}}.self_attn.{theirs}") for ours, theirs in PARTS.items()),
    Row("{s}.{i}.attention_norm", "{s}.layers.{i}.self_attn_layer_norm"),
    *(Row(f"{{s}}.{{i}}.cross.{ours}", f"{{s}}.layers.{{i}}.encoder_attn.{theirs}") for ours, theirs in PARTS.items()),
    Row("{s}.{i}.cross_norm", "{s}.layers.{i}.encoder_attn_layer_norm"),
    Row("{s}.{i}.ffn.up", "{s}.layers.{i}.fc1"),
    Row("{s}.{i}.ffn.down", "{s}.layers.{i}.fc2"),
    Row("{s}.{i}.ffn_norm", "{s}.layers.{i}.final_layer_norm"),
    Row("{s}.final_norm", "{s}.layer_norm"),
)


@record
class Kind:
    """How one of them differs from BART."""

    name: str
    positions: PositionTable = PositionTable.LEARNED
    offset: int = 0  # row of position 0
    label_count: int = 2  # where the config names none
    starts_with_last: bool = False
    positions_last: bool = False  # the decoder's positions are added behind the norm of its embeddings, which are not scaled
    pre_norm: bool = False
    final_norm: bool = False
    embedding_norm: bool = False
    scale: bool = False  # scale_embedding where the config does not say
    activation: str = "gelu"


def positions_spec(config, kind):
    """Rows of the position table."""
    count = config.get("max_position_embeddings", 1024)
    if kind.positions is not PositionTable.SINUSOIDAL_FAIRSEQ:
        return PositionSpec(kind.positions, count + kind.offset, offset=kind.offset)
    padding = config.get("pad_token_id", 1)
    return PositionSpec(kind.positions, count + padding + 1, offset=padding + 1, padding_id=padding, padding_row=padding)


def stack_spec(config, kind, s, vocab_size, **fields):
    """Encoder or decoder."""
    width, heads = config["d_model"], config.get(f"{s}_attention_heads", 16)
    size = width // heads

    def attention(mask):
        return AttentionSpec(heads, heads, size, size**-0.5, mask)

    act = config.activation("activation_function", kind.activation)
    layer = LayerSpec(
        attention(Mask.CAUSAL if s == "decoder" else Mask.BIDIRECTIONAL),
        FeedForwardSpec(config.get(f"{s}_ffn_dim", 4096), act),
        NORM,
        Placement.PRE if kind.pre_norm else Placement.POST,
        cross=attention(Mask.BIDIRECTIONAL) if s == "decoder" else None,
    )
    last = kind.positions_last and s == "decoder"
    embedding = EmbeddingSpec(
        vocab_size,
        width,
        scale=width**0.5 if config.get("scale_embedding", kind.scale) and not last else 1.0,
        positions=positions_spec(config, kind),
        norm=NORM if kind.embedding_norm else None,
        positions_after_project=last,
    )
    layers = (layer,) * config.first(f"{s}_layers", "num_hidden_layers", default=12)
    return StackSpec(width, embedding, layers, NORM if kind.final_norm else None, **fields)


def builder(kind):
    """Family.build for one kind."""

    def build(config, source, task):
        config.refuse("use_prompt", False)
        vocab, target = config["vocab_size"], config.get("decoder_vocab_size", config["vocab_size"])
        reads, writes = token_names(source)
        decoder = stack_spec(config, kind, "decoder", target, shared_embedding=reads == writes)
        positions = decoder.embedding.positions
        return encoder_decoder(
            config,
            source,
            task,
            family=kind.name,
            encoder=stack_spec(config, kind, "encoder", vocab),
            decoder=decoder,
            rows=(*embedding_rows(reads, writes), *position_rows(source, positions), *ROWS),
            token_name=writes,
            max_positions=config.get("max_position_embeddings", 1024),
            label_count=kind.label_count,
            starts_with_last=kind.starts_with_last,
            bias="final_logits_bias" if "final_logits_bias" in source else False,
            ignored=(r".*\.embed_positions\.(weight|weights|_float_tensor)", r"shared\.weight", r"model\.shared\.weight"),
        )

    return build


# Described by older configs, decided by model_type.
IGNORED = (
    *("add_bias_logits", "add_final_layer_norm", "normalize_before", "normalize_embedding", "extra_pos_embeddings", "output_past"),
    *("force_bos_token_to_be_generated", "num_hidden_layers", "share_encoder_decoder_embeddings", "decoder_vocab_size", "activation_fn"),
    *("layernorm_variant", "max_encoder_position_embeddings", "do_blenderbot_90_layernorm", "encoder_no_repeat_ngram_size"),
    *("classif_dropout", "gradient_checkpointing", "prompt_length", "prompt_mid_dim"),
)


def family(classes=CLASSES, **kind):
    """A Family for one kind."""
    return Family(kind["name"], builder(Kind(**kind)), classes, Task.SEQ2SEQ, ("model.",), IGNORED)


WITH_HEADS = {**CLASSES, **HEADS}
FAMILY = family(name="bart", label_count=3, offset=2, embedding_norm=True, classes=WITH_HEADS)
MBART = family(name="mbart", starts_with_last=True, offset=2, embedding_norm=True, pre_norm=True, final_norm=True, classes=WITH_HEADS)
MVP = family(name="mvp", offset=2, embedding_norm=True, classes=WITH_HEADS)
LABELLED = {**CLASSES, "ForSequenceClassification": Task.SEQUENCE_CLASSIFICATION}
PLBART = family(name="plbart", starts_with_last=True, offset=2, embedding_norm=True, scale=True, classes=LABELLED)
MARIAN = family(name="marian", positions=PositionTable.SINUSOIDAL_HALVES, classes={**CLASSES, "MTModel": Task.SEQ2SEQ})
PEGASUS = family(name="pegasus", positions=PositionTable.SINUSOIDAL_HALVES, pre_norm=True, final_norm=True)
M2M_100 = family(name="m2m_100", positions=PositionTable.SINUSOIDAL_FAIRSEQ, pre_norm=True, final_norm=True, scale=True, activation="relu")
BLENDERBOT = family(name="blenderbot", pre_norm=True, final_norm=True)
BLENDERBOT_SMALL = family(name="blenderbot-small", embedding_norm=True, positions_last=True)
