"""How text is cut before BPE, by the pre-tokenizer names of GGUF files (tokenizer.ggml.pre).

The names and what they stand for are those of llama.cpp. A row gives the expressions, applied in turn, each cutting out its matches.
"""

from __future__ import annotations

from cygnet.records import record
from cygnet.tokenizers.components import PreTokenizer
from cygnet.tokenizers.patterns import FileExpression
from cygnet.tokenizers.pretokenizers import GPT2_PATTERN, ByteLevel, Sequence, Split
from cygnet.tokenizers.split_rules import CJK_PATTERN, DEEPSEEK_PATTERN, LLAMA3_PATTERN, QWEN2_PATTERN

CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
# Behind a word, where only the letters of ASCII are taken.
ASCII_CONTRACTION = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
LEAD = r"[^\r\n\p{L}\p{N}]?"
LINES_AND_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
NOT_LOWER, NOT_UPPER = r"(?:(?=\p{L})[^a-z])", r"(?:(?=\p{L})[^A-Z])"
MARKED_NOT_LOWER, MARKED_NOT_UPPER = r"(?:(?=[\p{L}\p{M}])[^a-z])", r"(?:(?=[\p{L}\p{M}])[^A-Z])"
# llama.cpp knows letters by no finer class where an expression asks for one.
LETTER = r"[\p{L}\p{M}]"
PHRASE = r" ?[^(\s|.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C)]+"
LINE_RUNS = r"[^\n]+|[\n]+"
# White space outside ASCII is never taken for the signs of a range it lies in. It is spelled out, as an expression with a class would not see the
# code points of its ranges that are not assigned.
IDEOGRAPHS = r"(?:(?![\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000])[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF])+"


def cased(upper: str, lower: str, tail: str = "") -> str:
    """Words that turn from upper to lower case at most once, with one sign before them and a contraction after."""
    return f"{LEAD}{upper}*{lower}+{tail}|{LEAD}{upper}+{lower}*{tail}"


