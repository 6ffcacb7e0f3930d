"""Random settings of processors, filters and beams against transformers: equal ids, scores and kept tokens."""

import random

import numpy as np
import pytest

from cygnet._core._sampling import Sampler
from cygnet.generation.options import GenerationOptions
from cygnet.generation.scheduler import Scheduler
from cygnet.generation.tasks import Request

from .fakes import TableEngine

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.parity

VOCABULARY, PROMPT = 30, 3


class TableModel(transformers.PreTrainedModel, transformers.GenerationMixin):
    """Next-token logits looked up by length and last token."""

    config_class = transformers.PretrainedConfig
    main_input_name = "input_ids"

    def __init__(self, table):
        super().__init__(transformers.PretrainedConfig(vocab_size=table.shape[-1], num_hidden_layers=1))
        self.table = torch.nn.Parameter(torch.from_numpy(table), requires_grad=False)
        self.post_init()

    def prepare_inputs_for_generation(self, input_ids, attention_mask=None, **kwargs):
        return {"input_ids": input_ids}

    def forward(self, input_ids=None, attention_mask=None, **kwargs):
        logits = self.table[input_ids.shape[1] - PROMPT, input_ids[:, -1:]]
        return transformers.modeling_outputs.CausalLMOutput(logits=logits)


def random_settings(rng, ids):
    """Options under the names that both know, beams included."""
    options = {"max_new_tokens": rng.randint(1, 10), "eos_token_id": rng.sample(ids, rng.randint(1, 3))}
    menu = {
        "repetition_penalty": lambda: rng.choice([0.7, 1.1, 1.5, 3.0]),
        "no_repeat_ngram_size": lambda: rng.randint(1, 3),
        "bad_words_ids": lambda: [rng.sample(ids, n) for n in (1, 2, 2)],
        "sequence_bias": lambda: [[rng.sample(ids, n), rng.uniform(-4, 4)] for n in (1, 2)],
        "min_new_tokens": lambda: rng.randint(1, options["max_new_tokens"]),
        "suppress_tokens": lambda: rng.sample(ids, 3),
        "begin_suppress_tokens": lambda: rng.sample(ids, 3),
        "forced_eos_token_id": lambda: options["eos_token_id"][0],
    }
    for name in rng.sample(sorted(menu), rng.randint(0, 4)):
        options[name] = menu[name]()
    if options["max_new_tokens"] == 1 or options["eos_token_id"][0] in options.get("suppress_tokens", ()):
        # Both are refused or answered with copies of one beam by transformers.
        options.pop("forced_eos_token_id", None)
    if rng.random() < 0.6:
        beams = rng.randint(2, 5)
        options.update(num_beams=beams, num_return_sequences=rng.randint(1, beams))
        options.update(length_penalty=rng.choice([0.0, 0.6, 1.0, 2.0]), early_stopping=rng.choice([True, False, "never"]))
    return options


def theirs(model, inputs, options, skip):
    config = transformers.GenerationConfig(**options, do_sample=False, pad_token_id=0, return_dict_in_generate=True, output_scores=True)
    out = model.generate(**inputs, generation_config=config)
    ends = options["eos_token_id"]
    rows = [row[: next((i + 1 for i, token in enumerate(row) if token in ends), len(row))] for row in out.sequences[:, skip:].tolist()]
    return rows, None if "num_beams" not in options else out.sequences_scores.tolist()


def ours(scheduler, prompt, options, source=None):
    results = scheduler.submit(Request(prompt, GenerationOptions.create(None, **options), source_ids=source)).result()
    return [g.ids for g in results], None if "num_beams" not in options else [g.score for g in results]


def assert_same(found, wanted, options):
    assert found[0] == wanted[0], options
    if wanted[1] is not None:
        assert found[1] == pytest.approx(wanted[1], abs=1e-4), options


