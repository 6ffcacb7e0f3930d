"""From a ModelSpec and its tensors to packed weights and stacks that the compiled forward pass runs.

Everything is planned first (which matrices stand side by side in one product, in which form, how many bytes); each has its place in one piece of
memory before a byte is read. Packing itself can then go on beside the interpreter, piece by piece; the stored bytes of each are let go of at once, so
that loading never holds a model twice.
"""

from __future__ import annotations

import numpy as np

from cygnet._core._linear import Arena, Weight, weight_bytes
from cygnet._core._packing import pack
from cygnet._core._stack import Stack
from cygnet.architectures.inventory import relative_name
from cygnet.architectures.spec import Alibi, Disentangled, Mask, Mixing, NormKind, Placement, PositionTable, QKNorm, Relative, Rotary
from cygnet.errors import OptionError, UnsupportedModel
from cygnet.formats.mapping import lies_in_file
from cygnet.records import record
from cygnet.reference.positions import deberta_buckets

WEIGHTS = ("auto", "float32", "float16", "bfloat16", "int8", "int4")
# Stored type -> the form that holds it without loss, or with the least: 5- and 6-bit blocks have no form of their own.
AS_STORED = {"F16": "float16", "BF16": "bfloat16", "Q4_0": "int4-symmetric", "Q4_1": "int4", "Q4_K": "int4"}
PLAIN = ("F32", "F64", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "BOOL", "F8_E4M3", "F8_E5M2")
MULTIPLIED_AS_STORED = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")
# Longest sequence of a model with disentangled attention, whose every query meets every key in a table of distances.
DISENTANGLED_REACH = 1 << 14
EIGHT_BIT_CODES = ("Q8_0", "Q5_0")  # blocks whose codes become 8-bit weights as they are
PIECE_BYTES = 32 << 20  # stored bytes that are packed before they are let go of


def weight_kind(dtype, option, role="block"):
    """The packed form of a matrix.

    Parameters
    ----------
    dtype : str
        Its stored type.
    option : str
        One of WEIGHTS.
    role : str
        "block", "table" (embeddings and output layers, which lose more by 4 bits than they gain) or "exact" (routers: always float32).

    Examples
    --------
    >>> weight_kind("Q4_1", "auto"), weight_kind("BF16", "int4", "table"), weight_kind("Q6_K", "auto")
    ('int4', 'int8', 'int8')
    """
    if role == "exact":
        return "float32"
    if option == "auto":
        if dtype in AS_STORED:
            return AS_STORED[dtype]
        return "float32" if dtype in PLAIN else "int8"
    return "int8" if option == "int4" and role == "table" else option


def spreads(dtypes, option, role):
    """Whether the 8-bit weights of a role lie in the Hadamard basis, where activations lose less to their rounding.

    One basis for all, as products share activations: the transform where everything becomes 8 bits here, the plain one where any codes stay as they
    are stored.

    Examples
    --------
    >>> spreads(["F32", "F16"], "int8", "block"), spreads(["Q8_0", "F32"], "int8", "block"), spreads(["Q4_K", "Q6_K"], "auto", "block")
    (True, False, False)
    """
    return all(weight_kind(dtype, option, role) == "int8" and dtype not in EIGHT_BIT_CODES for dtype in dtypes)


@record
class Matrix:
    """One matrix of a product: our name, and how its bytes become a packed part."""

    name: str
    role: str = "block"


