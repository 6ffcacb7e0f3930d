"""Language marks: recognised, named in several ways, errors that list them."""

import pytest

from cygnet.errors import OptionError
from cygnet.models.languages import find_languages

NLLB = [("<s>", 0), ("eng_Latn", 5), ("fra_Latn", 6), ("zho_Hans", 7), ("zho_Hant", 8), ("<mask>", 9)]


def test_no_marks():
    assert find_languages([("<s>", 0), ("</s>", 1)], "BartTokenizer") is None


@pytest.mark.parametrize("name, token", [("eng_Latn", 5), ("eng", 5), ("fra", 6), ("zho_Hant", 8)])
def test_names_of_a_language(name, token):
    assert find_languages(NLLB, "NllbTokenizer").id_of(name, "target") == token


@pytest.mark.parametrize("tokens, name", [([("__en__", 3), ("__fr__", 4)], "en"), ([("en_XX", 3), ("ro_RO", 4)], "en")])
def test_spellings_of_the_families(tokens, name):
    assert find_languages(tokens, "M2M100Tokenizer").id_of(name, "source") == 3


def test_unknown_and_ambiguous_names_list_the_codes():
    languages = find_languages(NLLB, "NllbTokenizer")
    with pytest.raises(OptionError, match="target 'xx' is not known; languages are eng_Latn, fra_Latn, zho_Hans, zho_Hant"):
        languages.id_of("xx", "target")
    with pytest.raises(OptionError, match="may be zho_Hans or zho_Hant"):
        languages.id_of("zho", "target")


@pytest.mark.parametrize(
    "name, legacy, behind, starts",
    [
        ("NllbTokenizer", False, False, False),
        ("NllbTokenizerFast", True, True, False),
        ("MBartTokenizer", False, True, True),
        ("MBart50Tokenizer", False, False, False),
        ("M2M100Tokenizer", False, False, False),
    ],
)
def test_where_a_family_puts_its_marks(name, legacy, behind, starts):
    languages = find_languages([("en_XX", 1)], name, legacy)
    assert (languages.behind, languages.starts_decoder) == (behind, starts)
