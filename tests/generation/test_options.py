"""Options: ranges, contradictions, defaults of a model, other names."""

import math

import numpy as np
import pytest

from cygnet.errors import OptionError
from cygnet.generation.config_defaults import config_defaults
from cygnet.generation.options import GenerationOptions


def create(defaults=None, **given):
    return GenerationOptions.create(defaults, **given)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("temperature", [-1, math.nan, math.inf, "1", True]),
        ("top_p", [-1, 1.5, math.nan, -1e-9]),
        ("top_k", [-1, 2.5, True, "5"]),
        ("min_p", [-0.1, 1.1, math.nan]),
        ("typical_p", [0, 1.1, math.nan]),
        ("epsilon_cutoff", [-1, 1]),
        ("eta_cutoff", [-1, 1]),
        ("repetition_penalty", [0, -1, math.inf]),
        ("presence_penalty", [math.nan]),
        ("frequency_penalty", [math.inf]),
        ("max_new_tokens", [-1, 1.0]),
        ("min_new_tokens", [-1]),
        ("num_beams", [0]),
        ("num_return_sequences", [0]),
        ("early_stopping", [1, "always", 0]),
        ("length_penalty", [math.nan]),
        ("seed", [-1, 2**64, 1.5]),
        ("stop", ["", ["a", ""], [3], 3]),
        ("stop_token_ids", [[-1], "3", [1.5]]),
        ("logit_bias", [{"x": 1}, {1: math.nan}, {1: math.inf}, {-1: 0}, {(): 1}, 3, {"1": "2"}]),
        ("bad_words", [[[]], "ab", [["a"]]]),
        ("logprobs", [-1, 1.5]),
        ("stop_when", [3]),
        ("speculation", ["fast"]),
        ("draft_tokens", [0, 65]),
        ("no_repeat_ngram_size", [-1]),
    ],
)
def test_out_of_range(name, bad):
    for value in bad:
        with pytest.raises(OptionError, match=name):
            create(**{name: value})


@pytest.mark.parametrize(
    "options",
    [
        {"min_new_tokens": 5, "max_new_tokens": 4},
        {"min_length": 5, "max_length": 4},
        {"num_beams": 2, "temperature": 0.5},
        {"num_beams": 2, "num_return_sequences": 3},
        {"num_beams": 4, "num_beam_groups": 3},
        {"diversity_penalty": 0.5},
        {"do_sample": True, "temperature": 0},
        {"num_beams": 2, "speculation": "prompt-lookup"},
        {"n": 2, "num_return_sequences": 3},
        {"tempreature": 1},
    ],
)
def test_contradictions(options):
    with pytest.raises(OptionError):
        create(**options)


def test_a_misspelt_option_names_its_neighbour():
    with pytest.raises(OptionError, match="temperature"):
        create(tempreature=1)


def test_when_sampling_is_asked_for():
    assert not create().sampling
    assert not create(seed=3).sampling
    assert create(temperature=0.5).sampling and create(do_sample=True).sampling and create(top_p=0.9).sampling
    assert not create(temperature=0, top_p=0.9).sampling
    assert not create(do_sample=False, top_p=0.9).sampling
    assert create(top_k=5).filters == (1.0, 5, 1.0, 0.0, 1.0, 0.0, 0.0)
    assert create().filters[0] == 0


def test_numpy_numbers_are_numbers():
    assert create(temperature=np.float32(0.5), top_k=np.int64(3), eos_token_id=np.array([1, 2])).eos_token_ids == (1, 2)


def test_what_a_caller_gives_replaces_the_way_of_the_model():
    sampled = {"do_sample": True, "temperature": 0.6, "top_p": 0.9}
    assert create(sampled).filters[:3] == (pytest.approx(0.6), 0, 0.9)
    assert not create(sampled, temperature=0).sampling
    assert not create(sampled, do_sample=False).sampling
    assert create(sampled, temperature=0.9).filters[:3] == (0.9, 0, 0.9)
    beams = create(sampled, num_beams=3)
    assert beams.num_beams == 3 and not beams.sampling
    searched = {"num_beams": 4, "length_penalty": 2.0, "max_length": 142}
    assert create(searched).num_beams == 4
    assert create(searched, temperature=0.5).num_beams == 1
    assert create(searched, temperature=0).num_beams == 4
    assert create(searched, max_new_tokens=5).limit(100, None) == 5
    assert create(searched).limit(100, None) == 42


def test_generation_config(caplog):
    config = {
        "bos_token_id": 1, "eos_token_id": [2, 7], "do_sample": True, "temperature": 0.6, "top_p": 0.9, "transformers_version": "4.44.0",
        "max_length": 20, "forced_bos_token_id": 5, "bad_words_ids": [[3]], "guidance_scale": 1.0, "no_such_key_yet": 1,
    }  # fmt: skip
    options = create(config_defaults(config))
    assert options.eos_token_ids == (2, 7) and options.forced_bos == 5 and options.bad_words == ((3,),)
    assert options.max_length is None and options.sampling and options.top_p == 0.9
    assert not create(config_defaults({"temperature": 0.6, "top_k": 50})).sampling
    assert [record.args for record in caplog.records] == [("no_such_key_yet",)]
    assert config_defaults({"forced_eos_token_id": None, "use_cache": True}) == {} and len(caplog.records) == 1
    with pytest.raises(OptionError, match="penalty_alpha"):
        config_defaults({"penalty_alpha": 0.6})


def test_vocabulary():
    for options in ({"stop_token_ids": [9]}, {"bad_words": [[1, 9]]}, {"forced_bos": 9}, {"logit_bias": {9: 1}}, {"logprobs": 10}):
        with pytest.raises(OptionError, match="9 tokens"):
            create(**options).check_vocabulary(9)
    create(stop_token_ids=[8], logprobs=9).check_vocabulary(9)
