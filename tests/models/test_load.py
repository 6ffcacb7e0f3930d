"""load(): the class that a config asks for, arguments, and failures that leave nothing behind."""

import json
import shutil

import pytest

import cygnet
from cygnet.errors import ModelNotFound, OptionError, TokenizerError, UnsupportedModel, WeightsError

KINDS = {
    "llama-a": "CausalLM",
    "gpt2-c-npz": "CausalLM",
    "bert-base": "Encoder",
    "t5_encoder-base": "Encoder",
    "bert-seqcls": "SequenceClassifier",
    "bert-tokcls": "TokenClassifier",
    "bert-qa": "QuestionAnswerer",
    "bert-mlm": "MaskedLM",
    "electra-disc": "ReplacedTokenDetector",
    "bart-a": "Seq2Seq",
    "vit-cls": "ImageClassifier",
}


@pytest.fixture
def copy(conformance, tmp_path):
    """copy(name, **settings): a model's folder with changed config."""

    def make(name, **settings):
        target = tmp_path / name
        shutil.copytree(conformance / "models" / name, target)
        config = json.loads((target / "config.json").read_text())
        (target / "config.json").write_text(json.dumps({**config, **settings}))
        return target

    return make


@pytest.mark.parametrize("name, kind", KINDS.items())
def test_class_of_the_config(conformance, name, kind):
    from cygnet.models.load import kind_of

    with cygnet.load(conformance / "models" / name) as model:
        assert type(model).__name__ == kind == type(model).__qualname__
        assert getattr(cygnet, kind) is type(model)
    assert kind_of(conformance / "models" / name) == kind


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"hidden_size": 0}, "hidden_size = 0 is not a whole number"),
        ({"hidden_size": "384"}, "hidden_size = '384' is not"),
        ({"num_attention_heads": 0}, "num_attention_heads = 0 is not"),
        ({"num_attention_heads": 7}, "hidden_size = [0-9]+ cannot be divided among num_attention_heads = 7"),
        ({"num_attention_heads": 768}, "cannot be divided among num_attention_heads = 768"),
    ],
)
def test_settings_that_make_no_model_are_named(copy, settings, message):
    with pytest.raises(UnsupportedModel, match=message):
        cygnet.load(copy("bert-base", **settings))


def test_tasks_without_a_head(conformance):
    with pytest.raises(UnsupportedModel, match="llama models have no head for task='masked-lm'; theirs are causal-lm"):
        cygnet.load(conformance / "models" / "llama-a", task="masked-lm")
    with pytest.raises(WeightsError, match="this checkpoint may have no head for it"):
        cygnet.load(conformance / "models" / "bert-base", task="question-answering")


def test_a_draft_model_changes_no_token(conformance):
    folder = conformance / "models" / "llama-a"
    with cygnet.load(folder) as plain, cygnet.load(folder, draft=folder) as model:
        options = {"max_new_tokens": 12, "temperature": 0}
        before = plain.generate([3, 4, 5], **options)
        assert model.generate([3, 4, 5], speculation="draft-model", **options).ids == before.ids
        with pytest.raises(OptionError, match="draft=SOURCE"):
            plain.generate([3, 4, 5], speculation="draft-model", **options)


def test_draft_models_that_do_not_fit(conformance, copy):
    models = conformance / "models"
    with pytest.raises(OptionError, match="decoder-only models"):
        cygnet.load(models / "bart-a", draft=models / "llama-a")
    with pytest.raises(OptionError, match="must share a vocabulary"):
        cygnet.load(models / "gpt2-c-npz", draft=models / "llama-a")


def test_one_label_is_a_cross_encoder(copy):
    from cygnet.formats import open_weights
    from cygnet.formats.safetensors import write_safetensors

    folder = copy("bert-seqcls", id2label={"0": "LABEL_0"}, label2id={"LABEL_0": 0})
    tensors = {name: tensor.to_float32() for name, tensor in open_weights(folder).items() if tensor.dtype.startswith("F")}
    tensors = {name: array[:1] if name.startswith("classifier.") else array for name, array in tensors.items()}
    write_safetensors(folder / "model.safetensors", tensors)
    with cygnet.load(folder) as model:
        assert isinstance(model, cygnet.CrossEncoder)


def test_modules_make_an_encoder_of_any_class(copy):
    folder = copy("bert-mlm")
    (folder / "modules.json").write_text(json.dumps([{"type": "x.Transformer", "path": ""}, {"type": "x.Pooling", "path": "1_Pooling"}]))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    with cygnet.load(folder) as model:
        assert isinstance(model, cygnet.Encoder) and model.settings.pooling == ("cls",)


def test_task_argument(conformance):
    with cygnet.load(conformance / "models" / "llama-a", task="encoder") as model:
        assert isinstance(model, cygnet.Encoder)
        assert model.embed([[3, 4, 5]]).shape == (1, model.spec.hidden_size)
    with pytest.raises(OptionError, match="task='sing' is not known"):
        cygnet.load(conformance / "models" / "llama-a", task="sing")


def test_context(conformance):
    with cygnet.load(conformance / "models" / "gpt2-a") as model:
        positions = model.max_context
    with cygnet.load(conformance / "models" / "gpt2-a", max_context=8) as model:
        assert model.max_context == 8
        assert len(model.generate([3] * 5, max_new_tokens=50, ignore_eos=True, temperature=0).ids) == 3
    with pytest.raises(OptionError, match="max_context"):
        cygnet.load(conformance / "models" / "gpt2-a", max_context=positions + 1)


@pytest.mark.parametrize("options", [{"weights": "int2"}, {"threads": 0}, {"max_context": 0}, {"max_context": "many"}, {"threads": 1.5}])
def test_wrong_arguments(conformance, options):
    with pytest.raises(OptionError):
        cygnet.load(conformance / "models" / "llama-a", **options)


def test_failures_name_what_is_wrong(copy, tmp_path):
    with pytest.raises(ModelNotFound, match="nowhere"):
        cygnet.load("nowhere")
    with pytest.raises(UnsupportedModel, match="lstm"):
        cygnet.load(copy("llama-a", model_type="lstm"))
    with pytest.raises(WeightsError, match="wrong shape"):
        cygnet.load(copy("llama-b", intermediate_size=999))
    folder = copy("bert-base")
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(TokenizerError, match="tokenizer.json"):
        cygnet.load(folder)


def test_unknown_settings_may_be_accepted(copy):
    folder = copy("llama-a", rope_wobble=3)
    with pytest.raises(UnsupportedModel, match="rope_wobble"):
        cygnet.load(folder)
    cygnet.load(folder, ignore_unknown_config=True).close()


@pytest.mark.parametrize("option", ["allow_download", "ignore_unknown_config"])
def test_switches_are_true_or_false(option):
    with pytest.raises(OptionError, match=f"{option} must be True or False"):
        cygnet.load("nowhere", **{option: "x"})
