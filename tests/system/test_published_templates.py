"""Chat templates in the kinds that are published, against transformers; published ones where a folder has them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rtlang.model.text.tokenizer import Tokenizer
from tests.model.text.test_chat_tools import GRANITE, LLAMA, QWEN
from tests.model.text.test_conversation import ALL
from tests.model.text.test_history import COMMAND, HARMONY, MISTRAL, MISTRAL_ARGS
from tests.support.models.template_table import outcomes
from tests.support.models.tokenizer_kinds import write_tokenizer_kind

OWN = ALL | {
    "qwen": QWEN,
    "llama": LLAMA,
    "granite": GRANITE,
    "harmony": HARMONY,
    "command": COMMAND,
    "mistral": MISTRAL,
    "mistral args": MISTRAL_ARGS,
}
NO_PROMPT = ("last is special", "no end")
"""They have no generation prompt, so ours begins an answer as a finished message does."""


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, Any]:
    import transformers

    path = write_tokenizer_kind(tmp_path_factory.mktemp("tokenizer"), "byte_level")
    return Tokenizer.from_pretrained(path), transformers.AutoTokenizer.from_pretrained(str(path))


@pytest.mark.parametrize("name", OWN)
def test_prompts_are_what_transformers_writes(name: str, tokenizers: tuple[Tokenizer, Any]) -> None:
    found = list(outcomes(name, OWN[name], *tokenizers))
    assert any(each.kind == "equal" for each in found) or name in NO_PROMPT
    if name not in NO_PROMPT:
        assert [each for each in found if each.kind in ("differs", "refused")] == []


def test_published_templates_too(tokenizers: tuple[Tokenizer, Any]) -> None:
    folder = os.environ.get("RTLANG_TEMPLATES")
    if folder is None:
        pytest.skip("RTLANG_TEMPLATES names no folder of published templates (.jinja)")
    paths = sorted(Path(folder).glob("*.jinja"))
    assert paths
    found = [each for path in paths for each in outcomes(path.name, path.read_text(), *tokenizers)]
    assert [each for each in found if each.kind in ("differs", "refused")] == []
    assert Counter(each.kind for each in found)["equal"] > 10 * len(paths)
