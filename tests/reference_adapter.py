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
