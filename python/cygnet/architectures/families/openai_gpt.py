"""GPT (Radford et al. 2018): GPT-2's projections with norms behind the sublayers and none at the end."""

from __future__ import annotations

from cygnet.architectures.config import activation
from cygnet.architectures.decoders import CLASSES, decoder_only
from cygnet.architectures.families.gpt2 import CAUSAL_MASK
from cygnet.architectures.families.gpt2 import ROWS as GPT2_ROWS
from cygnet.architectures.family import Family
from cygnet.architectures.spec import (
    AttentionSpec,
    EmbeddingSpec,
    FeedForwardSpec,
    LayerSpec,
    Mask,
    NormKind,
    NormSpec,
    Placement,
    PositionSpec,
    PositionTable,
    Task,
)
from cygnet.architectures.weights import Row

ROWS = (
    Row("decoder.embed.token", "tokens_embed"),
    Row("decoder.embed.position", "positions_embed"),
    *(row for row in GPT2_ROWS if row.ours.startswith("decoder.{i}.")),
)


def build(config, source, task):
    hidden, heads, count = config["n_embd"], config["n_head"], config.get("n_positions", 512)
    norm = NormSpec(NormKind.LAYER, config.get("layer_norm_epsilon", 1e-5))
    # Its "gelu" is the tanh form.
    act = "gelu_new" if config.get("afn", "gelu") == "gelu" else config["afn"]
    ffn = FeedForwardSpec(4 * hidden, activation(act, f"config of {config.name}: afn"))
    attention = AttentionSpec(heads, heads, hidden // heads, (hidden // heads) ** -0.5, Mask.CAUSAL)
    return decoder_only(
        config,
        source,
        task,
        family="openai_gpt",
        embedding=EmbeddingSpec(config["vocab_size"], hidden, positions=PositionSpec(PositionTable.LEARNED, count)),
        layers=[LayerSpec(attention, ffn, norm, Placement.POST)] * config["n_layer"],
        rows=ROWS,
        final_norm=None,
        hidden_size=hidden,
        tie_default=True,
        token_name="tokens_embed",
        max_positions=count,
        ignored=(*CAUSAL_MASK, r"multiple_choice_head\..*"),
    )


CLASSES_OF_GPT = {name: task for name, task in CLASSES.items() if name != "ForQuestionAnswering"}
FAMILY = Family("openai_gpt", build, CLASSES_OF_GPT, Task.CAUSAL_LM, ("transformer.",), ("n_ctx", "predict_special_tokens"))
