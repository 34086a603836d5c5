"""outlines with its adapters of vLLM and SGLang: every output type is held to."""

from __future__ import annotations

import json
import re
from typing import Literal

import openai
import outlines
from address import KEY, MODEL, QUESTION, URL
from outlines.types import CFG, Regex
from shared import Person, check_person

for adapter in (outlines.from_vllm, outlines.from_sglang):
    model = adapter(openai.OpenAI(base_url=URL, api_key=KEY), MODEL)
    assert isinstance(model(QUESTION, max_tokens=6), str)
    check_person(json.loads(model(QUESTION, Person, max_tokens=60)))
    assert model(QUESTION, Literal["yes", "no"], max_tokens=20) in ("yes", "no")
    int(model(QUESTION, int, max_tokens=10))
    assert re.fullmatch("[ab]{2,5}", model(QUESTION, Regex("[ab]{2,5}"), max_tokens=20))
    assert model(QUESTION, CFG('start: "x" | "y"'), max_tokens=5) in ("x", "y")
    check_person(json.loads("".join(model.stream(QUESTION, Person, max_tokens=60))))
