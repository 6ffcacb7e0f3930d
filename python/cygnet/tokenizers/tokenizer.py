"""Tokenizer: text to ids and back, built from the stages that the tokenizer's own file names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from functools import cached_property
from pathlib import Path
from typing import Any

from cygnet._core._decode import DecodeTable
from cygnet.errors import CopyError, OptionError
from cygnet.tokenizers.added_tokens import AddedToken, AddedVocabulary, Leading
from cygnet.tokenizers.arguments import as_ids, as_path, as_spans, as_text, as_texts, check_encodings
from cygnet.tokenizers.assembly import Assembly
from cygnet.tokenizers.components import Decoder, Model, Normalizer, PostProcessor, PreTokenizer
from cygnet.tokenizers.decode_table import decode_table
from cygnet.tokenizers.encoding import Encoding
from cygnet.tokenizers.pipeline import Pipeline, well_formed
from cygnet.tokenizers.postprocessors import Plain, ended_by
from cygnet.tokenizers.streaming import StreamDecoder
from cygnet.tokenizers.truncation import Padding, Truncation, pad_batch


class Tokenizer:
    """Turns text into the ids a model was trained on, and ids back into text.

    Parameters
    ----------
    model : Model
    normalizer, pre_tokenizer, post_processor, decoder : optional
        Stages as described in cygnet.tokenizers.components; None leaves the stage out.
    added_tokens : iterable of AddedToken
    leading : callable, optional
        The token that a stretch between added tokens begins with; see AddedVocabulary.
    target : Tokenizer, optional
        Encodes texts in the language that a model answers in, where these are cut otherwise than what it reads.
    truncation : Truncation, optional
    padding : Padding, optional
        Applied by every encode, as the tokenizer's file asks; see no_truncation() and no_padding().
    settings : dict, optional
        What lies beside the vocabulary: bos_token, eos_token, pad_token, unk_token, model_max_length, chat_template,
        clean_up_tokenization_spaces.

    Examples
    --------
    >>> from cygnet.tokenizers.wordlevel import WordLevel
    >>> from cygnet.tokenizers.pretokenizers import WhitespaceSplit
    >>> tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "hello": 1}, "[UNK]"), pre_tokenizer=WhitespaceSplit())
    >>> tokenizer.encode("hello there").ids
    [1, 0]
    """

    def __init__(
        self,
        model: Model,
        *,
        normalizer: Normalizer | None = None,
        pre_tokenizer: PreTokenizer | None = None,
        post_processor: PostProcessor | None = None,
        decoder: Decoder | None = None,
        added_tokens: Iterable[AddedToken] = (),
        leading: Leading | None = None,
        target: Tokenizer | None = None,
        truncation: Truncation | None = None,
        padding: Padding | None = None,
        settings: dict[str, Any] | None = None,
    ):
        self.model = model
        self.normalizer = normalizer
        self.pre_tokenizer = pre_tokenizer
        self.post_processor = post_processor or Plain()
        self.decoder = decoder
        self.added = AddedVocabulary(added_tokens, normalizer, leading)
        self.target = target
        self.truncation = truncation
        self.padding = padding
        self.settings = dict(settings or {})
        self._origin: tuple[str, Any] | None = None  # the class method that made it, and from what
        self._end: int | None = None
        self.pipeline = Pipeline(self.added, normalizer, pre_tokenizer, model)

    # Loading

    @classmethod
    def from_file(cls, path: str | Path) -> Tokenizer:
        """Tokenizer from one file, or from a folder that holds one; the kind is told by the content.

        Parameters
        ----------
        path : str or Path
            tokenizer.json, vocab.json (merges.txt beside it), vocab.txt, a SentencePiece model, tiktoken ranks, a GGUF file, or a folder.

        Raises
        ------
        OptionError
            Where it is no path.
        TokenizerError
            Where the file is damaged or of no known kind; names the place.
        """
        from cygnet.tokenizers.loaders import load_file

        path = as_path(path)
        return load_file(path)._made_by("from_file", path.absolute())

    @classmethod
    def from_pretrained(cls, source: str | Path) -> Tokenizer:
        """Tokenizer of a model folder or file, with the settings of tokenizer_config.json and its neighbours.

        Parameters
        ----------
        source : str or Path
            A model on this machine as `cygnet.load` takes it: a path, `pkg:NAME`, or a Hugging Face id in the local cache.

        Raises
        ------
        ModelNotFound
            Nothing under that name.
        TokenizerError
            Where a file is damaged or none is found.
        """
        from cygnet.hub import resolve
        from cygnet.tokenizers.loaders import load_pretrained

        path = resolve(source).absolute()
        return load_pretrained(path)._made_by("from_pretrained", path)

    @classmethod
    def from_json(cls, document: dict | str) -> Tokenizer:
        """Tokenizer from the content of a tokenizer.json, as text or already parsed."""
        from cygnet.tokenizers.json_loader import tokenizer_from_document, tokenizer_from_text

        made = tokenizer_from_text(document) if isinstance(document, (str, bytes)) else tokenizer_from_document(document)
        return made._made_by("from_json", document)

    # Copying: the compiled stages never change, so that copies share them; another process makes them again.

    def _made_by(self, maker: str, source: Any) -> Tokenizer:
        self._origin = maker, source
        return self

    def __copy__(self) -> Tokenizer:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, settings=deepcopy(self.settings))
        return other

    def __deepcopy__(self, memo: dict) -> Tokenizer:
        return self.__copy__()

    def __reduce__(self):
        if self._origin is None:
            raise CopyError("a tokenizer put together from stages cannot be pickled: make it from a file or a document, or in each process")
        return _made_again, (*self._origin, self.settings, self.truncation, self.padding, self._end)

    # Encoding

    def encode(
        self,
        text: str,
        pair: str | None = None,
        *,
        add_special_tokens: bool = True,
        parse_special: bool = True,
        literal: Sequence[tuple[int, int]] = (),
        max_length: int | None = None,
        truncation: str = "longest_first",
        stride: int = 0,
        return_overflow: bool = False,
    ) -> Encoding:
        """Ids of a text or of a pair of texts.

        A lone surrogate in the text is read as U+FFFD, everywhere.

        Parameters
        ----------
        text, pair : str
        add_special_tokens : bool
            Put the model's own marks (BOS, [CLS] ...) around the text.
        parse_special : bool
            Read the spelling of a special token inside the text as that token. False for text that comes from outside.
        literal : sequence of (int, int)
            Spans (start, end) of the text that come from outside, where special tokens and added tokens written as marks (</think>) are text.
        max_length : int, optional
            Cut so that no more ids come out, special tokens included.
        truncation : {"longest_first", "only_first", "only_second"}
        stride : int
            How many ids of the window before each overflow window repeats.
        return_overflow : bool
            Keep what was cut off as further windows in .overflowing.

        Returns
        -------
        Encoding

        Raises
        ------
        OptionError
            Where max_length leaves no room, stride is not less than that room, or the strategy names a text that is too short.
        """
        texts = as_texts((text, pair))
        parse_special, literal = bool(parse_special), literal and as_spans(literal)
        parts = [self.pipeline.aligned(texts[0], parse_special, literal) if literal else self.pipeline.ids(texts[0], parse_special)]
        parts += [self.pipeline.ids(t, parse_special) for t in texts[1:]]
        rule = self._rule(max_length, truncation, stride, return_overflow)
        encoding = self._assembly(rule, add_special_tokens, parse_special).encoding(parts, *texts)
        return self.padding.apply(encoding) if self.padding else encoding

    def encode_batch(
        self,
        texts: Sequence[str | tuple[str, str]],
        *,
        threads: int | None = None,
        add_special_tokens: bool = True,
        parse_special: bool = True,
        max_length: int | None = None,
        truncation: str = "longest_first",
        stride: int = 0,
        return_overflow: bool = False,
    ) -> list[Encoding]:
        """encode() of every text (or pair of texts), on all threads; see there for the options.

        Parameters
        ----------
        texts : sequence of str or of (str, str)
        threads : int, optional
            Default: as many as the process may use.
        """
        if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
            raise OptionError(f"a list of texts is wanted, not {texts!r:.80}; encode() takes one text")
        parse_special = bool(parse_special)
        texts = list(texts)
        rule = self._rule(max_length, truncation, stride, return_overflow)
        assembly = self._assembly(rule, add_special_tokens, parse_special)
        if all([type(t) is str for t in texts]):
            encodings = list(map(assembly.later, self.pipeline.ids_of_many(texts, parse_special, threads), texts))
        else:
            several = [as_texts(t) for t in texts]
            ready = iter(self.pipeline.ids_of_many([t for group in several for t in group], parse_special, threads))
            encodings = [assembly.encoding([next(ready) for _ in group], *group) for group in several]
        return pad_batch(encodings, self.padding) if self.padding else encodings

    def _rule(self, max_length: int | None, truncation: str, stride: int, return_overflow: bool) -> Truncation | None:
        return self.truncation if max_length is None else Truncation(max_length, truncation, stride, keep_overflow=return_overflow)

    def _assembly(self, rule: Truncation | None, add_special_tokens: bool, parse_special: bool) -> Assembly:
        return Assembly(self.pipeline, self.post_processor, self._as_encoded, rule, add_special_tokens, parse_special)

    def pad(self, encodings: Sequence[Encoding], padding: Padding | None = None) -> list[Encoding]:
        """Encodings of equal length, by the given rule or the tokenizer's own (default: to the longest, on the right)."""
        rule = padding or self.padding or Padding(pad_id=self.pad_id or 0, pad_token=self.settings.get("pad_token") or "[PAD]")
        return pad_batch(check_encodings(encodings, rule), rule)

    def count(self, text: str, *, add_special_tokens: bool = False, parse_special: bool = True) -> int:
        """How many ids encode() gives for the text."""
        return len(self.encode(text, add_special_tokens=add_special_tokens, parse_special=parse_special))

    def no_truncation(self) -> None:
        """Turns off the truncation that the tokenizer's file asks for."""
        self.truncation = None

    def no_padding(self) -> None:
        """Turns off the padding that the tokenizer's file asks for."""
        self.padding = None

    def explain(self, text: str) -> str:
        """How a BPE tokenizer merges the text, word by word and step by step, as lines to print.

        Raises
        ------
        TokenizerError
            Where the model is no BPE.
        """
        from cygnet.tokenizers.explanation import explain, lines

        return "\n".join(lines(explain(self, well_formed(as_text(text)))))

    # Decoding

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True, clean_up: bool | None = None) -> str:
        """Text of ids; ids beyond the vocabulary are passed over, broken UTF-8 becomes U+FFFD.

        Parameters
        ----------
        ids : iterable of int
        skip_special_tokens : bool
        clean_up : bool, optional
            Take out the spaces before punctuation that English word tokenizers leave; default: as the tokenizer's settings say.

        Raises
        ------
        OptionError
            Something among the ids is no whole number of at least 0.
        """
        table = self._decode_table
        if table is None:
            text = self.decoder.decode(self._tokens_of(as_ids(ids), skip_special_tokens))
        else:
            try:
                text = table.decode(ids if type(ids) is list else as_ids(ids), skip_special_tokens)
            except TypeError:
                text = table.decode(as_ids(ids), skip_special_tokens)
        if clean_up is None:
            clean_up = bool(self.settings.get("clean_up_tokenization_spaces"))
        if clean_up:
            from cygnet.tokenizers.decoders import clean_up_spaces

            return clean_up_spaces(text)
        return text

    @cached_property
    def _decode_table(self) -> DecodeTable | None:
        return decode_table(self.decoder, self.id_to_token, self.added.special_contents)

    def decode_batch(self, batch: Iterable[Iterable[int]], skip_special_tokens: bool = True, clean_up: bool | None = None) -> list[str]:
        """decode() of every list of ids."""
        if isinstance(batch, (str, bytes)) or not isinstance(batch, Iterable):
            raise OptionError(f"a list of lists of token ids is wanted, not {batch!r:.80}")
        return [self.decode(ids, skip_special_tokens, clean_up) for ids in batch]

    def stream_decoder(self, skip_special_tokens: bool = True) -> StreamDecoder:
        """A decoder that takes one id at a time; its pieces join to decode(all ids, clean_up=False)."""
        return StreamDecoder(self, skip_special_tokens)

    def _tokens_of(self, ids: list[int], skip_special_tokens: bool) -> list[str]:
        hidden = self.added.special_contents if skip_special_tokens else ()
        if getattr(self.decoder, "keeps_hidden", False):
            return ["" if t in hidden else t for t in map(self.id_to_token, ids) if t is not None]
        return [t for t in map(self.id_to_token, ids) if t is not None and t not in hidden]

    # Vocabulary

    def token_to_id(self, token: str) -> int | None:
        """Id of a token as the vocabulary spells it; None where it has none of that spelling."""
        if not isinstance(token, str):
            raise OptionError(f"a token is text, not {token!r:.80}")
        found = self.added.by_content.get(token)
        return self.model.token_to_id(token) if found is None else found

    def id_to_token(self, token_id: int) -> str | None:
        """How the vocabulary spells a token; None outside of it. `decode` gives the text that it stands for."""
        if type(token_id) is not int:
            [token_id] = as_ids([token_id])
        added = self.added.by_id.get(token_id)
        return self.model.id_to_token(token_id) if added is None else added

    def _as_encoded(self, token_id: int) -> str | None:
        """How an encoding spells a token: as the model does; added tokens that are not the model's own as they are declared."""
        found = self.model.id_to_token(token_id)
        return self.added.by_id.get(token_id) if found is None else found

    def end_texts_with(self, token_id: int) -> None:
        """Put a special token behind every encoded text, or pair of texts, in place of what the file says of special tokens."""
        self.post_processor = ended_by(token_id)
        self._end = token_id

    @property
    def vocab_size(self) -> int:
        """Number of ids, added tokens included."""
        return self.model.vocab_size + sum(self.model.id_to_token(i) is None for i in self.added.by_id)

    @property
    def special_tokens(self) -> dict[str, int]:
        """Spelling -> id of every special token."""
        return {t.content: t.id for t in self.added.tokens if t.special}

    def _named_id(self, name: str) -> int | None:
        token = self.settings.get(name)
        return None if token is None else self.token_to_id(token)

    @property
    def bos_id(self) -> int | None:
        """Id of the token that begins a text; None where the files name none."""
        return self._named_id("bos_token")

    @property
    def eos_id(self) -> int | None:
        """Id of the token that ends a text; None where the files name none."""
        return self._named_id("eos_token")

    @property
    def pad_id(self) -> int | None:
        """Id of the token that fills up short rows of a batch; None where the files name none."""
        return self._named_id("pad_token")

    @property
    def unk_id(self) -> int | None:
        """Id of the token that stands for what the vocabulary does not have; None where the files name none."""
        return self._named_id("unk_token")

    @property
    def chat_template(self) -> str | None:
        """Jinja2 source of the chat template that lies beside the tokenizer, or None."""
        return self.settings.get("chat_template")

    @property
    def model_max_length(self) -> int | None:
        """Longest text in tokens that the tokenizer's settings name, or None. `encode` does not cut to it."""
        return self.settings.get("model_max_length")

    def __repr__(self) -> str:
        return f"Tokenizer({type(self.model).__name__}, {self.vocab_size} ids)"


def _made_again(maker: str, source: Any, settings: dict, truncation: Truncation | None, padding: Padding | None, end: int | None) -> Tokenizer:
    """What a pickled tokenizer becomes where it is read."""
    tokenizer = getattr(Tokenizer, maker)(source)
    tokenizer.settings, tokenizer.truncation, tokenizer.padding = settings, truncation, padding
    if end is not None:
        tokenizer.end_texts_with(end)
    return tokenizer
