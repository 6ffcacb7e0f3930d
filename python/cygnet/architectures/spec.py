"""ModelSpec: what a Transformer computes, as a few records of enums and numbers.

A family file turns a config into a ModelSpec; the engine and the NumPy reference run any ModelSpec. Nothing here knows a family, and nothing
that runs knows more of a model than its spec and its tensors, which carry these names (`{s}` is `encoder` or `decoder`, `{i}` the layer):

    {s}.embed.token.weight (V, E)     {s}.embed.position.weight (P, D)   {s}.embed.type.weight (types, D)
    {s}.embed.norm.{weight,bias}      {s}.embed.project.{weight,bias} (D, E)
    {s}.embed.patch.{weight,bias} (D, channels * patch * patch)          {s}.embed.class (D), or (n, D) where several such rows stand in front
    {s}.relative.weight (buckets, H)  relative bias of all layers        {s}.disentangled.weight (2 * span, D)  table of relative positions
    {s}.{i}.attention.{query,key,value,output}.{weight,bias}             {s}.{i}.attention.{query,key}_norm.{weight,bias}
    {s}.{i}.attention.position_{query,key}.{weight,bias}                 only where disentangled attention has projections of its own
    {s}.{i}.recurrent.{forget,input}.{weight,bias}                       instead of self-attention, where a layer mixes by SSRU
    {s}.{i}.cross.{query,key,value,output}.{weight,bias}                 keys and values are made from the encoder's output
    {s}.{i}.ffn.{up,gate,down}.{weight,bias}                             gate only where the feed-forward is gated
    {s}.{i}.ffn.router.weight (experts, D)   {s}.{i}.ffn.experts.{e}.{up,gate,down}.weight
    {s}.{i}.ffn.shared.{up,gate,down}.weight   {s}.{i}.ffn.shared_gate.weight (1, D)
    {s}.{i}.{attention,cross,ffn}_norm.{weight,bias}                     the norm of each sublayer, wherever placed
    {s}.{i}.{attention,ffn}_post_norm.{weight,bias}                      the second norm of sandwich placement
    {s}.convolution.{weight,bias} (D, size * D), first position first     {s}.convolution_norm.{weight,bias}
    {s}.final_norm.{weight,bias}      {s}.final_project.{weight,bias}
    head.{step}.{weight,bias}                                            one pair a step of HeadSpec.steps, of the head or of the pooler

Matrices are (out_features, in_features). A bias or norm bias that a file lacks is absent; everything else is required.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from cygnet.records import record


class ModelKind(Enum):
    ENCODER = "encoder"
    DECODER = "decoder"
    ENCODER_DECODER = "encoder-decoder"


class Task(Enum):
    """Which public class a checkpoint becomes."""

    CAUSAL_LM = "causal-lm"
    SEQ2SEQ = "seq2seq"
    HIDDEN_STATES = "hidden-states"  # of both sides of an encoder-decoder without a head
    ENCODER = "encoder"
    SEQUENCE_CLASSIFICATION = "sequence-classification"
    TOKEN_CLASSIFICATION = "token-classification"
    QUESTION_ANSWERING = "question-answering"
    MASKED_LM = "masked-lm"
    IMAGE_CLASSIFICATION = "image-classification"
    REPLACED_TOKEN_DETECTION = "replaced-token-detection"  # one logit a token (ELECTRA's discriminator)


class NormKind(Enum):
    LAYER = "layer"  # (x - mean) / sqrt(var + eps) * weight + bias
    RMS = "rms"  # x / sqrt(mean(x^2) + eps) * weight


class Placement(Enum):
    """Where a layer's norms stand; f is a sublayer (attention, cross-attention, feed-forward)."""

    PRE = "pre"  # x + f(norm(x))
    POST = "post"  # norm(x + f(x))
    SANDWICH = "sandwich"  # x + post_norm(f(norm(x)))
    OUTPUT = "output"  # x + norm(f(x))
    PARALLEL = "parallel"  # x + attention(norm(x)) + ffn(norm(x))
    NORMED = "normed"  # norm(x) + f(norm(x))
    PARALLEL_SPLIT = "parallel-split"  # x + attention(attention_norm(x)) + ffn(ffn_norm(x))


