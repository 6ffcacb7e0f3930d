"""The libraries that own the tokenizer formats, behind one interface: what each gives for a text, and what cygnet gives beside it.

`compare(text)` of a peer returns the facets that differ, {facet: (cygnet's, the library's)}; empty where all is equal.
"""

import ctypes
import random
from itertools import islice

from cygnet import Tokenizer
from cygnet.errors import CygnetError
from cygnet.tokenizers.truncation import STRATEGIES, Padding, Truncation

FAILED = "raises"


class TokenizersPeer:
    """tokenizer.json against the `tokenizers` library: encodings of texts and pairs, windows, batches with padding, decoding."""

    def __init__(self, path):
        import tokenizers

        self.theirs = tokenizers.Tokenizer.from_file(str(path))
        self.ours = Tokenizer.from_file(path)
        self.theirs_cutting = tokenizers.Tokenizer.from_file(str(path))
        self.ours_cutting = Tokenizer.from_file(path)
        self.spellings = self.theirs.get_vocab(with_added_tokens=True)

    def marks(self):
        return [token.content for token in self.theirs.get_added_tokens_decoder().values()]

    def token_texts(self, count=3000):
        ids = random.Random(0).choices(list(self.spellings.values()), k=count)
        return [self.theirs.decode([i], skip_special_tokens=False) for i in ids]

    def compare(self, text, thorough=False):
        wanted = self.encoded(self.theirs, text)
        found = facets_that_differ(self.encoded(self.ours, text), wanted)
        if FAILED not in wanted:
            found |= self.decoded(wanted["ids"])
        if thorough:
            found |= self.compare_more(text)
        return found

    def encoded(self, tokenizer, text, pair=None, special=True):
        try:
            encoding = tokenizer.encode(text, pair, add_special_tokens=special)
        except BaseException as error:
            return reraise_or(error)
        found = parts_of(encoding)
        # The library's sequence ids of padding are of no use.
        return found if 0 not in found["attention_mask"] else {name: value for name, value in found.items() if name != "sequence_ids"}

    def decoded(self, ids):
        both = [{f"decode skip={skip}": decode_or(t, ids, skip) for skip in (True, False)} for t in (self.ours, self.theirs)]
        return facets_that_differ(*both)

    def compare_more(self, text):
        """Without special tokens, as a pair, cut to windows, in a padded batch, random ids decoded, decoded in a stream."""
        draw = random.Random(text)
        half, other = text[: len(text) // 2], text[len(text) // 2 :]
        found = facets_that_differ(*(self.encoded(t, text, None, False) for t in (self.ours, self.theirs)), "plain ")
        for special in (True, False):
            found |= facets_that_differ(*(self.encoded(t, half, other, special) for t in (self.ours, self.theirs)), "pair ", special)
        found |= self.cut(draw, half[:40], other[:40])
        ids = draw.choices(list(self.spellings.values()), k=draw.randint(1, 8))
        found |= {f"random ids {name}": (*value, ids) for name, value in self.decoded(ids).items()}
        stream = self.ours.stream_decoder()
        streamed = "".join([stream.push(i) for i in ids]) + stream.flush()
        return found | facets_that_differ({"stream": streamed}, {"stream": decode_or(self.theirs, ids, True)}, "", ids)

    def cut(self, draw, text, pair):
        special = draw.random() < 0.7
        # Less room than the special tokens take raises here and overflows there.
        least = max(map(self.ours.post_processor.added, (False, True))) if special else 0
        rule = {"max_length": least + draw.randint(0, 12), "stride": draw.choice((0, 0, 1, 3)), "strategy": draw.choice(STRATEGIES)}
        direction = draw.choice(("left", "right"))
        pad = {"direction": draw.choice(("left", "right")), "length": draw.choice((None, None, 9)), "pad_to_multiple_of": draw.choice((None, 4))}
        pad |= {"pad_id": 1, "pad_type_id": 3, "pad_token": "[PAD]"}
        self.ours_cutting.truncation = Truncation(rule["max_length"], rule["strategy"], rule["stride"], direction == "left")
        left = pad["direction"] == "left"
        self.ours_cutting.padding = Padding(pad["length"], left, pad["pad_to_multiple_of"], pad["pad_id"], pad["pad_type_id"], pad["pad_token"])
        try:
            self.theirs_cutting.enable_truncation(**rule, direction=direction)
        except BaseException as error:
            reraise_or(error)
            return {}
        self.theirs_cutting.enable_padding(**pad)
        batch = [text, (text, pair)] if draw.random() < 0.5 else [text, pair]
        return facets_that_differ(
            *(self.batch(t, batch, special) for t in (self.ours_cutting, self.theirs_cutting)), "batch ", rule, direction, pad, special
        )

    def batch(self, tokenizer, batch, special):
        try:
            encodings = tokenizer.encode_batch(batch, add_special_tokens=special)
        except BaseException as error:
            return reraise_or(error)
        return {f"{name}[{i}]": value for i, encoding in enumerate(encodings) for name, value in windows_of(encoding).items()}


def decode_or(tokenizer, ids, skip):
    try:
        return tokenizer.decode(ids, skip_special_tokens=skip)
    except BaseException as error:
        reraise_or(error)
        return FAILED


def parts_of(encoding):
    return {
        "ids": encoding.ids,
        "offsets": [tuple(span) for span in encoding.offsets],
        "word_ids": encoding.word_ids,
        "type_ids": encoding.type_ids,
        "special_tokens_mask": encoding.special_tokens_mask,
        "attention_mask": encoding.attention_mask,
        "sequence_ids": encoding.sequence_ids,
        "tokens": list(encoding.tokens),
    }


def windows_of(encoding):
    """Every window of an encoding; the library's sequence ids of padding and of further windows are of no use."""
    found = {name: value for name, value in parts_of(encoding).items() if name != "sequence_ids"}
    return found | {f"overflowing {name}": [parts_of(window)[name] for window in encoding.overflowing] for name in found}


def reraise_or(error):
    """What a tokenizer that raised has given; panics of a library come as bare BaseException."""
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        raise error
    if isinstance(error, CygnetError) or type(error).__module__ != "builtins" or type(error) in (Exception, ValueError, TypeError, OverflowError):
        return {FAILED: True}
    raise error


def facets_that_differ(ours, theirs, prefix="", *settings):
    """Facets with unequal values; what the library fails at, cygnet may do."""
    if type(theirs) is dict and (FAILED in theirs or FAILED in theirs.values()):
        return {}
    return {
        f"{prefix}{name}": (ours.get(name), theirs.get(name), *settings) for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)
    }


