"""CausalLM on scripted engines: prompts, limits, chat, streams, scores."""

import asyncio
import copy
import json
import pickle
import threading

import numpy as np
import pytest

from cygnet.architectures.spec import TokenIds
from cygnet.errors import ContextOverflow, CopyError, ModelClosed, OptionError, TemplateError, TokenizerError
from cygnet.models.causal_lm import CausalLM
from tests.generation.fakes import HashEngine
from tests.models.generative_parts import CHATML, WORDS, log_softmax, parts, script, word_tokenizer

GREEDY = {"temperature": 0, "max_new_tokens": 8}


@pytest.fixture
def model(tmp_path):
    with CausalLM(parts(tmp_path)) as model:
        yield model


def ids_of(*words):
    return [WORDS.index(word) for word in words]


class TestGenerate:
    def test_text_and_ids_are_the_same_prompt(self, model):
        by_text = model.generate("a b", **GREEDY)
        by_ids = model.generate(model.encode_text("a b"), **GREEDY)
        assert by_text.ids == by_ids.ids and by_text.text == by_ids.text
        assert by_text.usage.prompt_tokens == 2 and by_text.usage.completion_tokens == len(by_text.ids)

    def test_a_batch_equals_single_prompts(self, model):
        prompts = ["a", "b c d e f", "g h", "a"]
        assert [g.ids for g in model.generate(prompts, **GREEDY)] == [model.generate(p, **GREEDY).ids for p in prompts]

    def test_an_array_of_texts_is_a_batch(self, model):
        texts = np.array(["a b", "c"])
        assert [g.ids for g in model.generate(texts, **GREEDY)] == [g.ids for g in model.generate(["a b", "c"], **GREEDY)]
        assert "".join(model.stream(texts[0], **GREEDY)) == model.generate("a b", **GREEDY).text
        assert [s.total for s in model.score(texts)] == [s.total for s in model.score(["a b", "c"])]

    @pytest.mark.parametrize("prompt", [np.array(5), np.array("a"), np.array([1.5, 2.5]), np.array([[1.5]])])
    def test_arrays_that_are_no_prompts(self, model, prompt):
        for call in (model.generate, model.stream, model.score, model.forward):
            with pytest.raises(OptionError, match="wanted"):
                call(prompt)

    def test_no_prompts(self, model):
        assert model.generate([], **GREEDY) == []

    def test_empty_prompt_starts_from_bos(self, model):
        assert model.generate("", **GREEDY).ids == model.generate([1], **GREEDY).ids

    def test_empty_prompt_without_bos(self, tmp_path):
        with CausalLM(parts(tmp_path, tokens=TokenIds(eos=(2,)))) as model, pytest.raises(OptionError, match="the prompt is empty"):
            model.generate("")

    def test_several_samples(self, model):
        found = model.generate("a", num_return_sequences=3, temperature=1.0, seed=5, max_new_tokens=4)
        assert len(found) == 3 and len({tuple(g.ids) for g in found}) > 1
        batch = model.generate(["a", "b"], n=2, temperature=1.0, seed=5, max_new_tokens=4)
        assert [len(own) for own in batch] == [2, 2]

    def test_prompt_beyond_the_context(self, model):
        with pytest.raises(ContextOverflow, match="the prompt has 50 tokens and the model's context of 40"):
            model.generate(ids_of("a") * 50)
        cut = model.generate(ids_of("a") * 50, truncate=True, **GREEDY)
        assert cut.truncated_tokens == 11 and cut.usage.prompt_tokens == 39
        assert cut.ids == model.generate(ids_of("a") * 39, **GREEDY).ids
        kept = model.generate([1, *ids_of("a") * 50], truncate=True, **GREEDY)
        assert kept.ids == model.generate([1, *ids_of("a") * 38], **GREEDY).ids

    def test_stops_at_the_context(self, tmp_path):
        engine = HashEngine(len(WORDS), max_context=40)
        with CausalLM(parts(tmp_path, engine=engine, tokens=TokenIds())) as model:
            found = model.generate(ids_of("a") * 36, max_new_tokens=10, temperature=0)
        assert found.finish_reason == "length" and len(found.ids) == 4

    @pytest.mark.parametrize("prompt", [None, 3, ["a", None], b"a", [[1], "a", 2.5]])
    def test_wrong_prompts(self, model, prompt):
        with pytest.raises(OptionError):
            model.generate(prompt)

    def test_ids_outside_of_the_vocabulary(self, model):
        with pytest.raises(OptionError, match="outside of the vocabulary"):
            model.generate([len(WORDS)])

    def test_unknown_option(self, model):
        with pytest.raises(OptionError, match="temprature.*temperature"):
            model.generate("a", temprature=1)

    def test_logprobs_are_of_the_models_own_logits(self, model):
        found = model.generate("a b", logprobs=3, repetition_penalty=1.5, **GREEDY)
        ids = model.encode_text("a b")
        for step, entry in enumerate(found.logprobs):
            expected = log_softmax(model.forward(ids + found.ids[:step], rows="last"))[0]
            assert entry.id == found.ids[step] and entry.logprob == pytest.approx(expected[entry.id], abs=1e-4)
            assert [v for _, v in entry.top] == pytest.approx(sorted(expected, reverse=True)[:3], abs=1e-4)
        assert len(found.logprobs) == len(found.ids)

    def test_without_tokenizer(self, tmp_path):
        made = parts(tmp_path)
        with CausalLM(type(made)(made.spec, made.engine, None, tmp_path, {}, 40)) as model:
            assert model.generate([8], **GREEDY).text == ""
            with pytest.raises(TokenizerError):
                model.generate("a")
            with pytest.raises(TokenizerError):
                model.chat("a")

    def test_closed(self, tmp_path):
        model = CausalLM(parts(tmp_path))
        model.generate("a", **GREEDY)
        model.close()
        with pytest.raises(ModelClosed, match="is closed"):
            model.generate("a")
        with pytest.raises(ModelClosed, match="is closed"):
            model.generate([])
        assert model.closed

    def test_log_probabilities_name_their_tokens(self, model, tmp_path):
        found = model.generate("a", logprobs=2, **GREEDY)
        assert [t.token for t in found.logprobs] == [WORDS[i] for i in found.ids]
        assert all(t.top_tokens == tuple(WORDS[i] for i, _ in t.top) for t in found.logprobs)
        with model.stream("a", logprobs=2, **GREEDY) as stream:
            assert stream.result.logprobs == found.logprobs


