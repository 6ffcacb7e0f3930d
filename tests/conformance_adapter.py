"""cygnet's public classes behind the interface of the conformance checker: `--adapter conformance_adapter:load --blocks conformance_adapter:block`.

Padded batches become ragged lists of ids and back; everything runs on float32 weights.
"""

import numpy as np
from conformance_blocks import block as operation_block
from conformance_generation import beam_search, logits

import cygnet
from cygnet import CausalLM, Encoder, ImageClassifier, QuestionAnswerer, ReplacedTokenDetector, Seq2Seq
from cygnet.architectures.spec import Task


class Adapter:
    """The methods that every model may be asked for."""

    def __init__(self, model):
        self.model = model

    def forward(self, input_ids=None, attention_mask=None, token_type_ids=None, decoder_input_ids=None, pixel_values=None):
        if isinstance(self.model, ImageClassifier):
            return {"logits": np.stack(self.model.forward(list(pixel_values)))}
        rows, masks = ragged(input_ids, attention_mask)
        if isinstance(self.model, CausalLM):
            return {"logits": padded(self.model.forward(rows), masks)}
        if isinstance(self.model, Seq2Seq):
            return self._pair_logits(rows, masks, decoder_input_ids)
        types = None if token_type_ids is None else ragged(token_type_ids, attention_mask)[0]
        outputs = self.model.forward(rows, type_ids=types)
        if isinstance(self.model, Encoder):
            return self._encoder_outputs(rows, types, outputs, masks)
        if isinstance(self.model, QuestionAnswerer):
            logits = padded(outputs, masks)
            return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}
        if isinstance(self.model, ReplacedTokenDetector):
            return {"logits": padded(outputs, masks)[..., 0]}
        return {"logits": padded(outputs, masks) if self.model.per_token else np.stack(outputs)}

    def _encoder_outputs(self, rows, types, states, masks):
        found = {"last_hidden_state": padded(states, masks)}
        if self.model.has_pooler:
            found["pooler_output"] = np.stack(self.model.pooled(rows, type_ids=types))
        return found

    def _pair_logits(self, rows, masks, decoder_input_ids):
        outputs = self.model.forward(rows, [row.tolist() for row in decoder_input_ids])
        name = "logits" if self.model.spec.task is Task.SEQ2SEQ else "last_hidden_state"
        return {name: np.stack(outputs), "encoder_last_hidden_state": padded(self.model.encoder_states(rows), masks)}

    def score(self, input_ids, attention_mask=None, target_ids=None):
        rows, masks = ragged(input_ids, attention_mask)
        if target_ids is not None:
            return np.stack([score.logprobs for score in self.model.score(rows, [row.tolist() for row in target_ids])])
        return padded([score.logprobs for score in self.model.score(rows)], masks[:, 1:] & masks[:, :-1])

    def generate(self, input_ids, attention_mask=None, max_new_tokens=12, num_beams=1, length_penalty=1.0):
        rows, _ = ragged(input_ids, attention_mask)
        found = self.model.generate(rows, max_new_tokens=max_new_tokens, num_beams=num_beams, length_penalty=length_penalty, temperature=0)
        ids = [generation.ids for generation in found]
        return (ids, [generation.score for generation in found]) if num_beams > 1 else ids

    def encode(self, input_ids, attention_mask=None):
        # Not embed(): that keeps to the length limit of the model's own sentence settings.
        rows, _ = ragged(input_ids, attention_mask)
        means = np.stack([states.mean(0) for states in self.model.forward(rows)])
        return means / np.linalg.norm(means, axis=-1, keepdims=True)

    def tokenize(self, texts, max_length=None):
        return [encoding.ids for encoding in self.model.tokenizer.encode_batch(texts, max_length=max_length)]

    def embed(self, texts):
        return self.model.embed(texts)

    def translate(self, texts):
        return [translation.text for translation in self.model.translate(texts)]

    def render_chat(self, conversations):
        return [self.model.render_chat(c["messages"], add_generation_prompt=c["add_generation_prompt"]) for c in conversations]


def ragged(values, mask):
    """The attended entries of each row, and the mask as booleans."""
    values = np.asarray(values)
    mask = np.ones(values.shape, bool) if mask is None else np.asarray(mask).astype(bool)
    return [row[attended].tolist() for row, attended in zip(values, mask, strict=True)], mask


def padded(rows, mask):
    """Rows of one sequence each, put back where the mask of the batch is set."""
    result = np.zeros((*mask.shape, *rows[0].shape[1:]), rows[0].dtype)
    for place, attended, row in zip(result, mask, rows, strict=True):
        place[attended] = row
    return result


def load(path):
    """The adapter of one model folder or file."""
    return Adapter(cygnet.load(path, weights="float32"))


def block(op, inputs, params):
    """One operation: the choice of tokens is answered by the generation part, the rest by cygnet.functional."""
    choice = {"logits": logits, "beam_search": beam_search}
    return choice[op](inputs, params) if op in choice else operation_block(op, inputs, params)
