"""Random tokenizer.json documents: every component of the format in random settings, over small vocabularies."""

import random

from cygnet.tokenizers.byte_alphabet import BYTE_TO_CHAR

BEHAVIOURS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
REGEXES = [
    r"\s+",
    r"\d",
    r"[aeiou]+",
    r"\p{L}+|\p{N}+",
    r"'s|'t| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"\w+|[^\w\s]+",
    "(?i:THE)",
    "^.|.$",
    "b*",
]
REGEXES += [r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+", r"\p{Lu}\p{Ll}*", r"[\u4e00-\u9fff]", r"\b"]
STRINGS = [" ", "e", "an", "\n", "é", "▁", "--", ""]
ALPHABET = list("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,!?'-_\n\t") + list(
    "éàñüßœıİςжדقक日本語한あア１²½▁Ġ\u0301\u200d😀👍"
)
WORDS = "the The an and in ing er re on at it is he we 's 't 12 00 th ll st est ed naïve straße 日本 语言 ﬁn ab aab".split()
WORDS += "▁the Ġa Ġthe </w> er</w> e</w> ##s ##ing".split()
ADDED = ["<s>", "</s>", "[MASK]", "<unk>", "[PAD]", "foo", "Foo Bar", "the", "é", " x", "😀", "İ", "[CLS]", "[SEP]", "<|im|>", "a", "\n\n", "ﬁn"]
SPECIAL = ["[CLS]", "[SEP]", "<s>", "</s>"]


class DocumentMaker:
    """Documents from a seed; each is valid for the `tokenizers` library or refused by it."""

    def __init__(self, seed, charsmap=None):
        self.draw = random.Random(seed)
        self.charsmap = charsmap

    def flag(self):
        return self.draw.random() < 0.5

    def pick(self, choices):
        return self.draw.choice(choices)

    def some(self, make, most):
        return [make() for _ in range(self.draw.randint(1, most))]

    def document(self):
        model = self.model()
        added = self.added()
        tokens = model["vocab"] if isinstance(model["vocab"], dict) else {row[0]: i for i, row in enumerate(model["vocab"])}
        special = {token: tokens[token] for token in SPECIAL}
        return {
            "version": "1.0",
            "truncation": self.truncation() if self.draw.random() < 0.15 else None,
            "padding": self.padding() if self.draw.random() < 0.15 else None,
            "added_tokens": added,
            "normalizer": self.normalizer() if self.draw.random() < 0.7 else None,
            "pre_tokenizer": self.pre_tokenizer() if self.draw.random() < 0.85 else None,
            "post_processor": self.post_processor(special) if self.draw.random() < 0.7 else None,
            "decoder": self.decoder() if self.draw.random() < 0.8 else None,
            "model": model,
        }

    def pattern(self):
        return {"Regex": self.pick(REGEXES)} if self.flag() else {"String": self.pick(STRINGS)}

    # Normalizers

    def normalizer(self, deep=True):
        kinds = ["NFC", "NFD", "NFKC", "NFKD", "Nmt", "Lowercase", "StripAccents", "Strip", "Replace", "Prepend", "BertNormalizer", "ByteLevel"]
        kinds += ["Precompiled"] if self.charsmap else []
        kind = self.pick(kinds + ["Sequence"] * 5 * deep)
        if kind == "Sequence":
            return {"type": kind, "normalizers": self.some(lambda: self.normalizer(False), 3)}
        more = {
            "Strip": lambda: {"strip_left": self.flag(), "strip_right": self.flag()},
            "Replace": lambda: {"pattern": self.pattern(), "content": self.pick(["", "▁", "xy", " ", "é"])},
            "Prepend": lambda: {"prepend": self.pick(["▁", "ab", " "])},
            "Precompiled": lambda: {"precompiled_charsmap": self.charsmap},
            "BertNormalizer": lambda: {
                "clean_text": self.flag(),
                "handle_chinese_chars": self.flag(),
                "strip_accents": self.pick([None, True, False]),
                "lowercase": self.flag(),
            },
        }  # fmt: skip
        return {"type": kind, **more.get(kind, dict)()}

    # Pre-tokenizers

    def pre_tokenizer(self, deep=True):
        kinds = [
            "ByteLevel",
            "ByteLevel",
            "Metaspace",
            "Metaspace",
            "Whitespace",
            "WhitespaceSplit",
            "BertPreTokenizer",
            "Punctuation",
            "Digits",
            "Split",
        ]
        kind = self.pick([*kinds, "Split", "CharDelimiterSplit", "UnicodeScripts", "FixedLength", *["Sequence"] * 6 * deep])
        if kind == "Sequence":
            return {"type": kind, "pretokenizers": self.some(lambda: self.pre_tokenizer(False), 3)}
        more = {
            "ByteLevel": lambda: {"add_prefix_space": self.flag(), "trim_offsets": self.flag(), "use_regex": self.flag()},
            "Metaspace": lambda: {"replacement": self.pick("▁▁_"), "prepend_scheme": self.pick(["always", "first", "never"]), "split": self.flag()},
            "Punctuation": lambda: {"behavior": self.pick(BEHAVIOURS)},
            "Digits": lambda: {"individual_digits": self.flag()},
            "Split": lambda: {"pattern": self.pattern(), "behavior": self.pick(BEHAVIOURS), "invert": self.flag()},
            "CharDelimiterSplit": lambda: {"delimiter": self.pick(" e▁")},
            "FixedLength": lambda: {"length": self.draw.randint(1, 6)},
        }
        return {"type": kind, **more.get(kind, dict)()}

    # Models

    def tokens(self, *needed):
        draw = self.draw
        letters = draw.sample(ALPHABET, draw.randint(20, len(ALPHABET)))
        if draw.random() < 0.5:
            letters += BYTE_TO_CHAR
        out = [*needed, *SPECIAL, *letters, *draw.sample(WORDS, draw.randint(5, len(WORDS)))]
        for _ in range(draw.randint(0, 80)):
            out.append(draw.choice(out[4:]) + draw.choice(out[4:]))
        return list(dict.fromkeys([token for token in out if len(token) < 12]))

    def model(self):
        return self.pick([self.bpe, self.bpe, self.word_piece, self.unigram, self.word_level])()

    def bpe(self):
        fallback = self.draw.random() < 0.3
        tokens = self.tokens("<unk>", *([f"<0x{b:02X}>" for b in range(256)] if fallback else []))
        # The bytes of a prefix or suffix that are spelled too have offsets beyond the text in the library.
        prefix, suffix = ("", "") if fallback else (self.pick(["", "", "", "##"]), self.pick(["", "", "", "</w>"]))
        letters = [t for t in tokens if len(t) == 1]
        tokens += [prefix + letter for letter in letters if prefix] + [letter + suffix for letter in letters if suffix]
        vocab = dict.fromkeys(tokens)
        merges = {}
        names = [t for t in vocab if not t.startswith("<0x")]
        for _ in range(self.draw.randint(10, 200)):
            left, right = self.pick(names), self.pick(names)
            if prefix and not right.startswith(prefix):
                continue
            merged = left + right[len(prefix) :]
            if len(merged) < 10 and " " not in left + right:
                merges[left, right] = None
                vocab[merged] = None
                names += [merged] * 3
        return {
            "type": "BPE", "dropout": None, "unk_token": self.pick([None, "<unk>"]), "continuing_subword_prefix": prefix or None,
            "end_of_word_suffix": suffix or None, "fuse_unk": self.flag(), "byte_fallback": fallback or self.draw.random() < 0.1,
            "ignore_merges": self.flag(), "vocab": {t: i for i, t in enumerate(vocab)}, "merges": [list(m) for m in merges],
        }  # fmt: skip

    def word_piece(self):
        prefix = self.pick(["##", "##", "@@", ""])
        tokens = self.tokens("[UNK]")
        tokens = list(dict.fromkeys([*tokens, *(prefix + t for t in self.draw.sample(tokens[5:], min(60, len(tokens) - 5)))]))
        vocab = {t: i for i, t in enumerate(tokens)}
        return {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": prefix,
            "max_input_chars_per_word": self.pick([100, 4, 12]),
            "vocab": vocab,
        }

    def unigram(self):
        fallback = self.flag()
        tokens = self.tokens("<unk>", *([f"<0x{b:02X}>" for b in range(256)] if fallback else []))
        rows = [[t, round(-self.draw.random() * 12, 3)] for t in tokens]
        return {"type": "Unigram", "unk_id": 0, "vocab": rows, "byte_fallback": fallback}

    def word_level(self):
        tokens = self.tokens("<unk>")
        return {"type": "WordLevel", "vocab": {t: i for i, t in enumerate(tokens)}, "unk_token": "<unk>"}

    # Around the model

    def added(self):
        names = self.draw.sample(ADDED, self.draw.randint(0, 7))
        return [
            {"id": i, "content": name, "single_word": self.draw.random() < 0.25, "lstrip": self.draw.random() < 0.25,
             "rstrip": self.draw.random() < 0.25, "normalized": self.flag(), "special": self.flag()}
            for i, name in enumerate(names, 2000)
        ]  # fmt: skip

    def truncation(self):
        strategy, direction = self.pick(["LongestFirst", "OnlyFirst", "OnlySecond"]), self.pick(["Left", "Right"])
        return {"max_length": self.draw.randint(7, 12), "strategy": strategy, "stride": self.pick([0, 0, 1]), "direction": direction}

    def padding(self):
        strategy, direction = self.pick(["BatchLongest", {"Fixed": 6}, {"Fixed": 40}]), self.pick(["Left", "Right"])
        return {
            "strategy": strategy,
            "direction": direction,
            "pad_to_multiple_of": self.pick([None, 8]),
            "pad_id": 3,
            "pad_type_id": 2,
            "pad_token": "[PAD]",
        }

    def post_processor(self, special, deep=True):
        kind = self.pick(["TemplateProcessing", "BertProcessing", "RobertaProcessing", "ByteLevel", *["Sequence"] * 2 * deep])
        if kind == "Sequence":
            byte_level = {"type": "ByteLevel", "add_prefix_space": self.flag(), "trim_offsets": self.flag(), "use_regex": True}
            return {"type": kind, "processors": self.draw.sample([byte_level, self.post_processor(special, False)], self.draw.randint(1, 2))}
        marks = {"sep": ["[SEP]", special["[SEP]"]], "cls": ["[CLS]", special["[CLS]"]]}
        more = {
            "TemplateProcessing": lambda: self.template(special),
            "BertProcessing": lambda: marks,
            "RobertaProcessing": lambda: {**marks, "trim_offsets": self.flag(), "add_prefix_space": self.flag()},
            "ByteLevel": lambda: {"add_prefix_space": self.flag(), "trim_offsets": self.flag(), "use_regex": self.flag()},
        }
        return {"type": kind, **more[kind]()}

    def template(self, special):
        def mark():
            return {"SpecialToken": {"id": self.pick(SPECIAL), "type_id": self.draw.randint(0, 2)}}

        def text(name):
            return {"Sequence": {"id": name, "type_id": self.draw.randint(0, 2)}}

        def marks():
            return [mark() for _ in range(self.draw.randint(0, 2))]

        single, pair = [*marks(), text("A"), *marks()], [*marks(), text("A"), *marks(), text("B"), *marks()]
        return {"single": single, "pair": pair, "special_tokens": {t: {"id": t, "ids": [i], "tokens": [t]} for t, i in special.items()}}

    def decoder(self, deep=True):
        kinds = ["ByteLevel", "WordPiece", "Metaspace", "BPEDecoder", "ByteFallback", "Fuse", "Strip", "Replace", "CTC"]
        kind = self.pick(kinds + ["Sequence"] * 5 * deep)
        if kind == "Sequence":
            return {"type": kind, "decoders": self.some(lambda: self.decoder(False), 4)}
        more = {
            "ByteLevel": lambda: {"add_prefix_space": True, "trim_offsets": True, "use_regex": True},
            "WordPiece": lambda: {"prefix": self.pick(["##", "@@"]), "cleanup": self.flag()},
            "Metaspace": lambda: {"replacement": "▁", "prepend_scheme": self.pick(["always", "first", "never"]), "split": self.flag()},
            "BPEDecoder": lambda: {"suffix": self.pick(["</w>", "e"])},
            "Strip": lambda: {"content": self.pick(" ae▁"), "start": self.draw.randint(0, 2), "stop": self.draw.randint(0, 2)},
            "Replace": lambda: {"pattern": self.pattern(), "content": self.pick(["", " ", "xy"])},
            "CTC": lambda: {"pad_token": self.pick(["<pad>", "a"]), "word_delimiter_token": "|", "cleanup": self.flag()},
        }
        return {"type": kind, **more.get(kind, dict)()}
