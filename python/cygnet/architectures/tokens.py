"""Control tokens and labels: generation_config.json before config.json before GGUF metadata."""

from __future__ import annotations

from cygnet.architectures.spec import TokenIds
from cygnet.errors import OptionError, UnsupportedModel


def token_ids(config, generation=None, *, seq2seq=False):
    """The control tokens of a model.

    Parameters
    ----------
    config : Mapping
        config.json, or what GGUF metadata says in its place.
    generation : Mapping, optional
        generation_config.json. Where it exists, forced and suppressed tokens are taken from it alone: it says how to generate.
    seq2seq : bool
        Whether there is a decoder to start; it starts with bos where nothing else is given.

    Returns
    -------
    TokenIds

    Examples
    --------
    >>> token_ids({"eos_token_id": 2, "forced_eos_token_id": 2}, {"eos_token_id": [2, 7]})
    TokenIds(bos=None, eos=(2, 7), pad=None, decoder_start=None, forced_bos=None, forced_eos=None, suppress=())
    """

    def pick(key):
        value = (generation or {}).get(key)
        return dict(config).get(key) if value is None else value

    start = pick("decoder_start_token_id")
    forcing = config if generation is None else generation
    return TokenIds(
        bos=_single(pick("bos_token_id")),
        eos=_several(pick("eos_token_id")),
        pad=_single(pick("pad_token_id")),
        decoder_start=_single(start if start is not None or not seq2seq else pick("bos_token_id")),
        forced_bos=_single(dict(forcing).get("forced_bos_token_id")),
        forced_eos=_single(dict(forcing).get("forced_eos_token_id")),
        suppress=_several(dict(forcing).get("suppress_tokens")),
    )


def shifted_right(ids, spec):
    """What the decoder reads where an encoder-decoder classifies a text: the text itself, one place to the right, behind the start token."""
    if spec.starts_with_last:
        return [*ids[-1:], *ids[:-1]]
    tokens = spec.tokens
    start = next((token for token in (tokens.decoder_start, tokens.bos, tokens.pad) if token is not None), None)
    if start is None:
        raise OptionError("the model's config names no decoder_start_token_id, bos_token_id or pad_token_id: decoding has no start")
    return [start, *ids[:-1]]


def until_last_end(ids, tokens):
    """How many ids there are up to the last end token, with it: its row is the one that stands for a text."""
    ends = [place for place, token in enumerate(ids) if token in tokens.eos]
    if not ends:
        raise OptionError(f"a text without the end token {list(tokens.eos)}: this model classifies what it has read there")
    return ends[-1] + 1


def labels(config, default=2):
    """Names of a classifier's outputs, from id2label, or LABEL_0 ... for num_labels of them."""
    names, count = config.get("id2label"), config.get("num_labels")
    if not names:
        return tuple(f"LABEL_{index}" for index in range(count or default))
    by_id = {int(key): str(value) for key, value in dict(names).items()}
    found = tuple(by_id.get(index, f"LABEL_{index}") for index in range(max(by_id) + 1))
    if count is not None and count != len(found):
        raise UnsupportedModel(f"config: num_labels is {count}, and id2label names {len(found)}: one of them is wrong")
    twice = next((name for name in found if found.count(name) > 1), None)
    if twice is not None:
        raise UnsupportedModel(f"config: id2label names two classes {twice!r}, whose scores could not be told apart: give each a name of its own")
    return found


def _several(value):
    """Ids as a tuple; negative ones stand for none."""
    ids = value if isinstance(value, (list, tuple)) else () if value is None else (value,)
    if not all(isinstance(token, int) for token in ids):
        raise UnsupportedModel(f"token ids in the settings must be whole numbers, not {value!r}")
    return tuple(token for token in ids if token >= 0)


def _single(value):
    several = _several(value)
    return several[0] if several else None