@pytest.mark.parametrize("seed", range(120))
def test_table_model(seed):
    rng = random.Random(seed)
    table = np.random.default_rng(seed).standard_normal((10, VOCABULARY, VOCABULARY)).astype(np.float32) * 2
    prompt, options = [rng.randrange(VOCABULARY) for _ in range(PROMPT)], random_settings(rng, range(VOCABULARY))
    scheduler = Scheduler(TableEngine(table, prompt_length=PROMPT))
    inputs = {"input_ids": torch.tensor([prompt]), "attention_mask": torch.ones(1, PROMPT, dtype=torch.long)}
    with torch.no_grad():
        wanted = theirs(TableModel(table), inputs, {**options, "use_cache": False}, PROMPT)
    assert_same(ours(scheduler, prompt, options), wanted, options)
    scheduler.close()


@pytest.mark.parametrize("seed", range(60))
def test_filters(seed):
    rng = random.Random(seed)
    logits = np.random.default_rng(seed).standard_normal(rng.choice([5, 50, 5000])).astype(np.float32) * rng.choice([0.5, 2, 6])
    values = {
        "temperature": rng.choice([0.3, 0.7, 1.0, 1.7]),
        "top_k": rng.choice([0, 1, 5, 40, 10000]),
        "top_p": rng.choice([1.0, 0.95, 0.6, 0.1]),
        "min_p": rng.choice([0.0, 0.02, 0.3]),
        "typical_p": rng.choice([1.0, 0.9, 0.3]),
        "epsilon_cutoff": rng.choice([0.0, 0.001, 0.05]),
        "eta_cutoff": rng.choice([0.0, 0.002, 0.1]),
    }
    config = transformers.GenerationConfig(do_sample=True, **{name: value for name, value in values.items() if value or name == "top_k"})
    model = TableModel(np.zeros((1, 2, 2), np.float32))
    chain = model._get_logits_processor(config, input_ids_seq_length=1)
    wanted = chain(torch.zeros(1, 1, dtype=torch.long), torch.from_numpy(logits)[None].clone())[0].numpy()
    found = Sampler(**values).filter(logits.copy())
    assert np.array_equal(np.isfinite(found), np.isfinite(wanted)), values
    kept = np.isfinite(wanted)
    assert found[kept] == pytest.approx(wanted[kept], rel=1e-6)


@pytest.fixture(scope="module", params=["llama", "bart"])
def tiny(request, tmp_path_factory):
    """A tiny model in transformers, and a scheduler that runs its files."""
    from cygnet.architectures.registry import load_spec
    from cygnet.engine import Engine

    torch.manual_seed(0)
    if request.param == "llama":
        sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=60, max_position_embeddings=64, initializer_range=0.4, **sizes))
    else:
        sizes = {
            f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 48))
        }
        config = transformers.BartConfig(vocab_size=60, d_model=32, max_position_embeddings=64, init_std=0.4, **sizes)
        config.forced_eos_token_id = None
        model = transformers.BartForConditionalGeneration(config)
        model.generation_config = transformers.GenerationConfig(decoder_start_token_id=2)
    folder = tmp_path_factory.mktemp(request.param)
    model.eval().save_pretrained(folder)
    loaded = load_spec(folder)
    scheduler = Scheduler(Engine(loaded.spec, loaded.weights, threads=1))
    yield model, scheduler
    scheduler.close()


@pytest.mark.parametrize("seed", range(40))
def test_tiny_models(tiny, seed):
    model, scheduler = tiny
    rng = random.Random(1000 + seed)
    prompt, options = [rng.randrange(3, 60) for _ in range(rng.randint(2, 12))], random_settings(rng, range(3, 60))
    inputs = {"input_ids": torch.tensor([prompt]), "attention_mask": torch.ones(1, len(prompt), dtype=torch.long)}
    encoder_decoder = model.config.is_encoder_decoder
    if encoder_decoder:
        inputs["decoder_input_ids"] = torch.tensor([[2]])
    with torch.no_grad():
        wanted = theirs(model, inputs, options, 1 if encoder_decoder else len(prompt))
    found = ours(scheduler, [2], options, prompt) if encoder_decoder else ours(scheduler, prompt, options)
    assert_same(found, wanted, options)
