"""Texts in which tokenizers differ: drawn at random from every corner of Unicode, and from the tokenizer's own tokens."""

import random
import unicodedata

WORDS = "the Word HELLO world don't naïve Ünïcode straße 日本語 かな カタカナ 한국어 русский Ελληνικός עברית العربية हिन्दी ภาษาไทย Tiếng Việt".split()
WORDS += ["foo_bar", "camelCase", "XMLHttpRequest", "e.g.", "http://a.b/c?d=1&e", "user@example.com", "C++", "x=1;", "#include", "swan", "don t", "I"]
CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "n't", "'", "''", "'x", "'e", "'r", "'l"]
APOSTROPHES = "'\u2019\u02bc\uff07`\u2018"
SPACES = [chr(c) for c in (0x20, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1C, 0x1D, 0x1E, 0x1F, 0x85, 0xA0, 0x1680, 0x180E, *range(0x2000, 0x2010), 0x2028)]
SPACES += [chr(c) for c in (0x2029, 0x202F, 0x205F, 0x2060, 0x3000, 0xFEFF, 0x200B)]
CONTROLS = [
    chr(c) for c in (*range(0x20), *range(0x7F, 0xA0), 0xAD, 0x200C, 0x200D, 0x200E, 0x202A, 0x2066, 0xFEFF, 0xFFF9, 0xFFFC, 0xFFFD, 0xE0001, 0xE0020)
]
EDGES = [
    chr(c) for c in (0xD7FF, 0xE000, 0xF8FF, 0xFDD0, 0xFFFE, 0xFFFF, 0x10000, 0x1FFFF, 0x2FFFE, 0xE01EF, 0xF0000, 0x10FFFF, 0x7FF, 0x800, 0x7F, 0x80)
]
CASED = list("İıſßẞKÅǅǆǄΣςΐŉǰﬁﬃﬅŒÆØѢᲐაꙊᏸꭰ𐐀𐐨ʕʔͅµΩ")
COMPATIBLE = list("①⑩㍿㌔㎏ﬀＡｂ１２．ｱﾞﾊﾟ…‥½⅓²ª™℡㈱︙﷼ﷺꝰ𝒜𝟘ⅷⅯ﹏～·‼⁉゛゜¨´˚")
MARKS = [
    chr(c) for c in (0x300, 0x301, 0x302, 0x303, 0x308, 0x30A, 0x323, 0x327, 0x328, 0x345, 0x360, 0x483, 0x5B0, 0x64B, 0x670, 0x93C, 0x94D, 0x9BE)
]
MARKS += [chr(c) for c in (0xE31, 0xE38, 0x1DC0, 0x20D0, 0x20E3, 0x3099, 0x309A, 0xFE0E, 0xFE0F, 0xFE20, 0x1D165, 0x1E8D0, 0xE0100)]
EMOJI = [
    "😀",
    "👩\u200d👩\u200d👧\u200d👦",
    "🏳\ufe0f\u200d🌈",
    "🇯🇵",
    "🇫",
    "👍🏽",
    "❤\ufe0f",
    "1\ufe0f\u20e3",
    "🧑🏻\u200d🚀",
    "\u200d",
    "🏽",
    "☺",
    "🏴\U000e0067\U000e007f",
]
SIGNS = list('!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~') + [
    "...",
    "--",
    "->",
    "!=",
    "**",
    "``",
    "//",
    "|||",
    "¿",
    "«",
    "»",
    "—",
    "、",
    "。",
    "！",
    "，",
    "“",
    "”",
    "§",
    "°",
]
SIGNS += ["£", "€", "₿", "∑", "√", "×", "÷", "≤", "←", "■", "♪", "▁", "Ġ", "Ċ", "</w>", "##", "<0x41>", "<0xFF>", "⁇", "_", "|", "@@"]
DIGITS = [0x30, 0x660, 0x6F0, 0x966, 0x9E6, 0xE50, 0xF20, 0x1040, 0x17E0, 0x1810, 0xFF10, 0x104A0, 0x1D7CE, 0x1D7D8, 0x1FBF0]
OTHER_NUMBERS = list("²³¹¼½ⅣⅫ㊿一二三百〇௰፩᧚①⓪🄀🄌𐄇𒐀〡")
BLOCKS = [(0x20, 0x7F), (0xA0, 0x250), (0x370, 0x530), (0x590, 0x900), (0x900, 0xE00), (0xE00, 0x1200), (0x1200, 0x2000), (0x2000, 0x2E00)]
BLOCKS += [(0x2E80, 0x3400), (0x3400, 0xA000), (0xA000, 0xAC00), (0xAC00, 0xD7FC), (0xF900, 0xFB00), (0xFB00, 0xFFFE), (0x10000, 0x12000)]
BLOCKS += [(0x16000, 0x19000), (0x1B000, 0x1C000), (0x1CC00, 0x1F000), (0x1F000, 0x1FC00), (0x20000, 0x2A6E0), (0x30000, 0x32400), (0xE0000, 0xE0200)]
JAMO = [(0x1100, 0x1113), (0x1161, 0x1176), (0x11A8, 0x11C3)]