GPT4O = "|".join((cased(NOT_LOWER, NOT_UPPER, f"{ASCII_CONTRACTION}?"), r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", LINES_AND_SPACES))
DEEPSEEK_LETTERS = (
    r"\s?[A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293\u0295-\u02AF\u0370-\u0373\u0376\u0377\u037B-\u037D\u037F"
    r"\u0386\u0388-\u038A\u038C\u038E-\u03A1\u03A3-\u03F5\u03F7-\u0481\u048A-\u052F\u0531-\u0556\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD"
    r"\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45\u1F48-\u1F4D\u1F50-\u1F57"
    r"\u1F59\u1F5B\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC"
    r"\u1FF2-\u1FF4\u1FF6-\u1FFC\u2102\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128\u212A-\u212D\u212F-\u2134\u2139\u213C-\u213F"
    r"\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4\u2CEB-\u2CEE\u2CF2\u2CF3\uA640-\uA66D\uA680-\uA69B\uA722-\uA76F\uA771-\uA787"
    r"\uA78B-\uA78E\uAB70-\uABBF\uFB00-\uFB06\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A\U00010400-\U0001044F\U000104B0-\U000104D3"
    r"\U000104D8-\U000104FB\U00010C80-\U00010CB2\U00010CC0-\U00010CF2\U000118A0-\U000118DF\U0001E900-\U0001E943]+"
)
# Digits in threes from the right; what stands before the first group is cut off only behind it.
DIGITS_FROM_THE_RIGHT = r"\P{N}*\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"
# The range that ends at U+FAFF begins at U+8C48 in llama.cpp, the normalised form of U+F900.
EAST_ASIAN = (
    r"[\u4E00-\u9FFF\u3400-\u4DBF\u8C48-\uFAFF\u3040-\u309F\u30A0-\u30FF\uFF65-\uFF9F\u2F00-\u2FDF\u0E40-\u0E7F\u0E80-\u0EFF\u1780-\u17FF"
    r"\u1000-\u109F\uAA60-\uAA7F\uA9E0-\uA9FF\uAC00-\uD7AF\u1100-\u11FF]+"
)
HAN = r"[\u3400-\u4DBF\u4E00-\u9FFF\uF900-\uFAFF\U00020000-\U0002A6DF\U0002A700-\U0002EBEF\U0002F800-\U0002FA1F]"


@record
class GgufSplit:
    """What a pre-tokenizer name stands for.

    Attributes
    ----------
    patterns : tuple of str
    ignore_merges : bool
        A word that is in the vocabulary is that token.
    add_bos : bool
        BOS is put before the text where the file does not say.
    clean_spaces : bool
        Decoding takes out the spaces before punctuation.
    byte_level : bool
        Words are spelled in the byte-level alphabet; otherwise they stay text, and unknown characters are spelled <0x..>.
    escape_spaces : bool
        A space is spelled with the sign U+2581.
    """

    patterns: tuple[str, ...]
    ignore_merges: bool = False
    add_bos: bool = False
    clean_spaces: bool = True
    byte_level: bool = True
    escape_spaces: bool = False

    def pre_tokenizer(self) -> PreTokenizer:
        stages: list[PreTokenizer] = [Split(FileExpression(p), "Isolated", False, p, unicode_15=True) for p in self.patterns]
        if self.byte_level:
            stages.append(ByteLevel(add_prefix_space=False, use_regex=False))
        return Sequence(stages)


_NAMES: dict[str, GgufSplit] = {}


def _name(names: str, *patterns: str, **switches: bool) -> None:
    for name in names.split():
        _NAMES[name] = GgufSplit(patterns, **switches)


_name("default", r"[\p{P}\$\+<=>\^~\|]+", GPT2_PATTERN, r"\p{N}+", "[0-9][0-9][0-9]")
_name("llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano", LLAMA3_PATTERN, ignore_merges=True, add_bos=True)
_name("dbrx smaug-bpe glm4 chatglm-bpe", LLAMA3_PATTERN)
_name("minicpm5", r"\p{N}{1,3}", LLAMA3_PATTERN.replace(r"\p{N}{1,3}", r"\p{N}+"), ignore_merges=True)
_name(
    "jais-2",
    LLAMA3_PATTERN.removesuffix(r"\s+(?!\S)|\s+") + "|".join(rf"\s{{{n}}}(?!\S)" for n in (512, 256, 128, 64, 32, 16, 8, 4, "1,2")) + r"|\s",
)
_name(
    "deepseek-llm",
    r"[\r\n]",
    DEEPSEEK_LETTERS,
    r"\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3001\u3002]+",
    r"\s+$",
    IDEOGRAPHS,
    r"\p{N}+",
    clean_spaces=False,
)
_name("deepseek-coder", r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", IDEOGRAPHS, r"\p{N}", clean_spaces=False)
_name("deepseek-v3 hunyuan-dense hy_v4 joyai-llm", r"\p{N}{1,3}", CJK_PATTERN, DEEPSEEK_PATTERN, clean_spaces=False)
_name(
    "spark2_5",
    r"\p{N}{1,3}",
    CJK_PATTERN,
    DEEPSEEK_PATTERN.replace(r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+", r" ?[\p{P}\p{S}]+|[\r\n]"),
    r"\p{N}",
    clean_spaces=False,
)
_name(
    "youtu",
    r"[\uAC00-\uD7A3\u3131-\u318E]+|[\uFF01\u2026\u201C\u201D\u2018\u2019\u2014\uFF1A\uFF1B\uFF0C\u3001-\u303F\uFE30-\uFE4F]+|[\u3105-\u312F]+|"
    + CJK_PATTERN,
    "|".join((f"{LEAD}{LETTER}+{ASCII_CONTRACTION}?", r"\p{N}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", LINES_AND_SPACES)),
    ignore_merges=True, clean_spaces=False,
)  # fmt: skip
_name("falcon", r"[\p{P}\$\+<=>\^~\|`]+", GPT2_PATTERN, "[0-9][0-9][0-9]")
_name("starcoder refact codeshell exaone minerva-7b mellum2", r"\p{N}", GPT2_PATTERN)
_name("command-r smollm", r"\p{N}", GPT2_PATTERN, clean_spaces=False)
_name("gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert jina-v1-en jina-v2-code roberta-bpe", GPT2_PATTERN)
_name("mpt olmo jais exaone4", GPT2_PATTERN)
_name("trillion granite-docling", GPT2_PATTERN, clean_spaces=False)
_name("stablelm2 megrez", QWEN2_PATTERN)
_name("qwen2 deepseek-r1-qwen kormo f2llmv2 hunyuan solar-open grok-2", QWEN2_PATTERN, clean_spaces=False)
_name("qwen35", QWEN2_PATTERN.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]"), clean_spaces=False)
_name("ufakzeka", QWEN2_PATTERN.removeprefix(CONTRACTION + "|"), clean_spaces=False)
_name("seed-coder", QWEN2_PATTERN.replace(r" ?[^\s\p{L}\p{N}]+[\r\n]*", r" ?[^\s\p{L}\p{N}\r\n]+"), clean_spaces=False)
_name("bailingmoe bailingmoe2 llada-moe", QWEN2_PATTERN.replace(r"\s*[\r\n]+", r"\s*[\r\n]"), clean_spaces=False)
_name("laguna", LINE_RUNS, QWEN2_PATTERN, clean_spaces=False)
_name(
    "exaone-moe",
    rf"{CONTRACTION}|{LEAD}(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
)
_name("poro-chat", PHRASE, clean_spaces=False)
_name("bloom gpt3-finnish", PHRASE)
_name("viking", PHRASE, r"\p{N}", clean_spaces=False)
_name(
    "tekken",
    "|".join((cased(NOT_LOWER, NOT_UPPER), r"\p{N}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", LINES_AND_SPACES)),
    ignore_merges=True, add_bos=True, clean_spaces=False,
)  # fmt: skip
_name(
    "chameleon",
    "<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\\t\\n]|    |  )", r"\p{N}", r"[\p{P}!-/:-@\[-`{-~]", GPT2_PATTERN,
    add_bos=True, clean_spaces=False,
)  # fmt: skip
_name("gpt-4o llama4 kanana2 talkie minimax-m2", GPT4O, clean_spaces=False)
_name(
    "granite-embed-multi-97m",
    GPT4O.replace(NOT_LOWER, MARKED_NOT_LOWER).replace(NOT_UPPER, MARKED_NOT_UPPER), ignore_merges=True, clean_spaces=False,
)  # fmt: skip
_name(
    "tiny_aya cohere2moe",
    DIGITS_FROM_THE_RIGHT,
    "|".join((f"{LEAD}{LETTER}+{ASCII_CONTRACTION}?", r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", LINES_AND_SPACES)),
    clean_spaces=False,
)
_name("superbpe", r"\p{N}+", r"(?=([0-9]{3})+(?![0-9]))", clean_spaces=False)
_name(
    "kimi-k2",
    "|".join((f"{HAN}+", rf"{LEAD}(?:(?!{HAN})\p{{L}})+{ASCII_CONTRACTION}?", r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n]*", LINES_AND_SPACES)),
    clean_spaces=False,
)
_name("afmoe", DIGITS_FROM_THE_RIGHT, EAST_ASIAN, DEEPSEEK_PATTERN, clean_spaces=False)
_name("gemma4 granite-embed-multi-311m", LINE_RUNS, byte_level=False, escape_spaces=True)
_name("whitespace", r"\S+", byte_level=False)
_name("sarvam-moe", LINE_RUNS, byte_level=False, escape_spaces=True, clean_spaces=False)
# Names whose vocabularies have tokens for whole runs of line feeds; BOS is put before their texts whatever the file says.
WHOLE_LINES = frozenset({"gemma4", "granite-embed-multi-311m"})


def split_of(name: str) -> GgufSplit | None:
    """The split of a pre-tokenizer name, or None for an unknown one."""
    return _NAMES.get(name)


def known_names() -> list[str]:
    return sorted(_NAMES)
