"""GPT-NeoX and Pythia (Black et al. 2022, Biderman et al. 2023): two norms before parallel sublayers, partial rotary positions, fused heads."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES, decoder_only, token_embedding
from cygnet.architectures.family import Family
from cygnet.architectures.rotary import rotary
from cygnet.architectures.spec import AttentionSpec, FeedForwardSpec, LayerSpec, Mask, NormKind, NormSpec, Placement, Task
from cygnet.architectures.transforms import heads_of
from cygnet.architectures.weights import Row

ROWS = (
    Row("decoder.embed.token", "embed_in"),
    Row("decoder.{i}.attention_norm", "layers.{i}.input_layernorm"),
    Row("decoder.{i}.ffn_norm", "layers.{i}.post_attention_layernorm"),
    Row("decoder.{i}.ffn.up", "layers.{i}.mlp.dense_h_to_4h"),
    Row("decoder.{i}.ffn.down", "layers.{i}.mlp.dense_4h_to_h"),
    Row("decoder.final_norm", "final_layer_norm"),
)


def build(config, source, task):
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    size = hidden // heads
    norm = NormSpec(NormKind.LAYER, config.get("layer_norm_eps", 1e-5))
    positions = rotary(config, size, theta_keys=("rotary_emb_base", "rope_theta"), partial=0.25)
    attention = AttentionSpec(heads, heads, size, size**-0.5, Mask.CAUSAL, positions=positions)
    ffn = FeedForwardSpec(config.get("intermediate_size", 4 * hidden), config.activation("hidden_act", "gelu"))
    placement = Placement.PARALLEL_SPLIT if config.get("use_parallel_residual", True) else Placement.PRE
    bias = config.get("attention_bias", True)
    fused = [
        Row(f"decoder.{{i}}.attention.{name}", "layers.{i}.attention.query_key_value", heads_of(part * size, size, 3 * size), bias=bias)
        for part, name in enumerate(("query", "key", "value"))
    ]
    return decoder_only(
        config,
        source,
        task,
        family="gpt_neox",
        embedding=token_embedding(config),
        layers=[LayerSpec(attention, ffn, norm, placement)] * config["num_hidden_layers"],
        rows=(*ROWS, *fused, Row("decoder.{i}.attention.output", "layers.{i}.attention.dense", bias=bias)),
        final_norm=norm,
        hidden_size=hidden,
        tie_default=False,
        token_name="embed_in",
        head_name="embed_out",
        max_positions=config.get("max_position_embeddings", 2048),
        ignored=(r"layers\.\d+\.attention\.bias",),
    )


FAMILY = Family("gpt_neox", build, CLASSES, Task.CAUSAL_LM, ("gpt_neox.",))