class Packer:
    """Plans and packs the weights of one model.

    Parameters
    ----------
    spec : ModelSpec
    views : dict of str to WeightView
    option : str
        One of WEIGHTS.
    threads : int
    """

    def __init__(self, spec, views, option, threads):
        if option not in WEIGHTS:
            raise OptionError(f"weights={option!r} is not known: {', '.join(WEIGHTS)}")
        self.spec, self.views, self.option, self.threads = spec, views, option, threads
        self.plan = {}
        self.spread = {}  # role -> whether its 8-bit weights lie in the Hadamard basis
        self.arena = None
        self.packed = {}
        self.waiting = []  # (matrices to be packed, what to release afterwards)

    # ---- planning

    def add(self, key, matrices):
        """Announces a product of these matrices side by side."""
        self.plan.setdefault(key, tuple(Matrix(m) if isinstance(m, str) else m for m in matrices))

    def allocate(self):
        total = 0
        for role in ("block", "table"):
            stored = [self.views[f"{m.name}.weight"].dtype for matrices in self.plan.values() for m in matrices if m.role == role]
            self.spread[role] = spreads(stored, self.option, role)
        for matrices in self.plan.values():
            total += weight_bytes([(self._kind(m), *self.views[f"{m.name}.weight"].shape) for m in matrices])
        self.arena = Arena(total)

    def _kind(self, matrix):
        kind = weight_kind(self.views[f"{matrix.name}.weight"].dtype, self.option, matrix.role)
        return "int8-hadamard" if kind == "int8" and self.spread[matrix.role] else kind

    # ---- packing

    def weight(self, key):
        """The product of that key, in its place; its bytes are there after `finish`."""
        if key not in self.packed:
            parts = [self._part(m) for m in self.plan[key]]
            matrices = []
            self.packed[key] = Weight(self.arena, parts, matrices)
            views = [self.views[f"{m.name}.weight"] for m in self.plan[key]]
            self.waiting.append((matrices, views))
            if not all(lies_in_file(part[4]) for part in parts):
                self.finish()  # what was read into memory must not pile up
        return self.packed[key]

    def finish(self):
        """Packs every weight that was asked for."""
        waiting, self.waiting = self.waiting, []
        matrices, views, size = [], [], 0
        for i, (more, their_views) in enumerate(waiting):
            matrices += more
            views += their_views
            size += sum(m.nbytes for m in more)
            if size >= PIECE_BYTES or i == len(waiting) - 1:
                pack(matrices, self.threads)
                for view in views:
                    view.release()
                matrices, views, size = [], [], 0

    def _part(self, matrix):
        view = self.views[f"{matrix.name}.weight"]
        n, k = view.shape
        bias = self.array(f"{matrix.name}.bias")
        source = view.row_source()
        if source is None or source[0].dtype not in MULTIPLIED_AS_STORED:
            data = np.ascontiguousarray(view.to_float32(), np.float32)
            return self._kind(matrix), n, k, "F32", data.view(np.uint8).reshape(-1), None, bias
        tensor, rows = source
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(tensor.shape[0])
            return self._kind(matrix), n, k, tensor.dtype, tensor.raw_rows(start, stop), None, bias
        return self._kind(matrix), n, k, tensor.dtype, tensor.raw(), np.ascontiguousarray(rows, np.int64), bias

    def array(self, name):
        """A small tensor as float32, or None where the model has none."""
        view = self.views.get(name)
        if view is None:
            return None
        # A copy: a view of the file would keep pages around each small tensor mapped for as long as the model lives.
        values = np.array(view.to_float32(), np.float32, order="C")
        view.release()
        return values


