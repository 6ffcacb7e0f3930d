"""BPE as a lecture would show it: the merges of each word, step by step."""

from __future__ import annotations

from dataclasses import dataclass, field

from cygnet.errors import TokenizerError
from cygnet.tokenizers.bpe import BPE
from cygnet.tokenizers.byte_alphabet import CHAR_TO_BYTE
from cygnet.tokenizers.tokenizer import Tokenizer

# Longest word whose merges are listed: each step shows the word as a whole, which for longer ones is more than anybody reads.
MOST_SYMBOLS = 256


@dataclass(frozen=True)
class Step:
    """One merge.

    Attributes
    ----------
    left, right : str
        The symbols merged, as the vocabulary spells them.
    rank : int
        Place of the merge in the list of merges; lower goes first.
    symbols : list of str
        The word after the merge.
    """

    left: str
    right: str
    rank: int
    symbols: list[str]


@dataclass(frozen=True)
class Word:
    """A word of the text, its first symbols and the merges that make its tokens; a long word has its tokens for symbols and no steps."""

    text: str
    symbols: list[str]
    steps: list[Step] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    unexplained: int = 0  # symbols of a word that is too long to show its merges

    @property
    def tokens(self) -> list[str]:
        """What the merges lead to."""
        return self.steps[-1].symbols if self.steps else self.symbols


def explain(tokenizer: Tokenizer, text: str) -> list[Word]:
    """How a BPE tokenizer comes to the tokens of a text.

    At every step the pair of neighbours with the lowest rank is merged, the leftmost first where it occurs more than once.

    Parameters
    ----------
    tokenizer : Tokenizer
    text : str

    Returns
    -------
    list of Word

    Raises
    ------
    TokenizerError
        Where the tokenizer's model is no BPE.

    Examples
    --------
    >>> from cygnet.tokenizers import explain, train_bpe
    >>> tokenizer = train_bpe(["un un", "happ happ", "iness iness"], vocab_size=300)
    >>> explain(tokenizer, "unhappiness")[0].tokens
    ['un', 'happ', 'iness']
    """
    model = tokenizer.model
    if not isinstance(model, BPE):
        raise TokenizerError(f"merges can be explained for BPE only, not for {type(model).__name__}")
    words: list[Word] = []
    for piece, token in tokenizer.added.segments(text):
        if token is not None:
            words.append(Word(piece.text, [token.content], ids=[token.id]))
            continue
        splits = tokenizer.pre_tokenizer.split(piece) if tokenizer.pre_tokenizer else [piece]
        words += [explain_word(model, split.text) for split in splits]
    return words


def explain_word(model: BPE, word: str) -> Word:
    """The merges of one word, as the pre-tokenizer spells it."""
    ids = model.symbols(word)
    first = [model.id_to_token(i) for i in ids]
    if model.options["ignore_merges"] and word in model.vocab:
        return Word(word, [word], ids=[model.vocab[word]])
    if len(ids) > MOST_SYMBOLS:
        tokens = [token for token, _, _ in model.tokenize(word)]
        return Word(word, [model.id_to_token(i) for i in tokens], ids=tokens, unexplained=len(ids))
    steps: list[Step] = []
    core = model.core()
    while len(ids) > 1:
        ranked = [(found[0], i, found[1]) for i, pair in enumerate(zip(ids, ids[1:], strict=False)) if (found := core.rank(*pair))]
        if not ranked:
            break
        rank, at, merged = min(ranked)
        left, right = model.id_to_token(ids[at]), model.id_to_token(ids[at + 1])
        ids[at : at + 2] = [merged]
        steps.append(Step(left, right, rank, [model.id_to_token(i) for i in ids]))
    return Word(word, first, steps, ids)


def lines(words: list[Word]) -> list[str]:
    """The explanation as lines of text for a terminal."""
    out: list[str] = []
    for word in words:
        if word.unexplained:
            text = readable(word.text)
            out.append(f"{text[:40]!r}... ({len(text)} characters): more than {MOST_SYMBOLS} symbols, its merges are not shown")
        else:
            out.append(f"{readable(word.text)!r}: {' '.join(map(readable, word.symbols))}")
        out += [f"  {readable(s.left)} + {readable(s.right)}  (merge {s.rank})  ->  {' '.join(map(readable, s.symbols))}" for s in word.steps]
        out.append(f"  = {' + '.join(map(readable, word.tokens))}  {word.ids}")
    return out


def readable(symbol: str) -> str:
    """A byte-level symbol by the characters it stands for, where they are whole and printable."""
    try:
        text = bytes([CHAR_TO_BYTE[c] for c in symbol]).decode()
    except (KeyError, UnicodeDecodeError):
        return symbol
    return text.replace(" ", "␣") if text.replace(" ", "").isprintable() else symbol
