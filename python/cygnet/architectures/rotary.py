"""Rotary position settings in every spelling that configs use: rope_theta and rope_scaling, or rope_parameters, flat or per layer type."""

from __future__ import annotations

from cygnet.architectures.spec import RopeScaling, Rotary
from cygnet.errors import UnsupportedModel

KINDS = {"linear": "linear", "dynamic": "dynamic", "llama3": "llama3", "yarn": "yarn", "longrope": "longrope", "su": "longrope"}
# Of no use in a model none of whose layers has positions.
ROTARY_SETTINGS = ("rope_parameters", "rope_scaling", "rope_theta")
# For these the length a model was trained for matters; configs give it in three places.
WITH_ORIGINAL_LENGTH = ("llama3", "yarn", "longrope")
NEEDED = {
    "linear": ("factor",),
    "dynamic": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
    "yarn": (),
    "longrope": ("short_factor", "long_factor"),
}
READ = {
    *("rope_type", "type", "rope_theta", "partial_rotary_factor", "factor", "original_max_position_embeddings", "low_freq_factor"),
    *("high_freq_factor", "beta_fast", "beta_slow", "attention_factor", "mscale", "mscale_all_dim", "truncate", "short_factor", "long_factor"),
    "finetuned",
}


def rotary(config, head_dim, *, theta=10000.0, theta_keys=("rope_theta",), partial=1.0, interleaved=False, layer_type=None, max_positions=None):
    """The rotary positions a config asks for.

    Parameters
    ----------
    config : Config
    head_dim : int
    theta : float
        The family's default base.
    theta_keys : tuple of str
        Where older configs keep the base, in order of preference.
    partial : float
        The family's default share of each head that is rotated.
    interleaved : bool
        Whether pairs are (2i, 2i + 1).
    layer_type : str, optional
        Which entry to take where rope_parameters is nested by layer type.
    max_positions : int, optional
        Default of max_position_embeddings.

    Returns
    -------
    Rotary

    Raises
    ------
    UnsupportedModel
        For a kind of scaling, or a field of it, that is not known.
    """
    old_theta = config.first(*theta_keys)
    old_partial = config.first("partial_rotary_factor", "rotary_pct")
    parameters = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    if any(isinstance(value, dict) for value in parameters.values()):
        if layer_type not in parameters:
            raise UnsupportedModel(f"config of {config.name}: rope_parameters has no entry for {layer_type!r}")
        parameters = dict(parameters[layer_type] or {})
    theta = _first(parameters.get("rope_theta"), old_theta, theta)
    partial = _first(parameters.get("partial_rotary_factor"), old_partial, partial)
    max_positions = config.get("max_position_embeddings", max_positions or 2048)
    return Rotary(
        dim=int(head_dim * partial),
        theta=float(theta),
        interleaved=interleaved,
        scaling=_scaling(config, parameters, max_positions),
        max_positions=max_positions,
    )


def _first(*values):
    return next((value for value in values if value is not None), None)


def _scaling(config, parameters, max_positions):
    kind = parameters.get("rope_type") or parameters.get("type") or "default"
    if kind in ("default", "none"):
        return None
    if kind not in KINDS:
        raise UnsupportedModel(f"config of {config.name}: rope scaling {kind!r} is not known (known: {', '.join(sorted(KINDS))})")
    kind = KINDS[kind]
    unknown = sorted(key for key, value in parameters.items() if value and key not in READ)
    missing = [key for key in NEEDED[kind] if parameters.get(key) is None]
    if unknown or missing:
        raise UnsupportedModel(f"config of {config.name}: rope scaling {kind!r}: unknown fields {unknown}, missing fields {missing}")
    original, factor = None, parameters.get("factor")
    if kind in WITH_ORIGINAL_LENGTH:
        original = _first(config.get("original_max_position_embeddings"), parameters.get("original_max_position_embeddings"), max_positions)
        factor = max_positions / original if factor is None else factor
    return RopeScaling(
        kind=kind,
        factor=None if factor is None else float(factor),
        original_max_positions=original,
        low_freq_factor=parameters.get("low_freq_factor"),
        high_freq_factor=parameters.get("high_freq_factor"),
        beta_fast=parameters.get("beta_fast") or (32.0 if kind == "yarn" else None),
        beta_slow=parameters.get("beta_slow") or (1.0 if kind == "yarn" else None),
        attention_factor=parameters.get("attention_factor"),
        mscale=parameters.get("mscale"),
        mscale_all_dim=parameters.get("mscale_all_dim"),
        truncate=parameters.get("truncate", True),
        short_factor=_floats(parameters.get("short_factor")),
        long_factor=_floats(parameters.get("long_factor")),
    )


def _floats(values):
    return None if values is None else tuple(float(value) for value in values)
