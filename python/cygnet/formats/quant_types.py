"""The one table of GGUF element types: name, number in the file, weights a block, bytes a block.

Numbers and layouts: the GGUF specification (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md) and ggml's block structures.
"""

from typing import NamedTuple


class QuantType(NamedTuple):
    """One GGUF element type; plain types are blocks of one element."""

    name: str
    ggml_id: int
    block_size: int
    block_bytes: int


GGML_TYPES = {
    ggml_id: QuantType(name, ggml_id, block_size, block_bytes)
    for name, ggml_id, block_size, block_bytes in [
        ("F32", 0, 1, 4),
        ("F16", 1, 1, 2),
        ("Q4_0", 2, 32, 18),
        ("Q4_1", 3, 32, 20),
        ("Q5_0", 6, 32, 22),
        ("Q5_1", 7, 32, 24),
        ("Q8_0", 8, 32, 34),
        ("Q2_K", 10, 256, 84),
        ("Q3_K", 11, 256, 110),
        ("Q4_K", 12, 256, 144),
        ("Q5_K", 13, 256, 176),
        ("Q6_K", 14, 256, 210),
        ("IQ4_NL", 20, 32, 18),
        ("IQ4_XS", 23, 256, 136),
        ("I8", 24, 1, 1),
        ("I16", 25, 1, 2),
        ("I32", 26, 1, 4),
        ("I64", 27, 1, 8),
        ("F64", 28, 1, 8),
        ("BF16", 30, 1, 2),
    ]
}
BLOCK_TYPES = {quant.name: quant for quant in GGML_TYPES.values() if quant.block_size > 1}

# Types that ggml defines and cygnet does not decode: known by name so that the refusal can say it.
UNREAD_GGML_TYPES = {
    9: "Q8_1", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 21: "IQ3_S", 22: "IQ2_S",
    29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4",
}  # fmt: skip
