"""Text to token ids and back, exactly and in pieces.

A sequence here grows from parts (texts, generated tokens, chat framing) that are encoded one by one and never re-encoded. So three
things matter beyond the `tokenizers` library, which does the work: text that continues a sequence gets no dummy space in front, text
from a user never turns into a special token, and decoding in steps gives the same text as decoding at once, never half a character.
"""

from __future__ import annotations

import codecs
import json
import re
import string
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers

from rtlang.contract.errors import ModelLoadError
from rtlang.model.text.chat import ChatFraming
from rtlang.model.text.token_bytes import UnsupportedDecoderError, token_bytes_of
from rtlang_grammars.vocabulary import Vocabulary

_PROBES = ("word", " a", "(", *string.ascii_letters, *string.digits)
"""Texts whose continuation encoding is checked at load."""
_OLDER_FORMATS = ("tokenizer.model", "spiece.model", "vocab.json", "merges.txt")


class IncrementalDecoder:
    """Tokens in, whole characters out. Owned by one sequence.

    Bytes that cannot be UTF-8 become U+FFFD as soon as that is certain, an unfinished character at `flush`. All pushes and the flush
    together give what `Tokenizer.decode` gives at once.
    """

    def __init__(self, token_bytes: Sequence[bytes]) -> None:
        self._token_bytes = token_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token_ids: Iterable[int]) -> str:
        """The characters that are complete now."""
        table = self._token_bytes
        return self._decoder.decode(b"".join([table[token_id] for token_id in token_ids]))

    def flush(self) -> str:
        """What was held back; the decoder starts anew."""
        text = self._decoder.decode(b"", True)
        self._decoder.reset()
        return text


@dataclass(frozen=True, slots=True)
class _Description:
    """What the files of a checkpoint say about its tokenizer."""

    content: dict[str, Any]  # of tokenizer.json
    settings: dict[str, Any]  # of tokenizer_config.json
    eos_token_ids: frozenset[int]
    chat_template: str | None


