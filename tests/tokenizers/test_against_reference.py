"""Random texts through real tokenizers, compared with the library whose format they are in."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

reference = pytest.importorskip("tokenizers", minversion="0.15")

NAMES = ["gpt2", "llama3", "llama2", "clip", "openai-gpt", "bert-uncased"]
NAMES += ["own-hf-added-tokens", "own-hf-bpe-metaspace-first", "own-hf-bpe-prefix", "own-hf-digits-bytelevel", "own-hf-ignore-merges"]
NAMES += ["own-hf-roberta", "own-hf-scripts-eow", "own-hf-split-behaviours", "own-hf-wordlevel"]
BITS = [" ", "  ", "\n", "\r\n", "\t", "the", "Word", "'s", "'LL", "1", "4567", "!", "..", "é", "e\u0301", "日本", "か"]
BITS += ["\xa0", "\u3000", "😀", "\x00", "\x85", "ſ", "_", "<", "İ", "ﬁ", "…", "가"]
BITS += ["\u1100\u1161", "क्षि", "\u200d", "\ufeff", "▁", "<0x41>", "ß", "foo bar", "swan"]


@pytest.mark.parametrize("name", NAMES)
def test_same_as_the_reference(name, real, load):
    theirs, ours = reference.Tokenizer.from_file(str(real(name))), load(name)
    marks = [token.content for token in theirs.get_added_tokens_decoder().values()][:20]
    piece = st.one_of(st.sampled_from(BITS), st.sampled_from(marks or BITS), st.characters(exclude_categories=["Cs"]))
    text = st.lists(piece, max_size=25).map("".join)

    @given(text, st.none() | text, st.booleans())
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    def compare(first, second, special):
        want = theirs.encode(first, second, add_special_tokens=special)
        got = ours.encode(first, second, add_special_tokens=special)
        assert got.ids == want.ids
        assert [tuple(span) for span in got.offsets] == want.offsets
        assert got.word_ids == want.word_ids
        assert got.type_ids == want.type_ids
        assert got.special_tokens_mask == want.special_tokens_mask
        assert got.sequence_ids == want.sequence_ids
        for skip in (True, False):
            assert ours.decode(want.ids, skip_special_tokens=skip) == theirs.decode(want.ids, skip_special_tokens=skip)

    compare()