class TestEndTokens:
    def say(self, folder, words, **changes):
        with CausalLM(parts(folder, engine=script(words), **changes)) as model:
            return model.generate("a", **GREEDY)

    def test_every_end_token_stops(self, tmp_path):
        tokens = TokenIds(bos=1, eos=tuple(ids_of("</s>", "<|im_end|>")))
        for end in ("</s>", "<|im_end|>"):
            found = self.say(tmp_path, ["b", "c", end, "d"], tokens=tokens)
            assert (found.text.split(), found.finish_reason) == (["b", "c"], "stop")
            assert found.ids == ids_of("b", "c", end)

    def test_generation_config_adds_defaults(self, tmp_path):
        (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [2], "repetition_penalty": 3.0, "do_sample": True, "top_k": 2}))
        with CausalLM(parts(tmp_path)) as model:
            options = model.options()
            assert (options.repetition_penalty, options.top_k, options.sampling) == (3.0, 2, True)
            assert not model.options(temperature=0).sampling

    def test_old_config_states_defaults(self, tmp_path):
        with CausalLM(parts(tmp_path, config={"num_beams": 4, "length_penalty": 2.0, "hidden_size": 3})) as model:
            assert (model.options().num_beams, model.options().length_penalty) == (4, 2.0)

    def test_gguf_marks_end_turns(self, tmp_path):
        with CausalLM(parts(tmp_path, engine=script(["b", "<|im_end|>", "c"]), config={"gguf_architecture": "llama"})) as model:
            assert model.generate("a", **GREEDY).text.split() == ["b"]

    def test_stop_strings(self, tmp_path):
        with CausalLM(parts(tmp_path, engine=script(["b", "c", "d", "e"]))) as model:
            found = model.generate("a", stop="d", **GREEDY)
            assert "d" not in found.text and found.finish_reason == "stop"


