"""Attention over blocks of key/value memory on NumPy arrays: what cygnet.functional and the kernel tests call."""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc

from cygnet._core._kernels cimport CYG_ATTENTION_ROWS, CYG_KEY_BLOCK, CYG_KEY_CHUNK, CYG_KV_F16, CYG_KV_F32, cyg_attention, cyg_kernels, cyg_kv_kind, kernels_of

from cygnet.errors import OptionError

KEY_BLOCK = CYG_KEY_BLOCK
KEY_CHUNK = CYG_KEY_CHUNK
MAX_HEAD_DIM = 512


cdef int want(bint condition, message) except -1:
    if not condition:
        raise OptionError(message)
    return 0


def store_kv(const float[:, ::1] key, const float[:, ::1] value, uint8_t[:, ::1] blocks, isa=None):
    """Writes keys and values (K, D) into blocks (ceil(K / 32), bytes of a block): the key part (D, 32), then the value part (32, D).

    The element type follows from the bytes of a block: 64 D elements of float32 or float16. Returns whether a number did not fit it.
    """
    cdef const cyg_kernels *table = kernels_of(isa)
    cdef int64_t keys = key.shape[0], dim = key.shape[1], i
    cdef cyg_kv_kind kind = kind_of(blocks, keys, dim)
    cdef uint8_t *start
    cdef int beyond = 0
    want(value.shape[0] == keys and value.shape[1] == dim, "store_kv: key and value differ in shape")
    for i in range(keys):
        start = &blocks[i // CYG_KEY_BLOCK, 0]
        beyond |= table.store_kv(kind, &key[i, 0], &value[i, 0], <int> dim, <int> (i % CYG_KEY_BLOCK), start, start + blocks.shape[1] // 2)
    return bool(beyond)


cdef cyg_kv_kind kind_of(const uint8_t[:, ::1] blocks, int64_t keys, int64_t dim) except *:
    want(1 <= dim <= MAX_HEAD_DIM, f"the head size must be 1 to {MAX_HEAD_DIM}, not {dim}")
    want(blocks.shape[0] * CYG_KEY_BLOCK >= keys, f"{blocks.shape[0]} blocks hold fewer than {keys} keys")
    if blocks.shape[1] == 2 * CYG_KEY_BLOCK * dim * 4:
        return CYG_KV_F32
    want(blocks.shape[1] == 2 * CYG_KEY_BLOCK * dim * 2, f"a block of {blocks.shape[1]} bytes fits neither float32 nor float16 for head size {dim}")
    return CYG_KV_F16


cdef int place(const float[:, :, :] x, int64_t *first, int64_t *second, what) except -1:
    """Strides in elements of the first two axes; the last one must be contiguous."""
    want(x.shape[2] <= 1 or x.strides[2] == 4, f"{what} must be contiguous along the last axis")
    want(x.strides[0] % 4 == 0 and x.strides[1] % 4 == 0, f"{what}: strides must be multiples of four bytes")
    first[0], second[0] = x.strides[0] // 4, x.strides[1] // 4
    return 0


def attention(const float[:, :, :] query, const uint8_t[:, ::1] blocks, int64_t keys, float[:, :, :] out, *, float scale, float softcap=0.0,
              bint causal=False, int64_t window=0, int64_t first_query=0, const float[:, ::1] relative=None, int64_t relative_zero=0,
              const float[::1] key_bias=None, const float[:, :, :] bias=None, bint split=False, isa=None):
    """out (T, H, D) = attention of query (T, H, D) over the first `keys` keys of blocks (as store_kv writes them).

    relative (H, n) holds the bias of distance (key position - query position) d at relative_zero + d; key_bias (K); bias (H, T, K), where
    an axis repeated by numpy.broadcast_to costs nothing. `split` takes every chunk of keys as a share of its own and joins them at the end.
    """
    cdef const cyg_kernels *table = kernels_of(isa)
    cdef cyg_attention share
    cdef int64_t tokens = query.shape[0], heads = query.shape[1], dim = query.shape[2], i
    cdef int64_t chunks = (keys + CYG_KEY_CHUNK - 1) // CYG_KEY_CHUNK, width = tokens * heads * (dim + 2)
    share.kv_kind = kind_of(blocks, keys, dim)
    share.k_offset, share.v_offset = 0, CYG_KEY_BLOCK * dim
    want(out.shape[0] == tokens and out.shape[1] == heads and out.shape[2] == dim, "attention: query and out differ in shape")
    want(keys >= 0 and window >= 0 and first_query >= 0, "attention: keys, window and first_query cannot be negative")
    place(query, &share.q_token_stride, &share.q_head_stride, "query")
    place(out, &share.out_token_stride, &share.out_head_stride, "out")
    share.relative = share.key_bias = share.bias = NULL
    share.relative_stride = share.key_bias_stride = share.bias_head_stride = share.bias_token_stride = 0
    if tokens * heads == 0:
        return
    if relative is not None:
        # The farthest keys on both sides that some query may look at.
        ahead = 0 if causal else keys - 1 - first_query
        behind = first_query + tokens - 1
        if window:
            ahead, behind = min(ahead, window - 1), min(behind, window - 1)
        want(relative.shape[0] == heads, f"attention: relative has {relative.shape[0]} rows for {heads} heads")
        want(keys == 0 or (relative_zero - behind >= 0 and relative_zero + ahead < relative.shape[1]),
             f"attention: relative must hold the distances {-behind} to {ahead}")
        share.relative, share.relative_stride = &relative[0, 0] + relative_zero, relative.shape[1]
    if key_bias is not None and keys:
        want(key_bias.shape[0] == keys, "attention: key_bias must have one element a key")
        share.key_bias = &key_bias[0]
    if bias is not None and keys:
        want(bias.shape[0] == heads and bias.shape[1] == tokens and bias.shape[2] == keys, "attention: bias must be (heads, tokens, keys)")
        place(bias, &share.bias_head_stride, &share.bias_token_stride, "bias")
        share.bias = &bias[0, 0, 0]
    share.q, share.out = &query[0, 0, 0], &out[0, 0, 0]
    share.keys, share.first_query, share.tokens, share.heads, share.head_dim = keys, first_query, tokens, <int> heads, <int> dim
    share.scale, share.softcap, share.causal, share.window = scale, softcap, causal, window
    cdef const void **pointers = <const void **> malloc((blocks.shape[0] + 1) * sizeof(void *))
    cdef float *parts = <float *> malloc(max(chunks * width if split else 0, CYG_ATTENTION_ROWS * dim) * sizeof(float))
    if pointers == NULL or parts == NULL:
        free(pointers)
        free(parts)
        raise MemoryError()
    for i in range(blocks.shape[0]):
        pointers[i] = &blocks[i, 0]
    share.blocks = pointers
    share.parts = parts
    with nogil:
        if split:
            for i in range(chunks):
                table.attention_part(&share, i, parts + i * width)
            table.attention_join(&share, chunks, parts)
        else:
            table.attention(&share)
    free(parts)
    free(pointers)
