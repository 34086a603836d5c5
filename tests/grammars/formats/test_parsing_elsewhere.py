"""What templates render, and what the masks let through, is read by the parsers of sglang as by ours, where sglang is installed."""

from __future__ import annotations

import importlib
import json
import random
from typing import Any

import pytest

from rtlang_grammars.formats.parsing import parse_output
from rtlang_grammars.formats.tool_grammar import tool_grammar
from tests.grammars.formats.test_tool_grammar import avoided, drawn, matcher_of
from tests.support.schemas.tool_calls import random_call
from tests.support.schemas.tool_templates import HAS_ONE_CALL, render

DETECTORS = {
    "hermes": ("qwen25_detector", "Qwen25Detector"),
    "qwen-coder": ("qwen3_coder_detector", "Qwen3CoderDetector"),
    "llama-3": ("llama32_detector", "Llama32Detector"),
    "llama-4": ("pythonic_detector", "PythonicDetector"),
    "mistral": ("mistral_detector", "MistralDetector"),
    "mistral-args": ("mistral_detector", "MistralDetector"),
    "deepseek-v3": ("deepseekv3_detector", "DeepSeekV3Detector"),
    "deepseek-v3.1": ("deepseekv31_detector", "DeepSeekV31Detector"),
    "glm-4.5": ("glm4_moe_detector", "Glm4MoeDetector"),
    "kimi-k2": ("kimik2_detector", "KimiK2Detector"),
}
SPOILED = (
    "</tool_call>",
    "<|tool_call_end|>",
    "```",
    "; ",
    "[",
    "]",
    "\\",
    '"',
    "'",
    "(",
    "{",
    "\n",
    "\t",
    "true",
    "null",
    "5",
    " ",
    "=",
)
"""Texts in strings that the foreign parsers, which search with regular expressions, cannot read in every format."""

STRICT = ("llama-4", "mistral", "mistral-args")
"""Formats whose foreign parser takes no line breaks within a call, or has no id in it; our masks allow them as JSON does."""


def foreign(name: str, tools: list[dict[str, Any]], text: str) -> list[tuple[str, Any]]:
    """The calls as the foreign parser reads them."""
    package = "sglang.srt.function_call"
    pytest.importorskip(f"{package}.base_format_detector", reason="sglang has parsers of most formats")
    module, detector = DETECTORS[name]
    protocol = importlib.import_module("sglang.srt.entrypoints.openai.protocol")
    given = [protocol.Tool(**each) for each in tools]
    found = getattr(importlib.import_module(f"{package}.{module}"), detector)().detect_and_parse(text, given)
    return [(each.name, json.loads(each.parameters)) for each in found.calls]


def simple_tools() -> list[dict[str, Any]]:
    """Tools whose values the foreign parsers read: no references, no null, plain names."""
    kinds = {"n": {"type": "integer"}, "on": {"type": "boolean"}, "k": {"enum": ["a", "b"]}, "s": {"type": "string"}}
    parameters = {"type": "object", "properties": kinds, "required": ["n"]}
    return [
        {"type": "function", "function": {"name": "get", "parameters": parameters}},
        {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},
    ]


@pytest.mark.parametrize("name", DETECTORS)
def test_rendered_calls_are_read_alike(name: str) -> None:
    rng, tools = random.Random(name), simple_tools()
    for _ in range(60):
        count = 1 if name in HAS_ONE_CALL else 2
        calls = [random_call(rng, tools, (*avoided(name), *SPOILED)) for _ in range(count)]
        for _, arguments in calls:
            if name == "llama-4" and "n" in arguments:  # that parser takes no negative numbers
                arguments["n"] = abs(arguments["n"])
        text = render(name, "", "", calls)
        assert foreign(name, tools, text) == calls, text


@pytest.mark.parametrize("name", [each for each in DETECTORS if each not in STRICT])
def test_texts_of_the_masks_are_read_alike(name: str) -> None:
    rng, tools = random.Random(name), simple_tools()
    del tools[0]["function"]["parameters"]["properties"]["s"]
    matcher = matcher_of(tool_grammar(name, tools, tool_choice="required", reasoning="forbidden"))
    for _ in range(60):
        text = drawn(matcher, rng, rng.randrange(30))
        read = [(each.name, each.arguments) for each in parse_output(name, text, tools).calls]
        assert foreign(name, tools, text) == read, text
