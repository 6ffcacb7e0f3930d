"""GLM-4 (Zhipu AI 2024, 2025): LLaMA with half of each head rotated in neighbouring pairs, fused gate and up; the later one with four norms."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES
from cygnet.architectures.families.llama import PREFIXES, assemble, attention_rows, attention_spec, heads, layer_spec, norm_rows, rms
from cygnet.architectures.family import Family
from cygnet.architectures.rotary import rotary
from cygnet.architectures.spec import Placement, Task
from cygnet.architectures.transforms import part_of
from cygnet.architectures.weights import Row

FUSED_ROWS = (
    Row("decoder.{i}.ffn.gate", "layers.{i}.mlp.gate_up_proj", part_of(0, 2), bias=False),
    Row("decoder.{i}.ffn.up", "layers.{i}.mlp.gate_up_proj", part_of(1, 2), bias=False),
    Row("decoder.{i}.ffn.down", "layers.{i}.mlp.down_proj", bias=False),
)
POST_NORMS = (
    Row("decoder.{i}.attention_post_norm", "layers.{i}.post_self_attn_layernorm"),
    Row("decoder.{i}.ffn_post_norm", "layers.{i}.post_mlp_layernorm"),
)
HEAD_DIM = 128


def builder(name, placement):
    """Family.build; the norms behind the sublayers are the only difference."""

    def build(config, source, task):
        positions = rotary(config, heads(config, HEAD_DIM)[2], partial=0.5, interleaved=True)
        attention = attention_spec(config, head_dim=HEAD_DIM, positions=positions)
        layer = layer_spec(config, attention, norm=rms(config, 1.5625e-7), placement=placement)
        rows = (*norm_rows(), *POST_NORMS, *attention_rows(config.get("attention_bias", True), output_bias=False), *FUSED_ROWS)
        return assemble(config, source, task, [layer] * config["num_hidden_layers"], rows, family=name)

    return build


FAMILY = Family("glm", builder("glm", Placement.PRE), CLASSES, Task.CAUSAL_LM, PREFIXES)
GLM4 = Family("glm4", builder("glm4", Placement.SANDWICH), CLASSES, Task.CAUSAL_LM, PREFIXES)
