"""DeBERTa (He et al. 2021): its second version's attention with projections fused head by head and biases on queries and values alone."""

from __future__ import annotations

from dataclasses import replace

from cygnet.architectures.encoders import CLASSES
from cygnet.architectures.families import deberta_v2
from cygnet.architectures.family import Family
from cygnet.architectures.spec import Task
from cygnet.architectures.transforms import heads_of, weight_only
from cygnet.architectures.weights import Row

SELF = deberta_v2.AT + "attention.self."
BIASES = {"query": SELF + "q_bias", "key": False, "value": SELF + "v_bias"}


def build(config, source, task):
    config.refuse("talking_head", False)
    built = deberta_v2.build(config, source, task)
    size = config["hidden_size"] // config["num_attention_heads"]
    fused = {
        f"encoder.{{i}}.attention.{name}": Row(
            f"encoder.{{i}}.attention.{name}", SELF + "in_proj", weight_only(heads_of(part * size, size, 3 * size)), bias=bias
        )
        for part, (name, bias) in enumerate(BIASES.items())
    }
    fused["encoder.{i}.attention.position_key"] = Row("encoder.{i}.attention.position_key", SELF + "pos_proj", bias=False)
    fused["encoder.{i}.attention.position_query"] = Row("encoder.{i}.attention.position_query", SELF + "pos_q_proj")
    return replace(built, spec=replace(built.spec, family="deberta"), rows=tuple(fused.get(row.ours, row) for row in built.rows))


FAMILY = Family("deberta", build, CLASSES, Task.ENCODER, ("deberta.",), deberta_v2.IGNORED)
