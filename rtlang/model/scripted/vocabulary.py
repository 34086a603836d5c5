"""The tokenizer of a scripted model: the tokens of rtlang:tiny, with the control tokens that frame the messages of its template."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from rtlang.model.scripted.reply_text import BEGIN, END, template_of
from rtlang.model.scripted.script import Script
from rtlang.model.text.tokenizer import Tokenizer

_NAMES = {"<|end|>": END, "<|user|>": BEGIN, "<|system|>": "<|unused_0|>", "<|assistant|>": "<|unused_1|>"}
"""Control tokens of rtlang:tiny by their names here."""


def scripted_tokenizer(script: Script) -> Tokenizer:
    """The tokenizer of the model of a script, with the chat template of its format.

    Raises:
        ConfigError: the format has no marks of its own in such a template.
    """
    content = json.loads((resources.files("rtlang.tiny") / "tokenizer.json").read_text(encoding="utf-8"))
    content["added_tokens"] = [_renamed(entry) for entry in content["added_tokens"]]
    model = content["model"]
    model["vocab"] = {_NAMES.get(name, name): token_id for name, token_id in model["vocab"].items()}
    settings = {"eos_token": END, "chat_template": template_of(script.format)}
    return Tokenizer.from_parts(content, settings, source=script.name)


def _renamed(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "content": _NAMES.get(entry["content"], entry["content"])}