class Mixing(Enum):
    """How the first sublayer of a layer mixes positions."""

    ATTENTION = "attention"
    SSRU = "ssru"  # c_t = f_t c_(t-1) + (1 - f_t) input(x_t), f_t = sigmoid(forget(x_t)); relu(c_t) (Kim et al. 2019)


class Activation(Enum):
    """The order of csrc/cyg_kernels.h: enum cyg_activation."""

    IDENTITY = 0
    RELU = 1
    GELU = 2
    GELU_TANH = 3
    GELU_QUICK = 4
    SILU = 5
    TANH = 6
    SIGMOID = 7
    RELU2 = 8


class Mask(Enum):
    CAUSAL = "causal"
    BIDIRECTIONAL = "bidirectional"


class QKNorm(Enum):
    """What the norm of queries and keys runs over, before positions are applied."""

    NONE = "none"
    HEAD = "head"  # each head by itself; weight (D,) or (heads, D)
    FULL = "full"  # the whole projected vector


class PositionTable(Enum):
    """Positions added to the embeddings; sinusoidal tables are made at load and are then a table like a learned one."""

    NONE = "none"
    LEARNED = "learned"
    SINUSOIDAL = "sinusoidal"  # even columns sine, odd columns cosine (2017)
    SINUSOIDAL_HALVES = "sinusoidal-halves"  # sines first, then cosines, frequencies 10000^(-2i/d) (Marian, Pegasus)
    SINUSOIDAL_FAIRSEQ = "sinusoidal-fairseq"  # sines first, then cosines, spacing d/2 - 1, padding row zero (M2M-100)


class Pool(Enum):
    """Which rows of the last hidden states a head sees."""

    ALL = "all"
    FIRST = "first"
    LAST = "last"
    MEAN = "mean"
    FIRST_AND_MEAN = "first-and-mean"  # the first row and the mean of the others side by side (DINOv2)


@record
class NormSpec:
    kind: NormKind
    eps: float


@record
class RopeScaling:
    """Scaling of rotary frequencies; fields that a kind does not use stay None."""

    kind: str  # "linear", "dynamic", "llama3", "yarn", "longrope"
    factor: float | None = None
    original_max_positions: int | None = None
    low_freq_factor: float | None = None
    high_freq_factor: float | None = None
    beta_fast: float | None = None
    beta_slow: float | None = None
    attention_factor: float | None = None
    mscale: float | None = None
    mscale_all_dim: float | None = None
    truncate: bool = True
    short_factor: tuple[float, ...] | None = None
    long_factor: tuple[float, ...] | None = None


@record
class Rotary:
    """Rotary positions (Su et al. 2021) on the first `dim` elements of each head."""

    dim: int
    theta: float = 10000.0
    interleaved: bool = False  # pairs (2i, 2i + 1) instead of (i, i + dim / 2)
    scaling: RopeScaling | None = None
    max_positions: int = 2048


@record
class Alibi:
    """slope[h] * key position added to the scores (Press et al. 2022)."""

    slopes: tuple[float, ...]
    scaled: bool = False  # multiplied by the attention scale as the scores are (Falcon)
    bfloat16: bool = False  # slope and slope * position rounded to bfloat16 (Falcon)


@record
class Relative:
    """A learned bias per head and bucket of (key position - query position) (T5)."""

    buckets: int
    max_distance: int
    bidirectional: bool
    layer: int | None = None  # the table of this layer alone: {s}.{layer}.relative.weight (UMT5)


@record
class Disentangled:
    """Content-to-position and position-to-content scores (He et al. 2021)."""

    span: int  # relative positions are clamped to [-span, span)
    buckets: int  # log buckets on each side, 0 for plain distances
    max_relative_positions: int
    content_to_position: bool = True
    position_to_content: bool = True
    shared_projection: bool = True  # positions go through the content's own key and query projections


@record
class AttentionSpec:
    heads: int
    kv_heads: int
    head_dim: int
    scale: float
    mask: Mask
    window: int | None = None  # |query - key| < window
    positions: Rotary | Alibi | Relative | Disentangled | None = None
    qk_norm: QKNorm = QKNorm.NONE
    qk_norm_spec: NormSpec | None = None
    qk_norm_last: bool = False  # the norm of each head comes behind the rotary positions (HunYuan)
    softcap: float | None = None
    clip_qkv: float | None = None  # queries, keys and values clamped to [-clip, clip], behind a norm of the whole vector


