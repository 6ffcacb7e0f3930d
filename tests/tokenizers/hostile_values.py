"""Damage: to bytes, to the values of a JSON text, to GGUF metadata."""

import json
from copy import deepcopy

import numpy as np

NUMBERS = [-1, 0, 1, 255, 256, -(2**31), -(2**63), 2**63 - 1, 2**31 - 1, 2**32 - 1]
NUMBERS += [2**n for n in (16, 20, 24, 28, 31, 32, 53, 63, 64, 70)]
FLOATS = [0.5, -0.0, 1e-320, 1e308, -1e308, float("nan"), float("inf"), float("-inf"), 3.5e38]
STRINGS = ["", "\0", "\ud800", "\udfff\ud800", "a" * 70_000, "é", "\x80", "日", "🦢", "</s>", "<0x41>", "\n"]
STRINGS += ["(" * 3000, "[", "(?", r"\p{Nope}", "a**", "(a+)+$"]
OTHERS = [None, True, False, [], {}, [[]], [None] * 100, {"": None}, [[1, 2], [3]], {"type": "Sequence"}]
OTHERS += [{"String": ""}, {"Regex": "("}, {"Regex": ""}]
COMPONENTS = "ByteLevel Metaspace Sequence BPE Unigram WordPiece WordLevel Strip Replace Precompiled Nope Split Digits".split()
BYTES = [b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xff\xfe", b"\n", b"\r\n", b"\0", b"\xff\xff\xff\xff\x0f", b"{" * 50, b"[" * 10_000]
NAMED_TWICE = ['"type": 3, "type": "BPE", ', '"vocab": {}, ', '"id": 1, "id": 1, ', '"": 0, "": 1, ']
DEEP = "@@deep@@"
DEPTH = 10_000


def absurd(draw):
    """A value of any kind that is seldom expected."""
    return draw.choice((*(draw.choice(part) for part in (NUMBERS, FLOATS, STRINGS, OTHERS, COMPONENTS)), DEEP))


def damaged_bytes(draw, data):
    """A few flips, cuts, repeats, insertions and numbers of absurd size."""
    data = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4))):
        at = draw.randrange(len(data) + 1) if draw.random() < 0.6 else min(len(data), draw.randrange(64))
        size = draw.choice((1, 1, 2, 4, 8, 64, 1000))
        kind = draw.randrange(9)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            data[at : at + 1] = bytes([draw.choice((0, 0xFF, 0x80, 0x7F, draw.randrange(256)))])
        elif kind == 2:
            del data[at : at + size]
        elif kind == 3:
            data[at:at] = draw.randbytes(size)
        elif kind == 4:
            data[at:at] = data[max(0, at - size) : at] * draw.choice((1, 2, 50))
        elif kind == 5:
            del data[at:]
        elif kind == 6:
            width = draw.choice((4, 8))
            data[at : at + width] = (draw.choice(NUMBERS) & (1 << 8 * width) - 1).to_bytes(width, "little")
        elif kind == 7:
            data[at:at] = draw.choice(BYTES)
        else:
            data[at : at + size] = bytes(size)
    return bytes(data)


def damaged_json(draw, data):
    """A JSON text with one or two of its values replaced, taken out, moved or named twice."""
    document = json.loads(data)
    for _ in range(draw.choice((1, 1, 2))):
        holder = document
        place = None
        while isinstance(holder, (dict, list)) and holder:
            place = draw.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
            inner = holder[place]
            if not isinstance(inner, (dict, list)) or not inner or draw.random() < 0.25:
                break
            holder = inner
        if place is None or not isinstance(holder, (dict, list)) or not holder:
            document = deepcopy(absurd(draw))
            break
        change(draw, holder, place)
    text = json.dumps(document)
    text = text.replace(f'"{DEEP}"', "[" * DEPTH + "]" * DEPTH)
    if draw.random() < 0.1:
        at = text.find("{", draw.randrange(len(text)))
        if at >= 0:
            text = text[: at + 1] + draw.choice(NAMED_TWICE) + text[at + 1 :]
    return text.encode("utf-8", "surrogatepass")


def change(draw, holder, place):
    """One value of a list or an object made wrong."""
    kind = draw.randrange(6)
    value = holder[place]
    if kind == 0:
        del holder[place]
    elif kind == 1 and isinstance(value, (int, float)) and not isinstance(value, bool):
        holder[place] = draw.choice((value + 1, value - 1, -value, value * 1000, str(value), value + 0.5, value * 2**20))
    elif kind == 2 and isinstance(holder, list):
        holder.insert(draw.randrange(len(holder) + 1), deepcopy(value))
    elif kind == 2:
        holder[str(absurd(draw))[:100]] = deepcopy(value)
    elif kind == 3 and isinstance(value, (list, dict)) and value:
        others = list(value.values()) if isinstance(value, dict) else value
        holder[place] = deepcopy(draw.choice(others))
    else:
        holder[place] = deepcopy(absurd(draw))


def damaged_metadata(draw, metadata):
    """GGUF metadata with some keys absurd, or single elements of their arrays."""
    out = dict(metadata)
    for _ in range(draw.choice((1, 1, 2, 3))):
        key = draw.choice(list(out))
        value = out[key]
        kind = draw.randrange(5)
        if kind == 0:
            del out[key]
            if not out:
                break
        elif kind == 1 and isinstance(value, (list, np.ndarray)) and len(value):
            changed = list(value)
            changed[draw.randrange(len(changed))] = shallow(draw)
            out[key] = changed
        elif kind == 2 and isinstance(value, (list, np.ndarray)):
            out[key] = list(value)[: draw.randrange(len(value) + 1)] + [shallow(draw)] * draw.choice((0, 1, 3))
        elif kind == 3 and isinstance(value, np.ndarray):
            changed = value.copy()
            with np.errstate(all="ignore"):
                changed[draw.randrange(len(changed))] = np.float64(draw.choice((*FLOATS, 1e30, -1e30))).astype(value.dtype)
            out[key] = changed
        else:
            out[key] = shallow(draw)
    return out


def shallow(draw):
    while (value := absurd(draw)) == DEEP:
        pass
    return value
