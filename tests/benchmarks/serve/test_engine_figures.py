"""Figures of the engine on the embedded model."""

from __future__ import annotations

import math

from rtlang.contract.config import RuntimeConfig
from rtlang_bench.serve.engine_figures import cancel_figure, text_figures


def test_a_cancelled_request_gives_its_pages_back() -> None:
    figure = cancel_figure(RuntimeConfig())
    assert figure.name == "cancel_steps"
    assert not math.isnan(figure.value)


def test_characters_are_whole_and_stops_are_not_streamed() -> None:
    assert [(each.name, each.value) for each in text_figures(RuntimeConfig())] == [
        ("utf8_split", 0),
        ("stop_leaked", 0),
    ]
