"""Rotary embeddings of GGUF files as entries of a config.json.

A file has a base, a scaling type, and, in tensors, factors by which single frequencies are divided: those of Llama 3, of which the
parameters are found again, and two sets of longrope.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.gguf.fields import Fields, as_written

PARTIAL_ROTARY = frozenset(("phi", "phi3", "glm4", "glm4_moe", "stablelm", "nemotron"))
"""Model types that may turn a part of each head only."""
FACTORS, LONG_FACTORS, SHORT_FACTORS = "rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"
_ORIGINAL_LENGTH = 8192  # of Llama 3; any other gives the same factors with other parameters
_FACTOR_TOLERANCE = 1e-4
_LEAST_TURNS = 1e-6  # of yarn's betas, of which there is a logarithm


def rope_entries(
    fields: Fields, model_type: str, head_dim: int, values: Callable[[str], NDArray[np.float32]]
) -> dict[str, Any]:
    """The entries for the rotary embedding of a model.

    Args:
        values: returns the elements of a tensor, which the file has.
    Raises:
        ModelLoadError: an entry has a wrong type or value, or the embedding is none that transformers computes.
    """
    theta, num_turned = fields.real("rope.freq_base", 10000.0), fields.number("rope.dimension_count", head_dim)
    if theta <= 1:
        raise fields.fail(fields.key("rope.freq_base"), theta, "a number above 1")
    entries: dict[str, Any] = {"rope_theta": theta}
    if num_turned != head_dim:
        if model_type not in PARTIAL_ROTARY or num_turned > head_dim or num_turned % 2:
            raise fields.fail(fields.key("rope.dimension_count"), num_turned, f"the size of a head, {head_dim}")
        entries["partial_rotary_factor"] = num_turned / head_dim
    scaling = _scaling(fields)
    if fields.has_tensor(LONG_FACTORS) and fields.has_tensor(SHORT_FACTORS):
        scaling = _longrope(fields, num_turned, values)
    elif fields.has_tensor(FACTORS):
        scaling = _llama3(fields, theta, _checked(fields, FACTORS, num_turned, values)) or scaling
    if scaling:
        entries["rope_scaling"] = scaling
    return entries


def _scaling(fields: Fields) -> dict[str, Any] | None:
    """The scaling that metadata describe, None if there is none."""
    kind, factor = fields.given("rope.scaling.type"), fields.real("rope.scaling.factor", 1.0, least=0.0)
    # an older name of the factor of linear scaling
    factor = fields.real("rope.scale_linear", factor, least=0.0)
    original = fields.given("rope.scaling.original_context_length")
    if kind is None and factor not in (0.0, 1.0):
        kind = "linear"
    if kind == "linear":
        return None if factor in (0.0, 1.0) else {"rope_type": "linear", "factor": factor}
    if kind == "yarn":
        if factor < 1:
            raise fields.fail(fields.key("rope.scaling.factor"), factor, "a number from 1 for yarn")
        found: dict[str, Any] = {"rope_type": "yarn", "factor": factor}
        if original is not None:
            found["original_max_position_embeddings"] = fields.number("rope.scaling.original_context_length")
        for name, entry in (("yarn_beta_fast", "beta_fast"), ("yarn_beta_slow", "beta_slow")):
            if fields.has(f"rope.scaling.{name}"):
                found[entry] = fields.real(f"rope.scaling.{name}", least=_LEAST_TURNS)
        if fields.has("rope.scaling.yarn_log_multiplier"):
            found["mscale"] = found["mscale_all_dim"] = as_written(
                round(10 * fields.real("rope.scaling.yarn_log_multiplier"), 6)
            )
        elif fields.has("rope.scaling.attn_factor"):
            found["attention_factor"] = fields.real("rope.scaling.attn_factor") * (1 + 0.1 * math.log(factor))
        return found
    if kind in (None, "none", "longrope"):
        return None
    raise fields.fail(fields.key("rope.scaling.type"), kind, "none, linear, yarn or longrope")


def _longrope(fields: Fields, num_turned: int, values: Callable[[str], NDArray[np.float32]]) -> dict[str, Any] | None:
    long, short = (_checked(fields, name, num_turned, values) for name in (LONG_FACTORS, SHORT_FACTORS))
    if (long == 1).all() and (short == 1).all():
        return None
    original = fields.number("rope.scaling.original_context_length", fields.number("context_length"))
    found: dict[str, Any] = {
        "rope_type": "longrope",
        "long_factor": [as_written(float(each)) for each in long],
        "short_factor": [as_written(float(each)) for each in short],
        "original_max_position_embeddings": original,
        "factor": fields.number("context_length") / original,
    }
    if fields.has("rope.scaling.attn_factor"):
        found["attention_factor"] = fields.real("rope.scaling.attn_factor")
    return found


def _llama3(fields: Fields, theta: float, factors: NDArray[np.float32]) -> dict[str, Any] | None:
    """The parameters from which Llama 3's factors come; None if they change nothing.

    Frequencies of short waves stay, those of long waves are divided by a factor, and 1 / factor grows between them with the frequency in
    a straight line, which two of them determine.

    Raises:
        ModelLoadError: the factors come from another rule.
    """
    dim, found = 2 * len(factors), np.asarray(factors, np.float64)
    factor = as_written(float(factors.max()))
    if (found == 1).all():
        return None
    if (found == found[0]).all():
        return {"rope_type": "linear", "factor": factor}
    turns = _ORIGINAL_LENGTH * theta ** (-np.arange(0, dim, 2) / dim) / (2 * math.pi)  # falling
    for low, high in ((1.0, 4.0), _borders(turns, (1 / found - 1 / factor) / (1 - 1 / factor))):
        smooth = np.clip((turns - low) / (high - low), 0, 1)
        if np.allclose(1 / ((1 - smooth) / factor + smooth), found, rtol=_FACTOR_TOLERANCE, atol=0):
            return {
                "rope_type": "llama3",
                "factor": factor,
                "low_freq_factor": low,
                "high_freq_factor": high,
                "original_max_position_embeddings": _ORIGINAL_LENGTH,
            }
    raise ModelLoadError(fields.path, f"tensor {FACTORS}: expected factors of a rotary embedding of Llama 3")


def _borders(turns: NDArray[np.float64], smooth: NDArray[np.float64]) -> tuple[float, float]:
    """Where the line through the points between 0 and 1 reaches 0 and 1; with fewer than two, one that leaves the others outside."""
    between = np.flatnonzero((smooth > _FACTOR_TOLERANCE) & (smooth < 1 - _FACTOR_TOLERANCE))
    if len(between) > 1:
        slope, start = np.polyfit(turns[between], smooth[between], 1)
        return float(-start / slope), float((1 - start) / slope)
    above, below = turns[smooth >= 1 - _FACTOR_TOLERANCE], turns[smooth <= _FACTOR_TOLERANCE]
    high, low = float(above.min(initial=2 * turns.max())), float(below.max(initial=turns.min() / 2))
    if not len(between):
        return low, high
    place, height = float(turns[between[0]]), float(smooth[between[0]])
    slope = max((1 - height) / (high - place), height / (place - low))
    return place - height / slope, place + (1 - height) / slope


def _checked(
    fields: Fields, name: str, num_turned: int, values: Callable[[str], NDArray[np.float32]]
) -> NDArray[np.float32]:
    """The factors in a tensor, one for each frequency."""
    shape = fields.shapes[name]
    if shape != (num_turned // 2,):
        raise ModelLoadError(fields.path, f"tensor {name} has shape {list(shape)}: expected [{num_turned // 2}]")
    found = values(name)
    if not (np.isfinite(found).all() and (found > 0).all()):
        raise ModelLoadError(fields.path, f"tensor {name}: expected factors above 0")
    return found