class StackBuilder:
    """Makes the Stack of one side of a model.

    Parameters
    ----------
    packer : Packer
    name : str
        "encoder" or "decoder".
    tables : Tables of the engine
        Numbers the rotary tables and score biases that layers refer to.
    """

    def __init__(self, packer, name, tables):
        self.packer, self.name, self.tables = packer, name, tables
        self.spec = packer.spec
        self.stack = getattr(packer.spec, name)
        self._plan()

    def _weights_of(self, layer):
        """The name prefix of a layer's weights: its own, or those it shares."""
        return f"{self.name}.{self.stack.weight_layers[layer] if self.stack.weight_layers else layer}"

    def _embedding_name(self):
        return "encoder.embed.token" if self.stack.shared_embedding else f"{self.name}.embed.token"

    # ---- planning: the order of packing is the order of use

    def _plan(self):
        add, embedding = self.packer.add, self.stack.embedding
        if embedding.patches is None:
            add(self._embedding_name(), [Matrix(self._embedding_name(), "table")])
        if embedding.project:
            add(f"{self.name}.embed.project", [f"{self.name}.embed.project"])
        for i, layer in enumerate(self.stack.layers):
            w = self._weights_of(i)
            if layer.mixing is Mixing.SSRU:
                add(f"{w}.recurrent", [f"{w}.recurrent.forget", f"{w}.recurrent.input"])
            else:
                add(f"{w}.attention.qkv", [f"{w}.attention.{part}" for part in ("query", "key", "value")])
                add(f"{w}.attention.output", [f"{w}.attention.output"])
            if layer.cross is not None:
                add(f"{w}.cross.query", [f"{w}.cross.query"])
                add(f"{w}.cross.kv", [f"{w}.cross.key", f"{w}.cross.value"])
                add(f"{w}.cross.output", [f"{w}.cross.output"])
            self._plan_ffn(f"{w}.ffn", layer.ffn)
        if self.stack.convolution is not None:
            add(f"{self.name}.convolution", [f"{self.name}.convolution"])
        if self.stack.final_project:
            add(f"{self.name}.final_project", [f"{self.name}.final_project"])

    def _plan_ffn(self, w, ffn):
        def pair(prefix, gated):
            return [f"{prefix}.gate", f"{prefix}.up"] if gated else [f"{prefix}.up"]

        add, experts = self.packer.add, ffn.experts
        if experts is None:
            add(f"{w}.up", pair(w, ffn.gated))
            add(f"{w}.down", [f"{w}.down"])
            return
        add(f"{w}.router", [Matrix(f"{w}.router", "exact")])
        if experts.shared_hidden_size:
            add(f"{w}.shared.up", pair(f"{w}.shared", ffn.gated))
            add(f"{w}.shared.down", [f"{w}.shared.down"])
        if experts.shared_gate:
            add(f"{w}.shared_gate", [Matrix(f"{w}.shared_gate", "exact")])
        for e in range(experts.count):
            add(f"{w}.experts.{e}.up", pair(f"{w}.experts.{e}", ffn.gated))
            add(f"{w}.experts.{e}.down", [f"{w}.experts.{e}.down"])

    # ---- building

    def build(self, head=None):
        """The Stack, with the head of a language model if one is given (a HeadSpec)."""
        packer, stack = self.packer, self.stack
        keeps = self.name == "decoder"
        made = Stack(stack.hidden_size, len(stack.layers), len(stack.layers) if keeps else 1)
        self._embedding(made)
        for i, layer in enumerate(stack.layers):
            self._layer(made, i, layer)
        made.finish(
            norm=self._norm(f"{self.name}.final_norm", stack.final_norm),
            project=packer.weight(f"{self.name}.final_project") if stack.final_project else None,
        )
        if head is not None:
            add_head(packer, made, head, self._embedding_name())
        return made

    def part(self, layers, *, embedding=False, norm=None):
        """A Stack of some layers alone, behind the embedding or behind a norm of given rows; the final norm is not in it."""
        made = Stack(self.stack.hidden_size, len(layers), 1)
        if embedding:
            self._embedding(made)
        else:
            made.embedding(norm=norm)
        for i in layers:
            self._layer(made, i, self.stack.layers[i])
        made.finish()
        return made

    def _norm(self, name, spec):
        return describe_norm(self.packer, name, spec)

    def _embedding(self, made):
        packer, embedding, name = self.packer, self.stack.embedding, self.name
        made.embedding(
            tokens=packer.weight(self._embedding_name()) if embedding.patches is None else None,
            scale=embedding.scale,
            positions=self._positions() if embedding.patches is None else None,
            types=packer.array(f"{name}.embed.type.weight") if embedding.type_count else None,
            norm=self._norm(f"{name}.embed.norm", embedding.norm),
            project=packer.weight(f"{name}.embed.project") if embedding.project else None,
            positions_after_project=embedding.positions_after_project,
        )

    def _positions(self):
        positions = self.stack.embedding.positions
        if positions is None or positions.kind is PositionTable.NONE:
            return None
        return self.packer.array(f"{self.name}.embed.position.weight")

    def _layer(self, made, i, layer):
        w, packer = self._weights_of(i), self.packer
        norms = {"ffn": None if layer.placement is Placement.PARALLEL else self._norm(f"{w}.ffn_norm", layer.norm)}
        if layer.attention_norm:
            norms["attention"] = self._norm(f"{w}.attention_norm", layer.norm)
        if layer.placement is Placement.SANDWICH:
            norms["attention_post"] = self._norm(f"{w}.attention_post_norm", layer.norm)
            norms["ffn_post"] = self._norm(f"{w}.ffn_post_norm", layer.norm)
        cross = None
        if layer.cross is not None:
            norms["cross"] = self._norm(f"{w}.cross_norm", layer.norm)
            cross = {
                **self._attention(f"{w}.cross", layer.cross),
                "qkv": packer.weight(f"{w}.cross.query"),
                "output": packer.weight(f"{w}.cross.output"),
                "causal": False,
            }
        attention = recurrent = None
        if layer.mixing is Mixing.SSRU:
            recurrent = packer.weight(f"{w}.recurrent")
        else:
            attention = {
                **self._attention(f"{w}.attention", layer.attention),
                "qkv": packer.weight(f"{w}.attention.qkv"),
                "output": packer.weight(f"{w}.attention.output"),
                "causal": layer.attention.mask is Mask.CAUSAL,
            }
        made.layer(
            placement=layer.placement.value,
            residual_scale=layer.residual_scale,
            norms=norms,
            attention=attention,
            cross=cross,
            ffn=self._ffn(f"{w}.ffn", layer.ffn),
            recurrent=recurrent,
        )

    def _attention(self, w, spec):
        if spec.heads % spec.kv_heads:
            raise UnsupportedModel(f"{spec.heads} query heads cannot share {spec.kv_heads} key heads evenly")
        described = {
            "heads": spec.heads,
            "kv_heads": spec.kv_heads,
            "head_dim": spec.head_dim,
            "scale": spec.scale,
            "softcap": spec.softcap,
            "clip": spec.clip_qkv,
            "window": spec.window,
            "qk_norm": spec.qk_norm.value,
            "qk_norm_last": spec.qk_norm_last,
        }
        if spec.qk_norm is not QKNorm.NONE:
            for which in ("query", "key"):
                described[f"{which}_norm"] = self._norm(f"{w}.{which}_norm", spec.qk_norm_spec)
            weight = described["query_norm"][2]
            own = spec.qk_norm is QKNorm.HEAD and weight is not None and weight.size > spec.head_dim
            described["qk_norm_stride"] = spec.head_dim if own else 0
        if isinstance(spec.positions, Rotary):
            described["rope"] = self.tables.rope(spec.positions)
        elif isinstance(spec.positions, Alibi):
            described["bias"] = self.tables.bias(spec.positions, None, spec.scale)
        elif isinstance(spec.positions, Relative):
            described["bias"] = self.tables.bias(spec.positions, self.packer.array(relative_name(self.name, spec.positions)), 1.0)
        elif isinstance(spec.positions, Disentangled):
            described["disentangled"] = self._disentangled(w, spec)
        return described

    def _disentangled(self, w, spec):
        """Relative positions through the projections of keys and queries: one small matrix a head, made once."""
        d, packer = spec.positions, self.packer
        table = packer.array(f"{self.name}.disentangled.weight")

        def heads(which):
            name = f"{w}.{which}" if d.shared_projection else f"{w}.position_{which}"
            weight, bias = packer.array(f"{name}.weight"), packer.array(f"{name}.bias")
            rows = table @ weight.T + (0 if bias is None else bias)
            split = np.ascontiguousarray(rows.reshape(len(table), spec.heads, spec.head_dim).swapaxes(0, 1), np.float32)
            arena = Arena(sum(weight_bytes([("float32", len(table), spec.head_dim)]) for _ in split))
            parts = [("float32", len(table), spec.head_dim, "F32", head.view(np.uint8).reshape(-1), None, None) for head in split]
            matrices = []
            weights = [Weight(arena, [part], matrices) for part in parts]
            pack(matrices, packer.threads)
            return weights

        distance = np.arange(-DISENTANGLED_REACH, DISENTANGLED_REACH + 1)
        if d.buckets:
            distance = deberta_buckets(distance, d.buckets, d.max_relative_positions)
        return {
            "rows": len(table),
            "position_key": heads("key") if d.content_to_position else None,
            "position_query": heads("query") if d.position_to_content else None,
            "row_of": np.clip(distance + d.span, 0, 2 * d.span - 1).astype(np.int32),
        }

    def _ffn(self, w, ffn):
        packer, experts = self.packer, ffn.experts
        described = {"activation": ffn.activation.value, "gated": ffn.gated}
        if experts is None:
            return {**described, "up": packer.weight(f"{w}.up"), "down": packer.weight(f"{w}.down")}
        if experts.shared_hidden_size:
            described |= {"up": packer.weight(f"{w}.shared.up"), "down": packer.weight(f"{w}.shared.down")}
        described["experts"] = {
            "top_k": experts.top_k,
            "renormalize": experts.renormalize,
            "router": packer.weight(f"{w}.router"),
            "shared_gate": packer.weight(f"{w}.shared_gate") if experts.shared_gate else None,
            "up": [packer.weight(f"{w}.experts.{e}.up") for e in range(experts.count)],
            "down": [packer.weight(f"{w}.experts.{e}.down") for e in range(experts.count)],
        }
        return described

    def source_weights(self):
        """Of each layer: the projection of an encoder's output to the keys and values of cross-attention."""
        return [self.packer.weight(f"{self._weights_of(i)}.cross.kv") for i in range(len(self.stack.layers))]


