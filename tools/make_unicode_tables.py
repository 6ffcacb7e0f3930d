"""Writes csrc/unicode_tables.c from the files of the Unicode Character Database (UAX #44).

    python tools/make_unicode_tables.py UCD_DIRECTORY        # Unicode 16.0: UnicodeData.txt, DerivedAge.txt, Scripts.txt ...

The directory is the published ucd/ folder of Unicode 16.0, which is what the regular expression library of tokenizer.json files
knows. Three things follow other versions, because the reference tokenizers do: normalisation forms stop at Unicode 9.0, each
class carries the age that older tables need, and lower-casing and numbers include what 17.0 added.
"""

import argparse
from pathlib import Path

SIZE = 0x110000
BLOCK = 256
CATEGORIES = "Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co".split()
GRAPHEME = "Other CR LF Control Extend ZWJ Regional_Indicator Prepend SpacingMark L V T LV LVT Extended_Pictographic".split()
CONJUNCT = "None Linker Consonant Extend".split()
NORMALIZATION_AGE = 9.0
# (first, last, distance to the lower-case letter) of the capital letters that Unicode 17.0 added.
LOWER_17 = [(0xA7CE, 0xA7CE, 1), (0xA7D2, 0xA7D2, 1), (0xA7D4, 0xA7D4, 1), (0x16EA0, 0x16EB8, 27)]
NUMERIC_17 = [(0x11DE0, 0x11DE9), (0x16FF4, 0x16FF6)]


def code_points(field):
    """Range of the code points that a field such as 0041 or 0041..005A names."""
    first, _, last = field.strip().partition("..")
    return range(int(first, 16), int(last or first, 16) + 1)


def fields(path):
    """Fields of each data line of a UCD file, comments left out."""
    for line in path.read_text(encoding="utf-8").splitlines():
        line = line.partition("#")[0].strip()
        if line:
            yield [field.strip() for field in line.split(";")]


def ranged(path):
    """(code point, further fields) of each line of a UCD file whose first field is a code point or a range."""
    for first, *rest in fields(path):
        for code in code_points(first):
            yield code, rest


def read_unicode_data(path):
    """Code point -> fields of UnicodeData.txt, with its First/Last pairs expanded."""
    rows, first = {}, None
    for row in fields(path):
        code = int(row[0], 16)
        if row[1].endswith("First>"):
            first = code
            continue
        for each in range(first if row[1].endswith("Last>") else code, code + 1):
            rows[each] = row
    return rows


def class_records(data, age, white):
    """One byte a code point: general category, age bucket (0: 8.0 and before, 1: 9.0, 2: later, 3: a number since 17.0), White_Space."""
    records = [0] * SIZE
    for code, row in data.items():
        bucket = 0 if age[code] <= 8.0 else 1 if age[code] <= 9.0 else 2
        records[code] = CATEGORIES.index(row[2]) | bucket << 5
    for first, last in NUMERIC_17:
        records[first : last + 1] = [3 << 5] * (last + 1 - first)
    for code in white:
        records[code] |= 1 << 7
    return records


def grapheme_records(folder):
    """One byte a code point: Grapheme_Cluster_Break (or Extended_Pictographic), Indic_Conjunct_Break from bit 4."""
    records = [0] * SIZE
    for code, rest in ranged(folder / "emoji" / "emoji-data.txt"):
        if rest[0] == "Extended_Pictographic":
            records[code] = GRAPHEME.index("Extended_Pictographic")
    for code, rest in ranged(folder / "auxiliary" / "GraphemeBreakProperty.txt"):
        records[code] = GRAPHEME.index(rest[0])
    for code, rest in ranged(folder / "DerivedCoreProperties.txt"):
        if rest[0] == "InCB":
            records[code] |= CONJUNCT.index(rest[1]) << 4
    return records


def script_records(folder):
    """Number of each code point's script and the names of the numbers; 0 is Unknown."""
    names, records = {"Unknown": 0}, [0] * SIZE
    for code, rest in ranged(folder / "Scripts.txt"):
        records[code] = names.setdefault(rest[0], len(names))
    return records, list(names)


def lower_records(data):
    """Number of each code point's distance to its lower-case letter, and the distances; U+0130 is left to the caller."""
    deltas, records = {0: 0}, [0] * SIZE
    for code, row in data.items():
        if row[13] and code != 0x130:
            records[code] = deltas.setdefault(int(row[13], 16) - code, len(deltas))
    for first, last, delta in LOWER_17:
        for code in range(first, last + 1):
            records[code] = deltas.setdefault(delta, len(deltas))
    return records, list(deltas)