class SentencePiecePeer:
    """A .model file against the `sentencepiece` library: ids, pieces, offsets, decoding."""

    def __init__(self, path):
        import sentencepiece

        self.theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
        self.ours = Tokenizer.from_file(path)

    def marks(self):
        special = range(min(300, self.theirs.vocab_size()))
        return [self.theirs.id_to_piece(i) for i in special if len(self.theirs.id_to_piece(i)) > 2]

    def token_texts(self, count=3000):
        return [self.theirs.id_to_piece(i).replace("▁", " ") for i in random.Random(0).choices(range(self.theirs.vocab_size()), k=count)]

    def compare(self, text, thorough=False):
        pieces = self.theirs.encode(text, return_type="proto").pieces
        at = [i for i, char in enumerate(text) for _ in char.encode()] + [len(text)]
        encoding = self.ours.encode(text)
        ours = {"ids": encoding.ids, "tokens": encoding.tokens, "offsets": [tuple(span) for span in encoding.offsets]}
        theirs = {"ids": [piece.id for piece in pieces], "tokens": [piece.piece for piece in pieces]}
        theirs["offsets"] = [(at[piece.begin], at[piece.end]) for piece in pieces]
        ours["decode"], theirs["decode"] = self.ours.decode(theirs["ids"]), self.theirs.decode(theirs["ids"])
        if thorough:
            draw = random.Random(text)
            ids = draw.choices(range(self.theirs.vocab_size()), k=draw.randint(1, 12))
            ours["random ids"], theirs["random ids"] = (self.ours.decode(ids), ids), (self.theirs.decode(ids), ids)
            stream = self.ours.stream_decoder()
            ours["stream"], theirs["stream"] = "".join([stream.push(i) for i in ids]) + stream.flush(), theirs["random ids"][0]
            ours["batch"] = [e.ids for e in self.ours.encode_batch([text, text[1:]])]
            theirs["batch"] = self.theirs.encode([text, text[1:]])
        return facets_that_differ(ours, theirs)


class LlamaCppPeer:
    """The vocabulary of a GGUF file against llama.cpp: ids with and without marks parsed, decoding."""

    def __init__(self, path):
        import llama_cpp

        self.lib = llama_cpp
        quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(quiet, None)
        self._keep = quiet
        params = llama_cpp.llama_model_default_params()
        params.vocab_only = True
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), params)
        self.vocab = llama_cpp.llama_model_get_vocab(self.model)
        self.size = llama_cpp.llama_vocab_n_tokens(self.vocab)
        self.ours = Tokenizer.from_file(path)

    def close(self):
        """Frees the model: the library has room for a few dozen."""
        self.lib.llama_model_free(self.model)

    def marks(self):
        return list(self.ours.added.by_content)[:200]

    def token_texts(self, count=3000):
        return [self.decode([i], True) for i in random.Random(0).choices(range(self.size), k=count)]

    def encode(self, text, special, parse):
        data = text.encode()
        room = len(data) * 2 + 16
        ids = (self.lib.llama_token * room)()
        count = self.lib.llama_tokenize(self.vocab, data, len(data), ids, room, special, parse)
        assert count >= 0
        return list(islice(ids, count))

    def decode(self, ids, show_special):
        tokens = (self.lib.llama_token * max(1, len(ids)))(*ids)
        room = 4096 + 8192 * len(ids)
        text = ctypes.create_string_buffer(room)
        size = self.lib.llama_detokenize(self.vocab, tokens, len(ids), text, room, False, show_special)
        assert size >= 0
        return text.raw[:size].decode("utf-8", "replace")

    def compare(self, text, thorough=False):
        ours, theirs = {}, {}
        for special, parse in ((True, True), (False, False)) if thorough else ((True, True),):
            name = f"ids special={special} parse={parse}"
            ours[name] = self.ours.encode(text, add_special_tokens=special, parse_special=parse).ids
            theirs[name] = self.encode(text, special, parse)
        ids = theirs["ids special=True parse=True"]
        if thorough:
            draw = random.Random(text)
            some = draw.choices(range(self.size), k=draw.randint(1, 8))
            ours["stages"], theirs["stages"] = self.ours.pipeline.aligned(text, True).ids, self.encode(text, False, True)
        for kind, given in (("", ids), ("random ids ", some)) if thorough else (("", ids),):
            for skip in (True, False):
                name = f"{kind}decode skip={skip}"
                ours[name], theirs[name] = (self.ours.decode(given, skip_special_tokens=skip), given), (self.decode(given, not skip), given)
        return facets_that_differ(ours, theirs)