class Tokenizer:
    """A model's tokenizer. Immutable; safe to use from several threads.

    Attributes:
        vocab_size: one more than the highest token id. The model's logits may be wider.
        bos_token_id: the token that begins a text, None where the model has none. `start_ids` says whether it is used.
        eos_token_ids: the tokens that end a text.
        longest_token: bytes of the longest token; a text has at least as many tokens as it has bytes over this.
        special_token_ids: control tokens: no text, and never made from a user's text.
        chat: what stands around the messages of a conversation.
    """

    def __init__(self, description: _Description) -> None:
        self._description = description
        self._lock = threading.Lock()
        self._encoders: dict[tuple[bool, bool], Any] = {}
        self._token_bytes: tuple[bytes, ...] = ()
        self._start_ids: tuple[int, ...] = ()
        self._start_json = self._continuation_json = ""
        self.vocab_size = 0
        self.longest_token = 1
        self.bos_token_id: int | None = None
        self.eos_token_ids: frozenset[int] = frozenset()
        self.special_token_ids: frozenset[int] = frozenset()
        self._control_ids: frozenset[int] = frozenset()
        self._name_pattern: re.Pattern[str] | None = None
        self.chat = ChatFraming(self, description.chat_template, self._special_names())

    @classmethod
    def from_pretrained(cls, directory: str | Path) -> Tokenizer:
        """Read tokenizer.json, and what tokenizer_config.json, generation_config.json and config.json say besides.

        Where only an older format is there (tokenizer.model, vocab.json with merges.txt), `transformers` converts it.

        Raises:
            ModelLoadError: there is no tokenizer, or it is damaged or of a kind that cannot be used in pieces; says which.
        """
        path = Path(directory)
        content = _read_json(path, "tokenizer.json")
        if content is None:
            content = _convert(path)
        if not isinstance(content.get("model"), dict):
            raise ModelLoadError(str(path), "tokenizer.json has no model")
        settings = _read_json(path, "tokenizer_config.json") or {}
        try:
            eos_token_ids = _eos_ids(path, content, settings)
            tokenizer = cls(_Description(content, settings, eos_token_ids, _chat_template(path, settings)))
            tokenizer._load()
        except UnsupportedDecoderError as error:
            raise ModelLoadError(str(path), f"tokenizer.json: {error}") from None
        except (ModelLoadError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # for a damaged file the library raises bare exceptions, and panics
            raise ModelLoadError(str(path), f"tokenizer.json cannot be used: {error}") from error
        return tokenizer

    # -- encoding

    def encode(self, text: str, *, is_start: bool, allow_special: bool = False) -> list[int]:
        """Token ids of a text. Never adds a start or end token; see `start_ids`.

        Args:
            is_start: the text stands first in its sequence (after `start_ids`), so the tokenizer's dummy space, if it has one, goes in
                front. False: the text continues a sequence, and exactly its own bytes are encoded.
            allow_special: names of special tokens in the text become these tokens. Only for text of the program's own making, such as
                chat framing; with False they are plain characters.
        """
        if not text:
            return []
        text = text.encode("utf-8", "replace").decode() if not text.isascii() else text  # lone surrogates
        ids: list[int] = self._encoder(is_start, allow_special).encode(text, add_special_tokens=False).ids
        if allow_special or self._control_ids.isdisjoint(ids):
            return ids
        # Some models (unigram) hold their special tokens as ordinary pieces too. No piece reaches over a cut, so every name is cut.
        parts = self._cut_names(text)
        if len(parts) == 1:  # the unknown token stands for a character that the model does not have
            return ids
        ids = self._encoder(is_start, False).encode(parts[0], add_special_tokens=False).ids
        for encoding in self._encoder(False, False).encode_batch(parts[1:], add_special_tokens=False):
            ids += encoding.ids
        return ids

    def _cut_names(self, text: str) -> list[str]:
        """The text in parts, none of which holds the name of a control token; names may overlap or hold one another."""
        assert self._name_pattern is not None
        parts, start, place = [], 0, 0
        while (found := self._name_pattern.search(text, place)) is not None:
            place = found.start() + 1  # behind the first character of the name; what begins right there is cut next
            parts.append(text[start:place])
            start = place
        return [*parts, text[start:]]

    def start_ids(self) -> list[int]:
        """The tokens that begin every sequence of plain text; empty for a model without. To be put in front once, by the caller."""
        return list(self._start_ids)

    @property
    def has_dummy_space(self) -> bool:
        """Whether `encode(..., is_start=True)` puts a space in front of the text."""
        return self._start_json != self._continuation_json

    # -- decoding

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token adds to the text; b"" for special tokens and ids that the tokenizer does not use."""
        return self._token_bytes[token_id] if 0 <= token_id < self.vocab_size else b""

    def token_name(self, token_id: int) -> str:
        """How the tokenizer itself writes a token; "" for an id that it does not use."""
        return self._encoder(True, False).id_to_token(token_id) or ""

    def decode(self, token_ids: Iterable[int]) -> str:
        """The text of tokens that continue a sequence. Special tokens give no text, impossible bytes U+FFFD.

        A dummy space in front of the first word is kept, as a continuation needs it.
        """
        return b"".join(map(self.token_bytes, token_ids)).decode("utf-8", "replace")

    def decoder(self) -> IncrementalDecoder:
        """A decoder for one sequence."""
        return IncrementalDecoder(_Padded(self._token_bytes))

    # -- for grammars

    def vocabulary(self, vocab_size: int | None = None) -> Vocabulary:
        """The tokens as grammars see them, for logits `vocab_size` wide (default: the tokenizer's own size)."""
        width = self.vocab_size if vocab_size is None else vocab_size
        return Vocabulary(
            token_bytes=self._token_bytes[:width],
            eos_token_ids=frozenset(token_id for token_id in self.eos_token_ids if token_id < width),
            special_token_ids=frozenset(token_id for token_id in self.special_token_ids if token_id < width),
            vocab_size=width,
            tokenizer_json=self._continuation_json,
        )

    # -- loading

    def _load(self) -> None:
        content, settings = self._description.content, self._description.settings
        content = {**content, "truncation": None, "padding": None}
        content["added_tokens"] = _all_added_tokens(content, settings)
        self._start_json = json.dumps(content, ensure_ascii=False)
        self._continuation_json = json.dumps(_without_dummy_space(content), ensure_ascii=False)
        encoder = self._encoder(True, False)
        self.vocab_size = max(encoder.get_vocab(with_added_tokens=True).values(), default=-1) + 1
        self.special_token_ids = frozenset(entry["id"] for entry in content["added_tokens"] if entry["special"])
        control = {entry["id"]: entry["content"] for entry in content["added_tokens"] if entry["special"]}
        self._control_ids = frozenset(control)
        names = sorted(filter(None, control.values()))
        self._name_pattern = re.compile("|".join(map(re.escape, names))) if names else None
        self.eos_token_ids = frozenset(i for i in self._description.eos_token_ids if 0 <= i < self.vocab_size)
        silent = self.special_token_ids | self.eos_token_ids
        table = token_bytes_of(content, self.vocab_size)
        self._token_bytes = tuple(b"" if token_id in silent else text for token_id, text in enumerate(table))
        self.longest_token = max(map(len, self._token_bytes), default=0) or 1
        bos = _token_name(settings.get("bos_token"))
        self.bos_token_id = encoder.token_to_id(bos) if bos else None
        self._start_ids = self._find_start_ids(encoder)
        if self.bos_token_id is None and self._start_ids:
            self.bos_token_id = self._start_ids[0]
        for probe in _PROBES:
            ids = self.encode(probe, is_start=False)
            got = b"".join(map(self.token_bytes, ids)).decode("utf-8", "replace")
            if not ids and not self._encoder(True, False).encode(probe, add_special_tokens=False).ids:
                raise UnsupportedDecoderError(f"it leaves out {probe!r} without a word")
            if got != probe and got.endswith(probe):
                prefix = got.removesuffix(probe)
                raise UnsupportedDecoderError(
                    f"it puts {prefix!r} in front of every text in a way that cannot be switched off"
                )

    def _find_start_ids(self, encoder: Any) -> tuple[int, ...]:
        settings = self._description.settings
        if settings.get("add_bos_token") is not None:
            return (self.bos_token_id,) if settings["add_bos_token"] and self.bos_token_id is not None else ()
        plain = encoder.encode("a", add_special_tokens=False).ids
        whole = encoder.encode("a", add_special_tokens=True).ids
        for at in range(len(whole) - len(plain) + 1):
            if whole[at : at + len(plain)] == plain:
                return tuple(whole[:at])
        return ()

    def _encoder(self, is_start: bool, allow_special: bool) -> Any:
        # `encode_special_tokens` is a switch on the object, so each setting has an object of its own; the rarer ones are made on demand.
        key = (is_start and self.has_dummy_space, allow_special)
        encoder = self._encoders.get(key)
        if encoder is None:
            with self._lock:
                encoder = self._encoders.get(key)
                if encoder is None:
                    encoder = tokenizers.Tokenizer.from_str(self._start_json if key[0] else self._continuation_json)
                    encoder.encode_special_tokens = not allow_special
                    self._encoders[key] = encoder
        return encoder

    def _special_names(self) -> dict[str, str]:
        settings = self._description.settings
        names = {f"{kind}_token": _token_name(settings.get(f"{kind}_token")) for kind in ("bos", "eos", "unk", "pad")}
        return {kind: name for kind, name in names.items() if name}


class _Padded(Sequence[bytes]):
    """Token bytes with b"" for every id beyond the tokenizer, since the model's logits may be wider."""

    def __init__(self, token_bytes: tuple[bytes, ...]) -> None:
        self._token_bytes = token_bytes

    def __len__(self) -> int:
        return len(self._token_bytes)

    def __getitem__(self, token_id: Any) -> Any:
        return self._token_bytes[token_id] if 0 <= token_id < len(self._token_bytes) else b""


def _read_json(directory: Path, name: str) -> dict[str, Any] | None:
    path = directory / name
    try:
        if path.exists() and not path.is_file():  # reading a pipe would wait for ever
            raise ModelLoadError(str(directory), f"{name} is no file")
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelLoadError(str(directory), f"{name} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise ModelLoadError(str(directory), f"{name} does not hold an object")
    return content


def _convert(directory: Path) -> dict[str, Any]:
    """What tokenizer.json would hold, from a tokenizer in an older format."""
    found = [name for name in _OLDER_FORMATS if (directory / name).is_file()]
    if not found:
        raise ModelLoadError(str(directory), "there is no tokenizer: tokenizer.json is missing")
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, trust_remote_code=False, local_files_only=True)
        content: dict[str, Any] = json.loads(tokenizer.backend_tokenizer.to_str())
    except Exception as error:  # foreign code over any file; none of its errors may pass for ours
        lines = str(error).strip().splitlines() or [repr(error)]
        raise ModelLoadError(
            str(directory),
            f"tokenizer.json is missing, and transformers cannot make it from {', '.join(found)} ({lines[0]}); "
            "save the tokenizer in that format",
        ) from error
    return content


def _token_name(token: object) -> str | None:
    """A token in tokenizer_config.json: its name, or an object with the name as content."""
    if isinstance(token, Mapping):
        token = token.get("content")
    return token if isinstance(token, str) and token else None


def _named_tokens(settings: dict[str, Any]) -> list[object]:
    named = [settings.get(f"{kind}_token") for kind in ("bos", "eos", "unk", "pad", "sep", "cls", "mask")]
    for key in ("additional_special_tokens", "extra_special_tokens"):
        more = settings.get(key)
        named += more.values() if isinstance(more, Mapping) else more if isinstance(more, list) else ()
    return named


def _all_added_tokens(content: dict[str, Any], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Added tokens of tokenizer.json, and those that only tokenizer_config.json lists."""
    added = {entry["content"]: dict(entry) for entry in content.get("added_tokens") or ()}
    defaults = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    for key, entry in (settings.get("added_tokens_decoder") or {}).items():
        name = _token_name(entry)
        if name is not None and name not in added:
            flags = (
                {flag: entry.get(flag, value) for flag, value in defaults.items()}
                if isinstance(entry, dict)
                else defaults
            )
            added[name] = {"id": int(key), "content": name, **flags}
    named = {name for name in map(_token_name, _named_tokens(settings)) if name}
    for name, entry in added.items():
        entry["special"] = bool(entry.get("special")) or name in named
    return sorted(added.values(), key=lambda entry: int(entry["id"]))


def _eos_ids(path: Path, content: dict[str, Any], settings: dict[str, Any]) -> frozenset[int]:
    """All end tokens that any of the checkpoint's files names."""
    found: set[int] = set()
    for name in ("generation_config.json", "config.json"):
        config = _read_json(path, name) or {}
        for part in (config, config.get("text_config")):
            value = part.get("eos_token_id") if isinstance(part, dict) else None
            found.update(i for i in (value if isinstance(value, list) else [value]) if type(i) is int and i >= 0)
    eos = _token_name(settings.get("eos_token"))
    if eos is not None:
        found.update(entry["id"] for entry in _all_added_tokens(content, settings) if entry["content"] == eos)
        vocab = content["model"].get("vocab")
        if isinstance(vocab, dict) and eos in vocab:
            found.add(vocab[eos])
    return frozenset(found)


def _chat_template(path: Path, settings: dict[str, Any]) -> str | None:
    """The template for plain conversations: chat_template.jinja, or the entry of tokenizer_config.json."""
    source = path / "chat_template.jinja"
    try:
        if source.is_file():
            return source.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ModelLoadError(str(path), f"chat_template.jinja cannot be read: {error}") from None
    template = settings.get("chat_template")
    if isinstance(template, list):  # several, by name
        named = {entry.get("name"): entry.get("template") for entry in template if isinstance(entry, dict)}
        template = named.get("default")
    return template if isinstance(template, str) else None


def _without_dummy_space(content: dict[str, Any]) -> dict[str, Any]:
    """The tokenizer with whatever puts a space in front of a text taken out."""
    return {
        **content,
        "normalizer": _strip_step(content.get("normalizer"), "normalizers"),
        "pre_tokenizer": _strip_step(content.get("pre_tokenizer"), "pretokenizers"),
    }


def _strip_step(step: dict[str, Any] | None, key: str) -> dict[str, Any] | None:
    if step is None or step["type"] == "Prepend":
        return None
    if step["type"] == "Sequence":
        children = [kept for child in step[key] if (kept := _strip_step(child, key)) is not None]
        return {**step, key: children} if children else None
    if step["type"] == "Metaspace":
        return {**{k: v for k, v in step.items() if k != "add_prefix_space"}, "prepend_scheme": "never"}
    if step["type"] == "ByteLevel":
        return {**step, "add_prefix_space": False}
    return step
