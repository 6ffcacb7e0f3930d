"""StarCoder2 (Lozhkov et al. 2024): LLaMA with LayerNorm, biases and a plain feed-forward."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES
from cygnet.architectures.families.llama import PREFIXES, assemble, attention_rows, attention_spec, layer_spec, norm_rows, windows
from cygnet.architectures.family import Family
from cygnet.architectures.spec import FeedForwardSpec, NormKind, NormSpec, Task
from cygnet.architectures.weights import Row


def build(config, source, task):
    config.refuse("mlp_type", "default")
    config.refuse("norm_type", "layer_norm")
    norm = NormSpec(NormKind.LAYER, config.first("norm_epsilon", "layer_norm_eps", default=1e-5))
    ffn = FeedForwardSpec(config["intermediate_size"], config.activation("hidden_act", "gelu_pytorch_tanh"))
    layers = [layer_spec(config, attention_spec(config, window=window), ffn=ffn, norm=norm) for window in windows(config)]
    bias = config.get("use_bias", True)
    rows = (
        *norm_rows(bias=True),
        *attention_rows(bias),
        Row("decoder.{i}.ffn.up", "layers.{i}.mlp.c_fc", bias=bias),
        Row("decoder.{i}.ffn.down", "layers.{i}.mlp.c_proj", bias=bias),
    )
    return assemble(config, source, task, layers, rows, family="starcoder2", tie_default=True)


# Written by the training framework beside the keys that count.
IGNORED = ("activation_function", "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "scale_attn_weights", "layer_norm_epsilon")
FAMILY = Family("starcoder2", build, CLASSES, Task.CAUSAL_LM, PREFIXES, IGNORED)
