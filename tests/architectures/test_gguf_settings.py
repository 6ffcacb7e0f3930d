"""GGUF metadata as settings, tensors under GGUF's names: row order, tied heads, frequencies, experts, what is missing."""

import numpy as np
import pytest
from small import LLAMA, llama_tensors, tensor

from cygnet.architectures.registry import resolve
from cygnet.architectures.spec import RopeScaling
from cygnet.errors import UnsupportedModel, WeightsError
from cygnet.formats.weight_file import WeightFile
from cygnet.reference.model import ReferenceModel

NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
METADATA = {
    "general.architecture": "llama",
    "llama.context_length": 32,
    "llama.embedding_length": 8,
    "llama.block_count": 2,
    "llama.feed_forward_length": 12,
    "llama.attention.head_count": 2,
    "llama.attention.head_count_kv": 1,
    "llama.attention.layer_norm_rms_epsilon": 1e-6,
    "llama.rope.dimension_count": 4,
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2,
}


def gguf_file(metadata=METADATA, permuted=True, **more):
    """The llama of small.py as a GGUF file would hold it."""
    result = {}
    for name, value in {**llama_tensors(), **more}.items():
        array = value.to_float32()
        parts = name.removeprefix("model.").split(".")
        if parts[0] == "layers":
            target = f"blk.{parts[1]}.{NAMES['.'.join(parts[2:-1])]}.{parts[-1]}"
            if permuted and target.endswith(("attn_q.weight", "attn_k.weight")):
                array = array.reshape(-1, 2, 2, 8).swapaxes(1, 2).reshape(array.shape)
        else:
            target = {"embed_tokens.weight": "token_embd.weight", "norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}.get(
                name.removeprefix("model."), name
            )
        result[target] = tensor(target, array)
    return WeightFile("gguf", [], result, metadata)


def logits(config, weights):
    loaded = resolve(config, weights)
    return ReferenceModel(loaded.spec, loaded.weights).forward([[1, 5, 3, 7]])[0].logits


def test_row_order_is_undone_for_the_architectures_that_have_it():
    want = logits(LLAMA, llama_tensors())
    assert np.array_equal(logits({}, gguf_file()), want)
    loaded = resolve({}, gguf_file())
    assert loaded.weights["decoder.0.attention.query.weight"].row_source()[1].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    as_qwen = {key.replace("llama.", "qwen2."): value for key, value in METADATA.items()} | {"general.architecture": "qwen2"}
    assert np.array_equal(logits({}, gguf_file(as_qwen, permuted=False)), want)


def test_control_tokens_and_ends_of_turns():
    tokens = resolve({}, gguf_file({**METADATA, "tokenizer.ggml.eot_token_id": 9, "tokenizer.ggml.padding_token_id": 0})).spec.tokens
    assert (tokens.bos, tokens.eos, tokens.pad) == (1, (2, 9), 0)


def test_without_output_layer_the_embedding_is_used():
    weights = gguf_file()
    del weights._tensors["output.weight"]
    assert resolve({}, weights).spec.head.steps[0].tied


def test_divisors_of_frequencies_take_the_place_of_scaling():
    spec = resolve({}, gguf_file(**{"rope_freqs.weight": tensor("rope_freqs.weight", [1.0, 8.0])})).spec
    scaling = spec.decoder.layers[0].attention.positions.scaling
    assert scaling == RopeScaling("longrope", 1.0, 32, attention_factor=1.0, short_factor=(1.0, 8.0), long_factor=(1.0, 8.0))


def test_scaling_from_metadata():
    extra = {"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 4.0, "llama.rope.scaling.original_context_length": 8}
    scaling = resolve({}, gguf_file({**METADATA, **extra})).spec.decoder.layers[0].attention.positions.scaling
    assert (scaling.kind, scaling.factor, scaling.original_max_positions, scaling.attention_factor) == ("yarn", 4.0, 8, None)
    theta = resolve({}, gguf_file({**METADATA, "llama.rope.freq_base": 500.0})).spec.decoder.layers[0].attention.positions.theta
    assert (theta, resolve({}, gguf_file()).spec.decoder.layers[0].attention.positions.theta) == (500.0, 10000.0)


def test_unknown_architecture_lists_the_known_ones():
    with pytest.raises(UnsupportedModel, match="'rwkv'.*bert.*llama"):
        resolve({}, gguf_file({**METADATA, "general.architecture": "rwkv"}))


@pytest.mark.parametrize("key", ["attention.layer_norm_rms_epsilon", "attention.head_count", "block_count", "embedding_length"])
def test_missing_metadata_is_named(key):
    with pytest.raises(UnsupportedModel):
        resolve({}, gguf_file({name: value for name, value in METADATA.items() if name != f"llama.{key}"}))


def test_values_that_differ_between_layers():
    with pytest.raises(UnsupportedModel, match="attention.head_count_kv' differs between layers"):
        resolve({}, gguf_file({**METADATA, "llama.attention.head_count_kv": np.array([1, 2])}))
    assert np.array_equal(logits({}, gguf_file({**METADATA, "llama.attention.head_count_kv": np.array([1, 1])})), logits({}, gguf_file()))


@pytest.mark.parametrize("value", ["x", -1, 0, 2.5, 10**9, [1, 2]], ids=str)
@pytest.mark.parametrize(
    "key", ["attention.head_count", "attention.head_count_kv", "block_count", "embedding_length", "rope.dimension_count", "expert_count"]
)
def test_metadata_of_any_type_and_size(key, value):
    with pytest.raises((UnsupportedModel, WeightsError)):
        resolve({}, gguf_file({**METADATA, f"llama.{key}": np.array(value) if isinstance(value, list) else value}))
        # What stands for "absent" may load.
        raise WeightsError if value == 0 or (key, value) == ("rope.dimension_count", 2.5) else AssertionError


def test_missing_and_unused_tensors():
    weights = gguf_file(**{"blk.0.strange.weight": tensor("blk.0.strange.weight", [1.0])})
    del weights._tensors["blk.1.ffn_up.weight"]
    with pytest.raises(WeightsError, match=r"(?s)missing \(1\): blk.1.ffn_up.weight.*not used by the model \(1\): blk.0.strange.weight"):
        resolve({}, weights)
    with pytest.raises(WeightsError, match="token_embd"):
        resolve({}, WeightFile("gguf", [], {}, METADATA))
