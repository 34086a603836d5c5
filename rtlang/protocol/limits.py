"""The limits of `rtlang.v1` that a server reports in `welcome`: everything that a client can run into."""

from __future__ import annotations

from dataclasses import asdict

from rtlang.contract.graph.checks import (
    MAX_CASES,
    MAX_ITERATIONS,
    MAX_NAME_CHARS,
    MAX_NESTING,
    MAX_OPERANDS,
    MAX_PARTS,
    MAX_SELECT_CHOICES,
    MAX_TEXT_CHARS,
)
from rtlang.contract.params import (
    MAX_CREDIT,
    MAX_LOGPROBS,
    MAX_MAX_TOKENS,
    MAX_N,
    MAX_PRIORITY,
    MAX_RETRIES,
    MAX_STOPS,
)
from rtlang.contract.request_graph import MAX_NODES
from rtlang.protocol.messages import DEFAULT_CREDIT, MAX_DETACH_MS, MAX_KEY_CHARS, MIN_KEY_CHARS
from rtlang.protocol.serialization import DecodeLimits

MAX_FRAGMENTS = 1024
"""Frames of one message."""
PING_INTERVAL_S = 20.0


def wire_limits(**of_server: int) -> dict[str, int]:
    """All limits by name. `of_server`: those of its configuration."""
    return {
        **of_server,
        **asdict(DecodeLimits()),
        "max_fragments": MAX_FRAGMENTS,
        "ping_interval_ms": round(PING_INTERVAL_S * 1000),
        "max_detach_ms": MAX_DETACH_MS,
        "min_idem_chars": MIN_KEY_CHARS,
        "max_idem_chars": MAX_KEY_CHARS,
        "default_credit": DEFAULT_CREDIT,
        "max_credit": MAX_CREDIT,
        "max_nodes": MAX_NODES,
        "max_text_chars": MAX_TEXT_CHARS,
        "max_name_chars": MAX_NAME_CHARS,
        "max_select_choices": MAX_SELECT_CHOICES,
        "max_operands": MAX_OPERANDS,
        "max_parts": MAX_PARTS,
        "max_cases": MAX_CASES,
        "max_iterations": MAX_ITERATIONS,
        "max_nesting": MAX_NESTING,
        "max_tokens": MAX_MAX_TOKENS,
        "max_n": MAX_N,
        "max_logprobs": MAX_LOGPROBS,
        "max_stops": MAX_STOPS,
        "max_retries": MAX_RETRIES,
        "max_priority": MAX_PRIORITY,
    }
