"""What every spec must satisfy before anything is allocated for it: errors in settings are found here, by name."""

from __future__ import annotations

import math
import re

from cygnet.architectures.spec import Mixing, Placement, PositionTable, Rotary
from cygnet.errors import UnsupportedModel

MAX_LAYERS, MAX_EXPERTS, MAX_HEADS, MAX_POSITIONS = 1024, 1024, 4096, 1 << 20
# Settings that count layers, experts or heads, in the spellings of all families.
COUNTS = {
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers"), MAX_LAYERS),
    **dict.fromkeys(("encoder_layers", "decoder_layers", "num_encoder_layers", "num_hidden_groups", "inner_group_num"), MAX_LAYERS),
    **dict.fromkeys(("enc-depth", "dec-depth"), MAX_LAYERS),
    **dict.fromkeys(("num_experts", "num_local_experts"), MAX_EXPERTS),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "nhead", "attention_heads", "transformer-heads"), MAX_HEADS),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads", "num_key_value_heads", "num_kv_heads"), MAX_HEADS),
}

# Settings without which nothing has a shape, and those that widths are divided by.
WIDTHS = ("hidden_size", "n_embd", "d_model", "dim", "vocab_size", "intermediate_size", "n_inner", "d_ff", "ffn_dim", "embedding_size")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads", "nhead")
HEAD_WIDTHS = {"head_dim", "d_kv", "kv_channels", "attention_head_size"}

EPSILON = re.compile(r"(.*_)?eps(ilon)?")


def check_numbers(config, name):
    """Raise UnsupportedModel where a number of layers, experts or heads, or what a norm adds to a variance, is no number or out of all proportion."""
    for key, most in COUNTS.items():
        value = config.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most):
            raise UnsupportedModel(f"config of {name}: {key} = {value!r} is not a number from 0 to {most}")
    for key in (*WIDTHS, *HEADS):
        value = config.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise UnsupportedModel(f"config of {name}: {key} = {value!r} is not a whole number of at least 1")
    width = next((key for key in ("hidden_size", "n_embd", "d_model") if config.get(key)), None)
    for key in HEADS:
        if width and (config.get(key) or 0) > config.get(width):
            raise UnsupportedModel(f"config of {name}: {width} = {config.get(width)} cannot be divided among {key} = {config.get(key)}")
    for key, value in config.items():
        if EPSILON.fullmatch(str(key)) and value is not None and not (type(value) in (int, float) and 0 <= value < math.inf):
            raise UnsupportedModel(f"config of {name}: {key} = {value!r} is not a number of at least 0")


def check_heads(settings):
    """Raise UnsupportedModel where a family that divides its width among the heads is given numbers that do not divide."""
    if HEAD_WIDTHS & settings.read:
        return
    width = next((key for key in ("hidden_size", "n_embd", "d_model") if key in settings.read and settings.get(key)), None)
    for key in HEADS:
        heads = settings.values_by_key.get(key) if key in settings.read else None
        if width and heads and settings.get(width) % heads:
            raise UnsupportedModel(f"config of {settings.name}: {width} = {settings.get(width)} cannot be divided among {key} = {heads}")


def check_spec(spec):
    """Raise UnsupportedModel where parts of a spec contradict each other."""
    for stack in (spec.encoder, spec.decoder):
        positions = stack.embedding.positions if stack else None
        if positions is not None and positions.kind is not PositionTable.LEARNED and positions.count > MAX_POSITIONS:
            raise UnsupportedModel(f"{spec.family}: a table of {positions.count} sinusoidal positions is too large (at most {MAX_POSITIONS})")
        if stack is not None and stack.convolution is not None and (stack is not spec.encoder or spec.decoder is not None or not stack.layers):
            raise UnsupportedModel(f"{spec.family}: a convolution stands behind the first layer of an encoder alone")
        for index, layer in enumerate(stack.layers if stack else ()):
            for attention in filter(None, (layer.attention, layer.cross)):
                _check_attention(spec.family, index, attention)
            if layer.mixing is Mixing.SSRU:
                _check_recurrent(spec, stack, layer, index)
            experts = layer.ffn.experts
            if experts is not None and not 1 <= experts.top_k <= experts.count:
                raise UnsupportedModel(f"{spec.family}, layer {index}: {experts.top_k} of {experts.count} experts cannot be chosen")


def _check_recurrent(spec, stack, layer, index):
    causal = stack is spec.decoder and layer.placement not in (Placement.PARALLEL, Placement.PARALLEL_SPLIT)
    if not causal or layer.attention.heads != 1 or layer.attention.head_dim != stack.hidden_size:
        raise UnsupportedModel(f"{spec.family}, layer {index}: a recurrent unit stands in sequential decoder layers and is as wide as the model")


def _check_attention(family, index, attention):
    where = f"{family}, layer {index}"
    if min(attention.heads, attention.kv_heads, attention.head_dim) < 1 or attention.heads % attention.kv_heads:
        counts = f"{attention.heads} heads, {attention.kv_heads} key/value heads of size {attention.head_dim}"
        raise UnsupportedModel(f"{where}: {counts} make no attention; heads must be a multiple of key/value heads")
    if attention.window is not None and attention.window < 1:
        raise UnsupportedModel(f"{where}: a window of {attention.window} lets a token see nothing")
    positions = attention.positions
    if isinstance(positions, Rotary) and (positions.dim % 2 or not 0 < positions.dim <= attention.head_dim):
        raise UnsupportedModel(f"{where}: rotary positions of {positions.dim} features do not fit heads of size {attention.head_dim}")
