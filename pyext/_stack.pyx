"""A stack of blocks with its embedding, built once from Weights and arrays; the C structures that a pass reads."""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free

from cygnet._core._attention_sublayer cimport Attention, Disentangled
from cygnet._core._block cimport Layer
from cygnet._core._feed_forward_sublayer cimport Experts, FeedForward
from cygnet._core._kernels cimport CYG_ATTENTION_ROWS, CYG_KEY_BLOCK
from cygnet._core._linear cimport Linear, Weight
from cygnet._core._pass cimport Norm
from cygnet._core._recurrent_sublayer cimport Recurrent

import numpy as np

PLACEMENTS = {"pre": 0, "post": 1, "sandwich": 2, "output": 3, "parallel": 4, "parallel-split": 5, "normed": 6}
NORMS = {"layer": 1, "rms": 2}
QK_NORMS = {"none": 0, "head": 1, "full": 2}


cdef class Stack:
    """Encoder or decoder layers over hidden states of `width`, their embedding and final norm.

    Built in order: embedding(), layer() for each layer, finish(), head(). Everything handed in is kept alive by the stack. `kv_slots` layers have a place
    of their own in the key/value blocks: all of them in a decoder, one that all layers use in turn in an encoder, which keeps nothing.
    """

    def __cinit__(self, int64_t width, int layer_limit, int kv_slots):
        self.layout.width = width
        self.layer_limit = layer_limit
        self.layout.layers = <Layer *>calloc(max(layer_limit, 1), sizeof(Layer))
        self.layout.cross = <Attention *>calloc(max(layer_limit, 1), sizeof(Attention))
        if self.layout.layers == NULL or self.layout.cross == NULL:
            raise MemoryError()
        self.kept = []
        self.pieces = []
        self.kv_slots = kv_slots
        self.layout.embed_scale = 1
        self.layout.qkv_width = self.layout.mixed_width = self.layout.wide_width = self.layout.code_width = width

    def __dealloc__(self):
        free(self.layout.layers)
        free(self.layout.cross)

    cdef void *_piece(self, size_t size) except NULL:
        """Zeroed memory that lives as long as the stack."""
        memory = bytearray(size)
        cdef char[::1] view = memory
        self.kept.append(memory)
        self.pieces.append(view)
        return &view[0]

    cdef const float *_floats(self, array) except? NULL:
        cdef const float[::1] view
        if array is None:
            return NULL
        flat = np.ascontiguousarray(array, np.float32).reshape(-1)
        if flat.size == 0:
            return NULL
        view = flat
        self.kept.append(flat)
        return &view[0]

    cdef Norm _norm(self, description) except *:
        """(kind, eps, weight, bias) or None."""
        cdef Norm norm
        norm.kind, norm.eps, norm.weight, norm.bias = 0, 0, NULL, NULL
        if description is not None:
            kind, eps, weight, bias = description
            norm.kind, norm.eps = NORMS[kind], eps
            norm.weight = self._floats(weight)
            norm.bias = self._floats(bias)
        return norm

    cdef const Linear *_parts(self, Weight weight):
        if weight is None:
            return NULL
        self.kept.append(weight)
        self.layout.code_width = max(self.layout.code_width, weight.k)
        return weight.parts

    def embedding(self, *, Weight tokens=None, float scale=1, positions=None, types=None, norm=None, Weight project=None,
                  bint positions_after_project=False):
        """Token, position and type tables; `positions` (P, D) and `types` (types, D) float32 or None."""
        self.layout.tokens = self._parts(tokens)
        self.layout.token_count = tokens.n if tokens is not None else 0
        self.layout.embed_width = tokens.k if tokens is not None else self.layout.width
        self.layout.embed_scale = scale
        self.layout.positions = self._floats(positions)
        self.layout.position_count = len(positions) if positions is not None else 0
        self.layout.types = self._floats(types)
        self.layout.type_count = len(types) if types is not None else 0
        self.layout.embed_norm = self._norm(norm)
        self.layout.embed_project = self._parts(project)
        self.layout.positions_after_project = positions_after_project

    def layer(self, *, str placement, float residual_scale, dict norms, dict attention, dict cross, dict ffn, Weight recurrent=None):
        """Appends a layer; see cygnet.engine for what the descriptions hold."""
        cdef Layer *layer = &self.layout.layers[self.layout.count]
        if self.layout.count >= self.layer_limit:
            raise IndexError("more layers than announced")
        layer.placement, layer.width, layer.residual_scale = PLACEMENTS[placement], self.layout.width, residual_scale
        layer.attention_norm = self._norm(norms.get("attention"))
        layer.attention_post_norm = self._norm(norms.get("attention_post"))
        layer.cross_norm = self._norm(norms.get("cross"))
        layer.ffn_norm = self._norm(norms.get("ffn"))
        layer.ffn_post_norm = self._norm(norms.get("ffn_post"))
        if recurrent is not None:
            layer.recurrent = self._recurrent(recurrent)
        else:
            self._attention(&layer.attention, attention, False)
        if cross is not None:
            self._attention(&self.layout.cross[self.layout.count], cross, True)
            layer.cross = &self.layout.cross[self.layout.count]
        self._feed_forward(&layer.ffn, ffn)
        self.layout.count += 1

    cdef int _attention(self, Attention *a, dict d, bint cross) except -1:
        cdef Weight qkv = d["qkv"], output = d["output"]
        a.cross = cross
        a.heads, a.kv_heads, a.head_dim, a.scale = d["heads"], d["kv_heads"], d["head_dim"], d["scale"]
        a.softcap, a.clip, a.causal, a.window = d.get("softcap") or 0, d.get("clip") or 0, d["causal"], d.get("window") or 0
        a.rope, a.bias = d.get("rope", -1), d.get("bias", -1)
        a.qk_norm = QK_NORMS[d.get("qk_norm", "none")]
        a.qk_norm_last = d.get("qk_norm_last", False)
        a.query_norm, a.key_norm = self._norm(d.get("query_norm")), self._norm(d.get("key_norm"))
        a.qk_norm_stride = d.get("qk_norm_stride", 0)
        a.qkv, a.qkv_parts, a.qkv_width = self._parts(qkv), qkv.count, qkv.n
        a.output = self._parts(output)
        if cross:
            a.kv_offset = self.layout.cross_elements
            self.layout.cross_elements += 2 * a.kv_heads * a.head_dim * CYG_KEY_BLOCK
        elif self.kv_slots:
            a.kv_offset = self._place(2 * a.kv_heads * a.head_dim)
        self.layout.qkv_width = max(self.layout.qkv_width, qkv.n)
        self.layout.mixed_width = max(self.layout.mixed_width, <int64_t>a.heads * a.head_dim)
        self.layout.part_width = max(self.layout.part_width, <int64_t>a.heads * (a.head_dim + 2))
        self.layout.key_heads = max(self.layout.key_heads, <int64_t>a.kv_heads)
        self.layout.room_width = max(self.layout.room_width, <int64_t>max(CYG_ATTENTION_ROWS, a.heads // a.kv_heads) * a.head_dim)
        if d.get("disentangled") is not None:
            a.disentangled = self._disentangled(d["disentangled"])
            self.layout.positional_width = max(self.layout.positional_width, a.heads * a.disentangled.rows)
            self.layout.positional_rows = max(self.layout.positional_rows, a.disentangled.rows)
        return 0

    cdef int64_t _place(self, int64_t width):
        """Where the layer's `width` elements a position begin in a block; layers without a place of their own share the first."""
        cdef int64_t place = self.layout.block_elements
        if self.layout.count >= self.kv_slots:
            return 0
        self.layout.block_elements += width * CYG_KEY_BLOCK
        return place

    cdef const Recurrent *_recurrent(self, Weight weight) except NULL:
        """Forget and input side by side; a state takes the room of a key and a value."""
        cdef Recurrent *made = <Recurrent *>self._piece(sizeof(Recurrent))
        made.parts, made.count, made.width = self._parts(weight), weight.count, self.layout.width
        made.offset = self._place(2 * made.width)
        self.layout.qkv_width = max(self.layout.qkv_width, weight.n)
        return made

    cdef const Disentangled *_disentangled(self, dict d) except NULL:
        cdef Disentangled *made = <Disentangled *>self._piece(sizeof(Disentangled))
        cdef const int32_t[::1] index
        made.rows = d["rows"]
        made.position_key = self._each(d["position_key"]) if d["position_key"] is not None else NULL
        made.position_query = self._each(d["position_query"]) if d["position_query"] is not None else NULL
        index = d["row_of"]
        made.row_of = &index[index.shape[0] // 2]
        self.kept.append(d["row_of"])
        return made

    cdef const Linear *_each(self, weights) except NULL:
        """The parts of several Weights side by side in memory."""
        cdef Weight weight
        cdef Linear *all_parts = <Linear *>self._piece(sum(weight.count for weight in weights) * sizeof(Linear))
        cdef int i = 0, j
        for weight in weights:
            self._parts(weight)
            for j in range(weight.count):
                all_parts[i] = weight.parts[j]
                i += 1
        return all_parts

    cdef int _feed_forward(self, FeedForward *f, dict d) except -1:
        cdef Weight up = d.get("up"), down = d.get("down"), part
        cdef Experts *experts
        f.activation, f.gated = d["activation"], d["gated"]
        if up is not None:
            f.width = down.k
            f.up, f.up_parts, f.down = self._parts(up), up.count, self._parts(down)
            self.layout.wide_width = max(self.layout.wide_width, up.n)
        if d.get("experts") is not None:
            e = d["experts"]
            experts = <Experts *>self._piece(sizeof(Experts))
            experts.count, experts.top_k, experts.renormalize = len(e["down"]), e["top_k"], e["renormalize"]
            part = e["down"][0]
            experts.width = part.k
            experts.router = self._parts(e["router"])
            experts.up, experts.down = self._each(e["up"]), self._each(e["down"])
            experts.shared_gate = self._parts(e.get("shared_gate"))
            f.experts = experts
            self.layout.expert_count = max(self.layout.expert_count, experts.count)
            self.layout.expert_top_k = max(self.layout.expert_top_k, experts.top_k)
            self.layout.expert_width = max(self.layout.expert_width, experts.width * (2 if f.gated else 1))
        return 0

    def finish(self, *, norm=None, Weight project=None):
        """The final norm, and a projection behind it."""
        self.layout.final_norm = self._norm(norm)
        self.layout.final_project = self._parts(project)
        self.layout.output_width = project.n if project is not None else self.layout.width

    def head(self, steps, float scale=1, softcap=None):
        """Steps of the head: (weight, activation, norm), weight None for a norm alone; `scale` and `softcap` of the last outputs."""
        cdef int i
        cdef Weight weight
        self.layout.head_count = len(steps)
        self.layout.head_steps = <HeadStep *>self._piece(max(len(steps), 1) * sizeof(HeadStep))
        self.layout.head_scale, self.layout.head_softcap = scale, softcap or 0
        width = self.layout.output_width
        for i, (weight, activation, norm) in enumerate(steps):
            self.layout.head_steps[i].weight = self._parts(weight)
            self.layout.head_steps[i].activation = activation
            self.layout.head_steps[i].norm = self._norm(norm)
            width = weight.n if weight is not None else width
            self.layout.head_steps[i].width = width
            if i + 1 < len(steps):
                self.layout.head_width = max(self.layout.head_width, width)
        self.layout.logit_count = width

    @property
    def width(self):
        """Hidden size."""
        return self.layout.width

    @property
    def count(self):
        """Layers."""
        return self.layout.count

    @property
    def output_width(self):
        """Features of the hidden states after the final norm and projection."""
        return self.layout.output_width

    @property
    def logit_count(self):
        """Outputs of the head."""
        return self.layout.logit_count

    @property
    def token_count(self):
        """Rows of the token embedding."""
        return self.layout.token_count
