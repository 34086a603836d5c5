"""Prompts that a server declares public: their cached pages are shared by all namespaces.

The file is a JSON list. A text is the start of a prompt without chat messages; {"system": text} is a chat that begins with this system
message.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from rtlang.contract.errors import ConfigError
from rtlang.contract.request_graph import Part, RoleEnd, RoleStart
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.runtime.texts.token_sequence import TokenSequence, append_text

MAX_PROMPTS = 1000


def read_public_prompts(path: str | None, tokenizer: Tokenizer, max_tokens: int) -> list[tuple[int, ...]]:
    """The tokens of the prompts of a file; none if `path` is None.

    Raises:
        ConfigError: the file cannot be read; names the entry.
    """
    if path is None:
        return []
    try:
        with open(path, encoding="utf-8") as file:
            entries = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError("public_prompts", path, f"cannot be read as JSON: {error}") from None
    if not isinstance(entries, list) or len(entries) > MAX_PROMPTS:
        raise ConfigError("public_prompts", path, f"expected a list of at most {MAX_PROMPTS} prompts")
    prompts = []
    for number, entry in enumerate(entries, 1):
        parts = _parts(entry)
        if parts is None:
            raise ConfigError("public_prompts", path, f'entry {number}: expected a text or {{"system": text}}')
        sequence = append_text(TokenSequence(), parts, tokenizer, {}, lambda ref: "", max_tokens)
        prompts.append(sequence.token_ids)
    return prompts


def _parts(entry: object) -> Sequence[Part] | None:
    if isinstance(entry, str) and entry:
        return (entry,)
    if isinstance(entry, dict) and set(entry) == {"system"} and isinstance(entry["system"], str):
        return (RoleStart("system"), entry["system"], RoleEnd())
    return None
