"""The NumPy reference behind the interface of the conformance checker: `--adapter reference_adapter:load`."""

import numpy as np

from cygnet.architectures.registry import load_spec
from cygnet.architectures.spec import Task
from cygnet.reference import ops
from cygnet.reference.model import ReferenceModel


class Adapter:
    """forward, score and encode on padded batches; rows are run one by one without their padding."""

    def __init__(self, path):
        loaded = load_spec(path)
        self.spec = loaded.spec
        self.model = ReferenceModel(loaded.spec, loaded.weights)

    def forward(self, input_ids=None, attention_mask=None, token_type_ids=None, decoder_input_ids=None, pixel_values=None):
        if pixel_values is not None:
            outputs, masks = self.model.forward(list(pixel_values)), None
        else:
            masks = (np.ones_like(input_ids) if attention_mask is None else np.asarray(attention_mask)).astype(bool)
            rows = [ids[mask].tolist() for ids, mask in zip(input_ids, masks, strict=True)]
            types = None if token_type_ids is None else [kinds[mask].tolist() for kinds, mask in zip(token_type_ids, masks, strict=True)]
            decoders = None if decoder_input_ids is None else [row.tolist() for row in decoder_input_ids]
            outputs = self.model.forward(rows, type_ids=types, decoder_ids=decoders)
        if outputs[0].encoder is not None:
            encoded = padded([output.encoder.hidden for output in outputs], masks)
            return {"logits": np.stack([output.logits for output in outputs]), "encoder_last_hidden_state": encoded}
        result = {"last_hidden_state": padded([output.hidden for output in outputs], masks)}
        if outputs[0].pooled is not None:
            result["pooler_output"] = np.stack([output.pooled for output in outputs])
        if outputs[0].logits is not None:
            by_token = self.spec.task not in (Task.SEQUENCE_CLASSIFICATION, Task.IMAGE_CLASSIFICATION)
            result["logits"] = padded([output.logits for output in outputs], masks if by_token else None)
        if self.spec.task is Task.QUESTION_ANSWERING:
            logits = result.pop("logits")
            result["start_logits"], result["end_logits"] = logits[..., 0], logits[..., 1]
        elif self.spec.task is Task.REPLACED_TOKEN_DETECTION:
            result["logits"] = result["logits"][..., 0]
        return result

    def score(self, input_ids, attention_mask=None, target_ids=None):
        if target_ids is None:
            scores = ops.log_softmax(self.forward(input_ids, attention_mask)["logits"])
            return np.take_along_axis(scores[:, :-1], input_ids[:, 1:, None], -1)[..., 0]
        start = np.full((len(target_ids), 1), self.spec.tokens.decoder_start)
        decoder_ids = np.concatenate([start, target_ids[:, :-1]], 1)
        scores = ops.log_softmax(self.forward(input_ids, attention_mask, decoder_input_ids=decoder_ids)["logits"])
        return np.take_along_axis(scores, target_ids[..., None], -1)[..., 0]

    def encode(self, input_ids, attention_mask=None):
        mask = np.ones_like(input_ids) if attention_mask is None else attention_mask
        hidden = self.forward(input_ids, mask)["last_hidden_state"]
        mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        return mean / np.linalg.norm(mean, axis=-1, keepdims=True)

    def generate(self, input_ids, attention_mask=None, max_new_tokens=12, num_beams=1, length_penalty=1.0):
        masks = np.ones_like(input_ids) if attention_mask is None else attention_mask
        prompts = [ids[mask.astype(bool)].tolist() for ids, mask in zip(input_ids, masks, strict=True)]
        best = [self._search(prompt, max_new_tokens, num_beams, length_penalty) for prompt in prompts]
        return ([ids for ids, _ in best], [score for _, score in best]) if num_beams > 1 else [ids for ids, _ in best]

    def _next(self, prompt, prefixes):
        """Log-probabilities of the next token after each prefix, everything recomputed."""
        if self.spec.encoder is None:
            outputs = self.model.forward([prompt + prefix for prefix in prefixes])
        else:
            start = self.spec.tokens.decoder_start
            outputs = self.model.forward([prompt] * len(prefixes), decoder_ids=[[start, *prefix] for prefix in prefixes])
        return np.stack([ops.log_softmax(output.logits[-1].astype(np.float64)) for output in outputs])

    def _forced(self, step, last):
        tokens = self.spec.tokens
        if step == 0 and tokens.forced_bos is not None:
            return tokens.forced_bos
        return tokens.forced_eos if step == last else None

    def _search(self, prompt, max_new_tokens, beams, length_penalty):
        """Greedy for one beam, else the beam search of transformers with early stopping off."""
        eos = set(self.spec.tokens.eos)
        running, finished = [([], 0.0)], []
        for step in range(max_new_tokens):
            scores = self._next(prompt, [prefix for prefix, _ in running])
            forced = self._forced(step, max_new_tokens - 1)
            if forced is not None:
                scores = np.where(np.arange(scores.shape[1]) == forced, 0.0, -np.inf) + np.zeros_like(scores)
            totals = (scores + np.array([score for _, score in running])[:, None]).ravel()
            wanted = 1 if beams == 1 else max(2, 1 + len(eos)) * beams
            order = [index for index in np.argsort(-totals, kind="stable")[:wanted] if np.isfinite(totals[index])]
            found = [([*running[i // scores.shape[1]][0], int(i % scores.shape[1])], float(totals[i])) for i in order]
            ended = [ids[-1] in eos or step + 1 == max_new_tokens for ids, _ in found]
            length = (step + 1) ** length_penalty
            finished += [(ids, score / length) for (ids, score), end in list(zip(found, ended, strict=True))[:beams] if end]
            finished = sorted(finished, key=lambda pair: -pair[1])[:beams]
            running = [pair for pair, end in zip(found, ended, strict=True) if not end][:beams]
            if not running or (len(finished) == beams and running[0][1] / length <= finished[-1][1]):
                break
        return finished[0]


def padded(rows, masks):
    """Rows of one sequence each, put back where the mask of the batch is set."""
    if masks is None:
        return np.stack(rows)
    result = np.zeros((*masks.shape, *rows[0].shape[1:]), np.float32)
    for row, mask, values in zip(result, masks, rows, strict=True):
        row[mask] = values
    return result


def load(path):
    return Adapter(path)