def decompositions(data, age):
    """Code point -> (full canonical, full compatibility decomposition), and the one-step mappings; Hangul is arithmetic and left out."""
    one_step = {}
    for code, row in data.items():
        if row[5] and age[code] <= NORMALIZATION_AGE:
            words = row[5].split()
            compatibility = words[0].startswith("<")
            one_step[code] = compatibility, [int(word, 16) for word in words[compatibility:]]

    def expand(code, also_compatibility):
        compatibility, parts = one_step.get(code, (False, None))
        if parts is None or (compatibility and not also_compatibility):
            return [code]
        return [each for part in parts for each in expand(part, also_compatibility)]

    return {code: (expand(code, False), expand(code, True)) for code in one_step}, one_step


def compositions(one_step, combining, excluded):
    """Sorted (first, second, composite) of the primary composites."""
    return sorted(
        (parts[0], parts[1], code)
        for code, (compatibility, parts) in one_step.items()
        if not compatibility and len(parts) == 2 and code not in excluded and not combining[code] and not combining[parts[0]]
    )


def array(name, values, kind):
    """C text of one constant array."""
    lines, line = [], ""
    for value in values:
        text = f"{value},"
        if len(line) + len(text) > 140:
            lines.append(line)
            line = ""
        line += text
    return f"const {kind} {name}[{len(values)}] = {{\n" + "\n".join([*lines, line]) + "\n};\n\n"


def two_stage(name, records, kind):
    """C text of NAME_index and NAME_data: the record of c is data[index[c / 256] * 256 + c % 256]."""
    blocks, index = {}, []
    for start in range(0, SIZE, BLOCK):
        index.append(blocks.setdefault(tuple(records[start : start + BLOCK]), len(blocks)))
    if len(blocks) > 256:
        raise SystemExit(f"{name}: {len(blocks)} blocks do not fit a byte")
    return array(f"{name}_index", index, "uint8_t") + array(f"{name}_data", [record for block in blocks for record in block], kind)


def decomposition_tables(table):
    """C text of the pool (length, then code points) and of the two-stage offsets into it, canonical and compatibility."""
    pool, places = [0], {}

    def place(parts):
        if parts not in places:
            places[parts] = len(pool)
            pool.extend([len(parts), *parts])
        return places[parts]

    canonical, compatibility = [0] * SIZE, [0] * SIZE
    for code, (short, long) in table.items():
        canonical[code] = place(tuple(short)) if short != [code] else 0
        compatibility[code] = place(tuple(long))
    return (
        two_stage("cyg_canonical", canonical, "uint16_t")
        + two_stage("cyg_compatibility", compatibility, "uint16_t")
        + array("cyg_decomposition_pool", pool, "uint32_t")
    )


def make(folder):
    """The whole text of csrc/unicode_tables.c."""
    data = read_unicode_data(folder / "UnicodeData.txt")
    age = {code: float(rest[0]) for code, rest in ranged(folder / "DerivedAge.txt")}
    white = [code for code, rest in ranged(folder / "PropList.txt") if rest[0] == "White_Space"]
    excluded = {code for code, _ in ranged(folder / "CompositionExclusions.txt")}
    combining = [0] * SIZE
    for code, row in data.items():
        if age[code] <= NORMALIZATION_AGE:
            combining[code] = int(row[3])
    scripts, script_names = script_records(folder)
    lower, deltas = lower_records(data)
    table, one_step = decompositions(data, age)
    pairs = compositions(one_step, combining, excluded)
    parts = [
        "/* Made by tools/make_unicode_tables.py from the Unicode Character Database 16.0; do not edit. */\n",
        '#include "unicode.h"\n\n',
        two_stage("cyg_class", class_records(data, age, white), "uint8_t"),
        two_stage("cyg_grapheme", grapheme_records(folder), "uint8_t"),
        two_stage("cyg_script", scripts, "uint8_t"),
        "const char *const cyg_script_names[] = {\n" + "".join(f'    "{name}",\n' for name in script_names) + "    0,\n};\n\n",
        two_stage("cyg_combining", combining, "uint8_t"),
        two_stage("cyg_lower", lower, "uint8_t"),
        array("cyg_lower_deltas", deltas, "int32_t"),
        decomposition_tables(table),
        f"const uint32_t cyg_composition_count = {len(pairs)};\n",
        array("cyg_compositions", [value for pair in pairs for value in pair], "uint32_t"),
    ]
    return "".join(parts).rstrip("\n") + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ucd", type=Path, help="folder with UnicodeData.txt and the others")
    arguments = parser.parse_args()
    (Path(__file__).parent.parent / "csrc" / "unicode_tables.c").write_text(make(arguments.ucd), encoding="ascii")