class TestStream:
    def test_joins_to_the_text(self, model):
        with model.stream("a b", **GREEDY) as pieces:
            joined = "".join(pieces)
            assert joined == pieces.result.text == model.generate("a b", **GREEDY).text

    def test_an_iterator_gives_each_piece_once(self, model):
        stream = model.stream("a b", **GREEDY)
        assert "running, 0 pieces" in repr(stream) or "finished, 0 pieces" in repr(stream)
        first = next(stream)
        rest = "".join(stream)
        assert first and first + rest == stream.result.text
        assert list(stream) == [] and list(stream.deltas()) == []
        assert "finished" in repr(stream)

    def test_dropping_a_stream_stops_the_work(self, tmp_path):
        engine = HashEngine(len(WORDS), max_context=10_000)
        with CausalLM(parts(tmp_path, engine=engine, tokens=TokenIds(), max_context=10_000)) as model:
            for _ in model.stream("a", max_new_tokens=9_000, temperature=0):
                break
            model.generate("a", **GREEDY)
            assert model.scheduler._running == []

    def test_deltas(self, model):
        deltas = list(model.stream("a", logprobs=0, **GREEDY).deltas())
        assert [d.id for d in deltas if d.id is not None] == model.generate("a", **GREEDY).ids
        assert deltas[-1].finish_reason in ("stop", "length")

    def test_closing_stops_the_work(self, tmp_path):
        engine, closed = HashEngine(len(WORDS), max_context=10_000), threading.Event()
        engine.before_forward = lambda batch: len(engine.batches) < 3 or closed.wait(10)
        with CausalLM(parts(tmp_path, engine=engine, tokens=TokenIds(), max_context=10_000)) as model:
            stream = model.stream("a", max_new_tokens=9_000, temperature=0)
            next(iter(stream))
            stream.close()
            closed.set()
            assert stream.result.finish_reason == "cancelled" and len(stream.result.ids) < 9_000
            assert model.generate("a", **GREEDY).finish_reason == "length"

    @pytest.mark.parametrize("prompt, options", [(["a", "b"], {}), (None, {}), ("a", {"n": 2})])
    def test_one_prompt_and_one_answer(self, model, prompt, options):
        with pytest.raises(OptionError):
            model.stream(prompt, **options)

    def test_asyncio(self, model):
        async def both():
            one, many = await asyncio.gather(model.agenerate("a", **GREEDY), model.agenerate(["b", "c d"], **GREEDY))
            pieces = [piece async for piece in model.astream("a", **GREEDY)]
            return one, many, "".join(pieces), (await model.achat("a", **GREEDY)).ids

        one, many, text, chat = asyncio.run(both())
        assert one.ids == model.generate("a", **GREEDY).ids and one.text == text
        assert [g.ids for g in many] == [model.generate(p, **GREEDY).ids for p in ("b", "c d")]
        assert chat == model.chat("a", **GREEDY).ids

    def test_asyncio_chat_pieces(self, model):
        async def joined():
            return "".join([piece async for piece in model.achat_stream("a", **GREEDY)])

        assert asyncio.run(joined()) == model.chat("a", **GREEDY).text


class TestChat:
    def prompt(self, model, content, **options):
        return model.chat_prompt([{"role": "user", "content": content}], **options)

    def test_prompt(self, model):
        assert self.prompt(model, "a b") == ids_of("<|im_start|>", "user", "a", "b", "<|im_end|>", "<|im_start|>", "assistant")

    def test_control_text_stays_text(self, model):
        for text in ("<|im_end|>", "a <|im_end|> b", "</s>", "</think>"):
            found = self.prompt(model, text)
            plain = self.prompt(model, "a")
            for mark in ("<|im_end|>", "<|im_start|>", "</s>", "</think>"):
                assert found.count(WORDS.index(mark)) == plain.count(WORDS.index(mark))
        assert WORDS.index("im_end") in self.prompt(model, "<|im_end|>")

    @pytest.mark.parametrize("template", ["<s>" + CHATML, "{{ bos_token }}" + CHATML, CHATML])
    def test_exactly_one_bos(self, tmp_path, template):
        tokenizer = word_tokenizer(add_bos=True, chat_template=template, bos_token="<s>")
        with CausalLM(parts(tmp_path, tokenizer=tokenizer)) as model:
            assert self.prompt(model, "a")[:2] == ids_of("<s>", "<|im_start|>")
            assert self.prompt(model, "<s>").count(1) == 1
            assert model.encode_text("a") == ids_of("<s>", "a")

    def test_no_bos_where_none_is_wanted(self, tmp_path):
        with CausalLM(parts(tmp_path, tokenizer=word_tokenizer(chat_template=CHATML, bos_token="<s>"))) as model:
            assert self.prompt(model, "a")[0] == WORDS.index("<|im_start|>") and model.encode_text("a") == ids_of("a")

    def test_system_and_history(self, model):
        messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
        found = model.chat_prompt(messages, system="s")
        assert found[:4] == ids_of("<|im_start|>", "system", "s", "<|im_end|>") and found.count(WORDS.index("<|im_start|>")) == 5
        assert model.chat(messages, system="s", **GREEDY).ids == model.generate(found, **GREEDY).ids

    def test_continue_final_message(self, model):
        messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b c"}]
        found = model.chat_prompt(messages, continue_final_message=True)
        assert found[-4:] == ids_of("<|im_start|>", "assistant", "b", "c")
        assert model.chat(messages, continue_final_message=True, **GREEDY).ids == model.generate(found, **GREEDY).ids

    def test_ends_where_the_tokenizer_says(self, tmp_path):
        tokenizer = word_tokenizer(chat_template=CHATML, eos_token="<|im_end|>")
        with CausalLM(parts(tmp_path, tokenizer=tokenizer, engine=script(["b", "<|im_end|>", "c"], 6))) as model:
            assert model.chat("a", **GREEDY).text.split() == ["b"]

    def test_transcript_without_a_template(self, tmp_path):
        tokenizer = word_tokenizer()
        tokenizer.added.tokens = [token for token in tokenizer.added.tokens if "im_" not in token.content]
        with CausalLM(parts(tmp_path, tokenizer=tokenizer)) as model:
            assert model.render_chat("a") == "User: a\n\nAssistant:"
            assert model._chat_options({}).stop == ("\nUser:",)

    def test_template_that_refuses(self, tmp_path):
        with CausalLM(parts(tmp_path, tokenizer=word_tokenizer(chat_template="{{ raise_exception('no system role') }}"))) as model:
            with pytest.raises(TemplateError, match="no system role"):
                model.chat("a")
            with pytest.raises(TemplateError, match="no system role"):
                model.chat_stream("a")

    def test_named_templates_and_variables(self, tmp_path):
        templates = [{"name": "default", "template": "{{ mood }}" + CHATML}, {"name": "tool_use", "template": "t" + CHATML}]
        with CausalLM(parts(tmp_path, tokenizer=word_tokenizer(chat_template=templates))) as model:
            assert self.prompt(model, "a", template_variables={"mood": "m"})[0] == WORDS.index("m")
            assert self.prompt(model, "a", tools=[{"name": "f"}])[0] == WORDS.index("t")

    def test_stream(self, model):
        with model.chat_stream("a", **GREEDY) as pieces:
            assert "".join(pieces) == model.chat("a", **GREEDY).text

    def test_too_long(self, model):
        with pytest.raises(ContextOverflow, match="the prompt has 105 tokens"):
            model.chat("a " * 100)
        assert model.chat("a " * 100, truncate=True, **GREEDY).truncated_tokens == 66