def describe_norm(packer, name, spec):
    """(kind, eps, weight, bias) of a norm as Stack takes it, or None."""
    if spec is None:
        return None
    kind = "rms" if spec.kind is NormKind.RMS else "layer"
    return kind, spec.eps, packer.array(f"{name}.weight"), packer.array(f"{name}.bias")


def plan_heads(packer, embedding_name):
    """Announces what stands before and behind the stacks: patches of images, the head, the pooler."""
    spec = packer.spec
    if spec.encoder is not None and spec.encoder.embedding.patches is not None:
        packer.add("encoder.embed.patch", ["encoder.embed.patch"])
    for head in (spec.head, spec.pooler):
        if head is not None:
            plan_head(packer, head, embedding_name)


def matrix_roles(spec, views):
    """The role of every matrix that a model multiplies by (see weight_kind), by our name; nothing is packed."""
    packer = Packer(spec, views, "auto", 1)
    builders = [StackBuilder(packer, name, None) for name in ("encoder", "decoder") if getattr(spec, name) is not None]
    plan_heads(packer, builders[0]._embedding_name())
    return {matrix.name: matrix.role for matrices in packer.plan.values() for matrix in matrices}


def plan_head(packer, head, embedding_name):
    """Announces the matrices of a head; a tied step reads the token embedding."""
    for step in head.steps:
        if step.norm is None and not step.tied:
            packer.add(f"head.{step.name}", [Matrix(f"head.{step.name}", "table" if step.features > 1024 else "block")])


def add_head(packer, stack, head, embedding_name):
    """Gives a Stack the steps of a head."""
    steps = []
    for step in head.steps:
        if step.norm is not None:
            steps.append((None, step.activation.value, describe_norm(packer, f"head.{step.name}", step.norm)))
            continue
        weight = packer.weight(embedding_name if step.tied else f"head.{step.name}")
        bias = packer.array(f"head.{step.name}.bias")
        if step.tied and bias is not None:
            weight = weight.with_bias(bias)
        if head.hidden_scale != 1 and bias is not None:
            raise UnsupportedModel("a head that scales its input and adds a bias")
        steps.append((weight, step.activation.value, None))
    stack.head(steps or [(None, 0, None)], scale=head.scale * head.hidden_scale, softcap=head.softcap)