class TextMaker:
    """Random texts.

    Parameters
    ----------
    seed : int
    marks : sequence of str
        Spellings of added tokens: embedded whole, cut short, doubled, in another case and between spaces.
    tokens : sequence of str
        Texts of the vocabulary's tokens.
    longest : int
        Most fragments in a text.
    """

    def __init__(self, seed, marks=(), tokens=(), longest=14):
        self.draw = random.Random(seed)
        self.marks = [mark for mark in marks if mark]
        self.tokens = [token for token in tokens if token]
        self.longest = longest
        self.kinds = [self.word, self.contraction, self.space, self.space_run, self.control, self.edge, self.cased, self.compatible, self.marked]
        self.kinds += [self.emoji, self.sign, self.number, self.any_char, self.block, self.block, self.jamo, self.run, self.word]
        self.kinds += [self.mark, self.mark] if self.marks else []
        self.kinds += [self.token, self.token, self.token] if self.tokens else []

    def text(self):
        """A text of a few fragments; now and then of one kind alone, to meet long runs of it."""
        draw = self.draw
        kinds = draw.sample(self.kinds, draw.choice((1, 2, 3, 5))) if draw.random() < 0.3 else self.kinds
        count = 0 if draw.random() < 0.01 else draw.randint(1, draw.choice((2, 6, self.longest)))
        text = "".join([draw.choice(kinds)() for _ in range(count)])
        if draw.random() < 0.1:
            text = unicodedata.normalize(draw.choice(("NFC", "NFD", "NFKC", "NFKD")), text)
        return text

    def pick(self, choices):
        return self.draw.choice(choices)

    def word(self):
        word = self.pick(WORDS)
        word = self.pick((str, str, str.upper, str.title, str.swapcase))(word)
        return self.pick(("", " ", " ")) + word

    def contraction(self):
        tail = self.pick(CONTRACTIONS).replace("'", self.pick(APOSTROPHES) if self.draw.random() < 0.3 else "'")
        tail = "".join([self.pick((c, c, c.upper())) for c in tail]).replace("S", self.pick("SSſ"))
        return self.pick(("I", "we", " it", " you", "1", "", " ")) + tail + self.pick(("", "", " ", "s", "é"))

    def space(self):
        return self.pick((" ", " ", self.pick(SPACES)))

    def space_run(self):
        if self.draw.random() < 0.5:
            return self.pick((" ", "\n", "\t", "\r\n", "\r", "\u3000", "\xa0", "\x85")) * self.draw.randint(2, 20)
        return "".join(self.draw.choices((" ", " ", "\n", "\t", "\r", self.pick(SPACES)), k=self.draw.randint(2, 8)))

    def control(self):
        return self.pick(CONTROLS)

    def edge(self):
        return self.pick(EDGES)

    def cased(self):
        return self.pick(CASED)

    def compatible(self):
        return self.pick(COMPATIBLE)

    def marked(self):
        base = self.pick(("e", "o", "A", "か", "ハ", "क", "ا", "ก", "한", "", " ", "1", "👍", self.any_char()))
        return base + "".join(self.draw.choices(MARKS, k=self.draw.choice((1, 1, 2, 5))))

    def emoji(self):
        return self.pick(EMOJI)

    def sign(self):
        return self.pick(("", "", " ")) + self.pick(SIGNS) * self.draw.choice((1, 1, 1, 2, 5))

    def number(self):
        zero = self.pick(DIGITS) if self.draw.random() < 0.4 else 0x30
        digits = "".join([chr(zero + self.draw.randrange(10)) for _ in range(self.draw.randint(1, 9))])
        return self.pick((digits, digits, " " + digits, digits + ",000.50", "-" + digits, digits + self.pick(OTHER_NUMBERS)))

    def any_char(self):
        while True:
            char = chr(self.draw.randrange(self.pick((0x80, 0x800, 0x10000, 0x20000, 0x110000))))
            if not "\ud800" <= char <= "\udfff":
                return char

    def block(self):
        first, end = self.pick(BLOCKS)
        return "".join([chr(self.draw.randrange(first, end)) for _ in range(self.draw.randint(1, 4))])

    def jamo(self):
        return "".join([chr(self.draw.randrange(*self.pick(JAMO))) for _ in range(self.draw.randint(1, 4))])

    def run(self):
        return self.pick((self.any_char(), self.pick("aA1 .\n"), self.pick(WORDS))) * self.draw.randint(2, self.pick((5, 12, 60)))

    def mark(self):
        mark = self.pick(self.marks)
        cut = self.draw.randint(0, len(mark))
        shape = self.pick((mark, mark, mark, mark[:cut], mark[cut:], mark * 2, mark.upper(), mark.lower(), mark[:cut] + " " + mark[cut:], mark + "s"))
        return self.space_or_none() + shape + self.space_or_none()

    def space_or_none(self):
        return self.pick(("", "", "", " ", self.pick(SPACES), "  "))

    def token(self):
        return self.pick(self.tokens)
