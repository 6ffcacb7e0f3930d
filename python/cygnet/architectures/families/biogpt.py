"""BioGPT (Luo et al. 2022) and XGLM (Lin et al. 2022): decoders of the fairseq school, scaled embeddings, positions from row 2, pre-norm."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES, decoder_only
from cygnet.architectures.family import Family
from cygnet.architectures.seq2seq import sinusoids
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
    Task,
)
from cygnet.architectures.transforms import made
from cygnet.architectures.weights import Row
from cygnet.records import record

OFFSET = 2
NORM = NormSpec(NormKind.LAYER, 1e-5)
AT = "layers.{i}."
PARTS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
ROWS = (
    Row("decoder.embed.token", "embed_tokens"),
    *(Row(f"decoder.{{i}}.attention.{ours}", f"{AT}self_attn.{theirs}") for ours, theirs in PARTS.items()),
    Row("decoder.{i}.attention_norm", AT + "self_attn_layer_norm"),
    Row("decoder.{i}.ffn.up", AT + "fc1"),
    Row("decoder.{i}.ffn.down", AT + "fc2"),
    Row("decoder.{i}.ffn_norm", AT + "final_layer_norm"),
    Row("decoder.final_norm", "layer_norm"),
)


@record
class Keys:
    """How one of them names its settings, and where its positions come from."""

    hidden: str
    heads: str
    layers: str
    inner: str
    act: str
    positions: PositionTable
    head: str


def builder(name, keys):
    """Family.build of one of them."""

    def build(config, source, task):
        config.refuse("add_cross_attention", False)
        config.refuse("is_decoder", True, False)
        hidden, heads, count = config[keys.hidden], config[keys.heads], config.get("max_position_embeddings", 1024)
        positions = PositionSpec(keys.positions, count + OFFSET, offset=OFFSET)
        attention = AttentionSpec(heads, heads, hidden // heads, (hidden // heads) ** -0.5, Mask.CAUSAL)
        ffn = FeedForwardSpec(config[keys.inner], config.activation(keys.act, "gelu"))
        scale = hidden**0.5 if config.get("scale_embedding", True) else 1.0
        learned = keys.positions is PositionTable.LEARNED
        table = Row("decoder.embed.position", "embed_positions") if learned else Row("decoder.embed.position", (), made(sinusoids(positions)))
        return decoder_only(
            config,
            source,
            task,
            family=name,
            embedding=EmbeddingSpec(config["vocab_size"], hidden, scale=scale, positions=positions),
            layers=[LayerSpec(attention, ffn, NORM, Placement.PRE)] * config[keys.layers],
            rows=(*ROWS, table),
            final_norm=NORM,
            hidden_size=hidden,
            tie_default=True,
            head_name=keys.head,
            max_positions=count,
            ignored=(r"embed_positions\.weights?", r"output_projection\.weight"),
        )

    return build


BIOGPT = Keys(
    "hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size", "hidden_act", PositionTable.LEARNED, "output_projection"
)
XGLM_KEYS = Keys("d_model", "attention_heads", "num_layers", "ffn_dim", "activation_function", PositionTable.SINUSOIDAL_FAIRSEQ, "lm_head")
FAMILY = Family("biogpt", builder("biogpt", BIOGPT), CLASSES, Task.CAUSAL_LM, ("biogpt.",), ("layer_norm_eps",))
XGLM = Family("xglm", builder("xglm", XGLM_KEYS), CLASSES, Task.CAUSAL_LM, ("model.",))
