"""A text service without a model: every character is a token, and the characters of a private range are special."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.request_graph import Part, RoleEnd, RoleStart, TokenIds
from rtlang.contract.service.text_service import TextServiceInfo
from rtlang.serve.openai.messages import content_text

END_ID, START_ID = 0, 1
NAMES = {END_ID: "<end>", START_ID: "<start>"}
VOCAB_SIZE = 0x3000


class FakeTextService:
    """Token ids are code points, from 2 on; 0 ends and 1 starts a sequence."""

    info = TextServiceInfo(VOCAB_SIZE, 64, START_ID, (END_ID,), (END_ID, START_ID), "{{ messages }}")

    def encode(self, text: str, *, adds_start: bool = True, allow_special: bool = False) -> list[int]:
        ids = [START_ID] if adds_start else []
        while text:
            named = [item for item in NAMES.items() if text.startswith(item[1])] if allow_special else []
            ids.append(named[0][0] if named else ord(text[0]))
            text = text[len(named[0][1]) if named else 1 :]
        return ids

    def encode_parts(self, parts: Sequence[Part]) -> list[int]:
        ids = [START_ID] if parts and isinstance(parts[0], str) else []
        for part in parts:
            match part:
                case TokenIds():
                    ids += part.ids
                case str():
                    ids += map(ord, part)
                case RoleStart():
                    ids += map(ord, f"<{part.role}>")
                case RoleEnd():
                    ids += map(ord, "</>")
                case _:
                    raise AssertionError(part)
        return ids

    def chat_prompt(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: str | None,
        end: str,
        template_options: str | None = None,
        max_tokens: int | None = None,
    ) -> list[int]:
        text = "".join(f"<{each['role']}>{content_text(each.get('content') or '', 'content')}</>" for each in messages)
        text = {"prompt": text + "<assistant>", "open": text.removesuffix("</>"), "closed": text}[end]
        return list(map(ord, text))

    def remember(self, prompt: bytes, outputs: Sequence[Sequence[int]]) -> None:
        """Nothing is kept."""

    def decode(self, token_ids: Sequence[int], *, shows_special: bool = False) -> str:
        for token_id in token_ids:
            if not 0 <= token_id < VOCAB_SIZE:
                raise ParameterError("tokens", token_id, "expected a known id")
        names = self.token_names(token_ids)
        return "".join(
            name for token_id, name in zip(token_ids, names, strict=True) if shows_special or token_id not in NAMES
        )

    def token_names(self, token_ids: Sequence[int]) -> list[str]:
        return [NAMES.get(token_id, chr(token_id)) for token_id in token_ids]

    def token_bytes(self, token_ids: Sequence[int]) -> list[bytes]:
        return [name.encode() for name in self.token_names(token_ids)]
