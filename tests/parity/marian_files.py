"""Writes a transformers Marian model as Marian's own program keeps one: its names, its binary format, its positions, its recurrent decoder."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "formats"))
from marian_writer import SETTINGS, write_marian  # noqa: E402

SIZES = dict(vocab_size=58, d_model=24, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=40, decoder_ffn_dim=40)
HEADS = dict(encoder_attention_heads=3, decoder_attention_heads=3)
# Settings of the transformers model, whether its decoder is recurrent, and the kind of file.
MARIAN = {
    "marian-nmt": [
        (dict(SIZES, **HEADS, activation_function="relu"), True, "bin"),
        (dict(SIZES, **HEADS, activation_function="swish"), False, "bin"),
        (dict(SIZES, **HEADS, d_model=36, activation_function="relu"), True, "npz"),
    ]
}
ATTENTION = {"q_proj": "q", "k_proj": "k", "v_proj": "v", "out_proj": "o"}


def make_marian(settings, recurrent, kind, folder, seed=0):
    """Save a random model in Marian's form; returns the transformers model that computes the same."""
    import torch
    from tiny_models import randomise
    from transformers import MarianConfig, MarianMTModel

    words = settings["vocab_size"]
    # One more word, of zeros, starts the decoder.
    tokens = dict(pad_token_id=words, decoder_start_token_id=words, eos_token_id=0, bos_token_id=0)
    config = MarianConfig(**{**settings, "vocab_size": words + 1}, scale_embedding=True, max_position_embeddings=64, **tokens)
    model = MarianMTModel._from_config(config, attn_implementation="eager", dtype=torch.float32).eval()
    if recurrent:
        for layer in model.model.decoder.layers:
            layer.self_attn = recurrent_unit(config.d_model)
    randomise(model, seed)
    with torch.no_grad():
        model.model.shared.weight[words] = 0
        for side in (model.model.encoder, model.model.decoder):
            side.embed_positions.weight.copy_(positions(64, config.d_model))
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-6
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {name: tensor.numpy() for name, tensor in tensors(model, recurrent)}
    if kind == "bin":
        write_marian(folder / "model.en-pt.bin", arrays, yaml(settings, recurrent))
    else:
        np.savez(folder / "model.npz", **arrays, **{SETTINGS: np.frombuffer(yaml(settings, recurrent).encode() + b"\0", np.int8)})
    return model


def recurrent_unit(width):
    """The SSRU behind the interface of self-attention."""
    import torch

    class Unit(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.forget, self.input = torch.nn.Linear(width, width), torch.nn.Linear(width, width, bias=False)

        def forward(self, hidden_states, **_):
            gates, new = torch.sigmoid(self.forget(hidden_states)), self.input(hidden_states)
            states = [torch.zeros_like(new[:, 0])]
            for t in range(new.shape[1]):
                states.append(gates[:, t] * states[-1] + (1 - gates[:, t]) * new[:, t])
            return torch.relu(torch.stack(states[1:], 1)), None

    return Unit()


def positions(count, width):
    """Sines, then cosines, their wavelengths spread so that the last one is reached."""
    import torch

    angles = torch.arange(count)[:, None] * 10000.0 ** (-torch.arange(width // 2) / (width // 2 - 1))
    return torch.cat([torch.sin(angles), torch.cos(angles)], 1)


def tensors(model, recurrent):
    """(Marian's name, tensor), matrices (in, out), vectors (1, n)."""

    def linear(module, weight, bias=None):
        yield weight, module.weight.detach().T
        if bias is not None:
            yield bias, module.bias.detach()[None]

    def norm(module, name):
        yield f"{name}_ln_scale", module.weight.detach()[None]
        yield f"{name}_ln_bias", module.bias.detach()[None]

    def attention(module, layer_norm, at):
        for theirs, ours in ATTENTION.items():
            yield from linear(getattr(module, theirs), f"{at}_W{ours}", f"{at}_b{ours}")
        yield from norm(layer_norm, f"{at}_Wo")

    words = model.config.vocab_size - 1
    yield "Wemb", model.model.shared.weight.detach()[:words]
    yield "decoder_ff_logit_out_b", model.final_logits_bias[:, :words]
    for s in ("encoder", "decoder"):
        for i, layer in enumerate(getattr(model.model, s).layers):
            at = f"{s}_l{i + 1}"
            if s == "decoder" and recurrent:
                yield from linear(layer.self_attn.forget, f"{at}_rnn_Wf", f"{at}_rnn_bf")
                yield from linear(layer.self_attn.input, f"{at}_rnn_W")
                yield from norm(layer.self_attn_layer_norm, f"{at}_rnn_ffn")
            else:
                yield from attention(layer.self_attn, layer.self_attn_layer_norm, f"{at}_self")
            if s == "decoder":
                yield from attention(layer.encoder_attn, layer.encoder_attn_layer_norm, f"{at}_context")
            yield from linear(layer.fc1, f"{at}_ffn_W1", f"{at}_ffn_b1")
            yield from linear(layer.fc2, f"{at}_ffn_W2", f"{at}_ffn_b2")
            yield from norm(layer.final_layer_norm, f"{at}_ffn_ffn")


def yaml(settings, recurrent):
    """The settings as Marian writes them into the file."""
    lines = {
        "dec-cell": "ssru" if recurrent else "gru",
        "dec-depth": settings["decoder_layers"],
        "dim-emb": settings["d_model"],
        "dim-vocabs": "".join(f"\n  - {settings['vocab_size']}" for _ in range(2)),
        "enc-depth": settings["encoder_layers"],
        "tied-embeddings-all": "true",
        "transformer-decoder-autoreg": "rnn" if recurrent else "self-attention",
        "transformer-dim-ffn": settings["encoder_ffn_dim"],
        "transformer-ffn-activation": settings["activation_function"],
        "transformer-heads": settings["encoder_attention_heads"],
        "transformer-postprocess": "dan",
        "transformer-preprocess": '""',
        "type": "transformer",
    }
    return "".join(f"{key}: {value}\n" for key, value in lines.items())