class TestForwardAndScore:
    def test_forward(self, model):
        logits = model.forward([8, 9, 10])
        assert logits.shape == (3, len(WORDS)) and logits.dtype == np.float32
        np.testing.assert_array_equal(model.forward([8, 9, 10], rows="last"), logits[-1:])
        several = model.forward([[8], [], [8, 9]])
        assert [rows.shape[0] for rows in several] == [1, 0, 2]
        assert not model.engine.live
        with pytest.raises(ContextOverflow, match="sequence 0 has 41 tokens"):
            model.forward([8] * 41)
        with pytest.raises(OptionError, match="rows"):
            model.forward([8], rows="first")

    def test_score(self, model):
        ids = model.encode_text("a b c d")
        expected = np.take_along_axis(log_softmax(model.forward(ids)[:-1]), np.array(ids[1:])[:, None], 1)[:, 0]
        found = model.score("a b c d")
        np.testing.assert_allclose(found.logprobs, expected, atol=1e-5)
        assert found.perplexity == pytest.approx(np.exp(-expected.mean()), rel=1e-5)
        assert [len(s.logprobs) for s in model.score(["a b", "a", ""])] == [1, 0, 0]
        assert model.score([]) == []

    def test_score_of_a_long_text(self, model):
        with pytest.raises(ContextOverflow, match="51 tokens"):
            model.score([8] * 51)
        assert len(model.score([8] * 51, stride=10).logprobs) == 50


def test_count_tokens(model):
    assert model.count_tokens("a b c") == 3


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_model_is_neither_copied_nor_pickled(model, again):
    with pytest.raises(CopyError, match="load it where it is needed"):
        again(model)


@pytest.mark.parametrize(
    "call",
    [
        lambda model: model.generate("a", truncate="yes"),
        lambda model: model.stream("a", truncate="yes"),
        lambda model: model.chat("a", truncate=1),
        lambda model: model.chat("a", tools=3),
        lambda model: model.chat("a", tools=[3]),
        lambda model: model.chat("a", documents="x"),
        lambda model: model.chat("a", system=3),
        lambda model: model.chat("a", template_variables=3),
        lambda model: model.forward(None),
        lambda model: model.forward("a"),
        lambda model: model.forward([None]),
        lambda model: model.generate("a", allowed_tokens=lambda ids: None),
        lambda model: model.generate("a", allowed_tokens=lambda ids: [1.5]),
    ],
)
def test_arguments_that_can_only_be_mistakes(model, call):
    with pytest.raises(OptionError):
        call(model)


def test_texts_are_tokenised_beside_the_event_loop(model, monkeypatch):
    threads = []
    encode_text = model.encode_text
    monkeypatch.setattr(model, "encode_text", lambda text, **options: threads.append(threading.current_thread()) or encode_text(text, **options))

    async def all_ways():
        await model.agenerate("a", **GREEDY)
        return [piece async for piece in model.astream("a", **GREEDY)]

    asyncio.run(all_ways())
    assert len(threads) == 2 and threading.main_thread() not in threads
