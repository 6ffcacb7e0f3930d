"""Small models with random weights from a fixed seed, made from a spec alone: what the engine's own tests run on."""

import dataclasses

import numpy as np

from cygnet.architectures.inventory import inventory
from cygnet.architectures.spec import (
    Activation,
    AttentionSpec,
    EmbeddingSpec,
    FeedForwardSpec,
    HeadSpec,
    HeadStep,
    LayerSpec,
    Mask,
    ModelKind,
    ModelSpec,
    NormKind,
    NormSpec,
    Placement,
    Pool,
    PositionSpec,
    PositionTable,
    Rotary,
    StackSpec,
    Task,
)
from cygnet.architectures.transforms import Computed

VOCAB = 97


def stack(width=48, layers=2, heads=4, kv_heads=2, head_dim=16, mask=Mask.CAUSAL, cross=False, **changes):
    """A stack of gated blocks with rotary positions; `changes` go to the LayerSpec or to the AttentionSpec, by name."""
    attention = AttentionSpec(heads, kv_heads, head_dim, head_dim**-0.5, mask, positions=Rotary(head_dim))
    norm = NormSpec(NormKind.RMS, 1e-5)
    layer = LayerSpec(attention, FeedForwardSpec(80, Activation.SILU, gated=True), norm, Placement.PRE)
    of_attention = {name: changes.pop(name) for name in list(changes) if name in {f.name for f in dataclasses.fields(AttentionSpec)}}
    layer = dataclasses.replace(layer, attention=dataclasses.replace(attention, **of_attention), **changes)
    if cross:
        layer = dataclasses.replace(layer, cross=dataclasses.replace(attention, positions=None, mask=Mask.BIDIRECTIONAL))
    return StackSpec(width, EmbeddingSpec(VOCAB, width), (layer,) * layers, norm)


def decoder(max_positions=4096, **changes):
    """A decoder-only language model."""
    made = stack(**changes)
    head = HeadSpec(Pool.ALL, (HeadStep("output", VOCAB, tied=True),))
    return ModelSpec("tiny", ModelKind.DECODER, Task.CAUSAL_LM, made.hidden_size, VOCAB, max_positions, decoder=made, head=head)


def encoder(**changes):
    """An encoder with learned positions and post-norm, as BERT has them."""
    made = stack(mask=Mask.BIDIRECTIONAL, placement=Placement.POST, **changes)
    norm = NormSpec(NormKind.LAYER, 1e-5)
    made = dataclasses.replace(
        made,
        layers=tuple(dataclasses.replace(layer, norm=norm) for layer in made.layers),
        embedding=EmbeddingSpec(VOCAB, made.hidden_size, positions=PositionSpec(PositionTable.LEARNED, 600), type_count=2, norm=norm),
        final_norm=None,
    )
    return ModelSpec("tiny", ModelKind.ENCODER, Task.ENCODER, made.hidden_size, VOCAB, 600, encoder=made)


def encoder_decoder(**changes):
    """An encoder-decoder model."""
    head = HeadSpec(Pool.ALL, (HeadStep("output", VOCAB),))
    left, right = stack(mask=Mask.BIDIRECTIONAL, **changes), stack(cross=True, **changes)
    return ModelSpec("tiny", ModelKind.ENCODER_DECODER, Task.SEQ2SEQ, left.hidden_size, VOCAB, 512, encoder=left, decoder=right, head=head)


def tensors(spec, seed=0):
    """Random views for every tensor of a spec."""
    random = np.random.RandomState(seed)
    made = {}
    for name, shape in inventory(spec).items():
        scale = shape[-1] ** -0.5 if len(shape) > 1 else 0.1
        values = (random.standard_normal(shape) * scale + ("norm.weight" in name)).astype(np.float32)
        made[name] = Computed(shape, lambda values=values: values)
    return made