@record
class ExpertsSpec:
    count: int
    top_k: int
    hidden_size: int
    renormalize: bool  # the chosen experts' softmax weights are divided by their sum
    shared_hidden_size: int = 0  # an expert that every token passes
    shared_gate: bool = False  # its output times sigmoid(shared_gate . x)


@record
class FeedForwardSpec:
    hidden_size: int
    activation: Activation
    gated: bool = False  # down(f(gate(x)) * up(x)) instead of down(f(up(x)))
    experts: ExpertsSpec | None = None


@record
class LayerSpec:
    attention: AttentionSpec
    ffn: FeedForwardSpec
    norm: NormSpec
    placement: Placement
    cross: AttentionSpec | None = None
    mixing: Mixing = Mixing.ATTENTION  # SSRU: `attention` is one head as wide as the model, whose cached row holds the state c_t
    attention_norm: bool = True  # False: the first norm is absent (ModernBERT's first layer)
    residual_scale: float = 1.0  # each sublayer's output is multiplied by it


@record
class PositionSpec:
    kind: PositionTable
    count: int  # rows of the table
    offset: int = 0  # row of position 0
    padding_id: int | None = None  # not None: positions count tokens that differ from it; such a token itself has row `padding_row`
    padding_row: int = 0


@record
class PatchSpec:
    """Images (channels, height, width) cut into square patches, row by row; a class token, or several rows, stand in front."""

    image_size: int
    patch_size: int
    channels: int
    front: int = 1


@record
class EmbeddingSpec:
    """token * scale [+ position] [+ type] [-> norm] [-> project]."""

    vocab_size: int
    width: int  # E; a projection to hidden_size follows where it differs
    scale: float = 1.0
    positions: PositionSpec | None = None
    type_count: int = 0
    norm: NormSpec | None = None
    patches: PatchSpec | None = None
    project: bool = False
    positions_after_project: bool = False  # positions come last, behind norm and projection (OPT, Blenderbot-small)


@record
class ConvolutionSpec:
    """Behind the first layer: norm(x + activation(convolution of the embeddings over positions, zeros beyond both ends)) (DeBERTa v2)."""

    size: int  # positions that one output sees; odd
    activation: Activation
    norm: NormSpec


@record
class StackSpec:
    hidden_size: int
    embedding: EmbeddingSpec
    layers: tuple[LayerSpec, ...]
    final_norm: NormSpec | None
    weight_layers: tuple[int, ...] | None = None  # layer i runs the weights of layer weight_layers[i] (ALBERT); None: its own
    final_project: bool = False  # OPT's project_out
    convolution: ConvolutionSpec | None = None
    shared_embedding: bool = False  # the decoder reads the encoder's token embedding


@record
class HeadStep:
    """One affine map (`features` outputs) with an activation, or a norm, of a head; `name` leads to head.{name}.weight."""

    name: str
    features: int = 0
    activation: Activation = Activation.IDENTITY
    norm: NormSpec | None = None
    tied: bool = False  # the weight is the token embedding


@record
class HeadSpec:
    pool: Pool
    steps: tuple[HeadStep, ...]
    scale: float = 1.0  # logits are multiplied by it
    softcap: float | None = None
    pool_outputs: bool = False  # the pool is taken of the outputs instead of the hidden states
    hidden_scale: float = 1.0  # hidden states are multiplied by it before the first step (T5)


@record
class TokenIds:
    """Control tokens from generation_config.json, config.json or GGUF metadata, in that order of precedence."""

    bos: int | None = None
    eos: tuple[int, ...] = ()
    pad: int | None = None
    decoder_start: int | None = None
    forced_bos: int | None = None
    forced_eos: int | None = None
    suppress: tuple[int, ...] = ()


@record
class ModelSpec:
    family: str
    kind: ModelKind
    task: Task
    hidden_size: int
    vocab_size: int
    max_positions: int | None  # longest sequence the positions allow; None: unlimited
    encoder: StackSpec | None = None
    decoder: StackSpec | None = None
    head: HeadSpec | None = None
    pooler: HeadSpec | None = None  # a pooled vector beside the hidden states of a bare encoder
    tokens: TokenIds = field(default_factory=TokenIds)
    starts_with_last: bool = False  # where the decoder reads the text itself, the text's last token comes first (mBART), not the start token
    labels: tuple[str, ...] = ()  # names of a classifier's outputs
