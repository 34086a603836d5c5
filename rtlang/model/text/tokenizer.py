"""Incremental tokenization and detokenization.

A sequence grows from parts (text, generated tokens, chat framing) that are encoded one by one and never re-encoded. This adds three
guarantees to the `tokenizers` library: text that continues a sequence gets no dummy prefix space, user text never becomes a special token,
and incremental decoding gives the same text as decoding at once, without splitting characters.
"""

from __future__ import annotations

import codecs
import functools
import json
import re
import string
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers

from rtlang.contract.errors import ModelLoadError
from rtlang.model.text.chat import ChatTemplate
from rtlang.model.text.constant_texts import ConstantTexts
from rtlang.model.text.conversation import framing
from rtlang.model.text.reply_format import reply_format
from rtlang_grammars import Vocabulary
from rtlang_grammars.spec.errors import UnsupportedTokenizerError
from rtlang_grammars.spec.token_bytes import token_bytes_of, without_dummy_space

_PROBES = ("word", " a", "(", *string.ascii_letters, *string.digits)
"""Strings that must survive encoding and decoding as a continuation; checked at load time."""
_LONG_TEXT = 4000  # characters, about 4 ms
_OLDER_FORMATS = ("tokenizer.model", "spiece.model", "vocab.json", "merges.txt")


class IncrementalDecoder:
    """Incremental detokenizer of one sequence: returns whole characters.

    Invalid UTF-8 becomes U+FFFD as soon as it is certain to be invalid, and so does an incomplete character at `flush`. Concatenated,
    the results equal `Tokenizer.decode` of all tokens.
    """

    def __init__(self, token_bytes: Sequence[bytes]) -> None:
        self._token_bytes = token_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token_ids: Iterable[int]) -> str:
        """Add tokens; returns the characters that they complete."""
        table = self._token_bytes
        return self._decoder.decode(b"".join([table[token_id] for token_id in token_ids]))

    def flush(self) -> str:
        """Return the incomplete rest and reset the decoder."""
        text = self._decoder.decode(b"", True)
        self._decoder.reset()
        return text


@dataclass(frozen=True, slots=True)
class _Description:
    """The tokenizer-related content of a checkpoint's files."""

    content: dict[str, Any]  # of tokenizer.json
    settings: dict[str, Any]  # of tokenizer_config.json
    eos_token_ids: frozenset[int]
    num_logits: int  # of config.json; 0 if it does not say
    chat_template: str | None


class Tokenizer:
    """A model's tokenizer. Immutable; safe to use from several threads.

    Attributes:
        vocab_size: highest token id plus one. The model's logits may be wider.
        num_ids: ids that a text may consist of are below it: `vocab_size`, or the width of the model's logits if they are wider, since a
            model may give such an id, which has no text.
        bos_token_id: the start token, or None. `start_ids` tells whether it is used.
        eos_token_ids: tokens that end generation.
        longest_token: length in bytes of the longest token, a lower bound for token counts.
        special_token_ids: control tokens, which have no text and never result from user text.
        chat: the chat template.
        bos_name: the name of the start token in chat templates; empty if there is none.
        constant_texts: the tokens of texts of programs; used on the engine thread only.
    """

    def __init__(self, description: _Description) -> None:
        self._description = description
        self._lock = threading.Lock()
        self._encoders: dict[tuple[bool, bool], Any] = {}
        self._token_bytes: tuple[bytes, ...] = ()
        self._named_bytes: tuple[bytes, ...] = ()  # with the names of special tokens
        self._start_ids: tuple[int, ...] = ()
        self._start_json = self._continuation_json = ""
        self._has_dummy_space = False
        self.vocab_size = self.num_ids = 0
        self.longest_token = 1
        self.bos_token_id: int | None = None
        self.eos_token_ids: frozenset[int] = frozenset()
        self.special_token_ids: frozenset[int] = frozenset()
        self._control_ids: frozenset[int] = frozenset()
        self._name_pattern: re.Pattern[str] | None = None
        self.constant_texts = ConstantTexts(self)
        names = self._special_names()
        self.bos_name = names.get("bos_token", "")
        self.chat = ChatTemplate(self, description.chat_template, names)

    @classmethod
    def from_pretrained(
        cls,
        directory: str | Path,
        *,
        settings: dict[str, Any] | None = None,
        eos_token_ids: Iterable[int] = (),
        num_logits: int = 0,
    ) -> Tokenizer:
        """Load tokenizer.json, and related settings from tokenizer_config.json, generation_config.json and config.json.

        If only an older format exists (tokenizer.model, or vocab.json with merges.txt), `transformers` converts it.

        Args:
            settings: of tokenizer_config.json, if the directory has none.
            eos_token_ids: tokens that end generation, besides those that the files name.
            num_logits: the model's own size of its vocabulary, if config.json does not say it.
        Raises:
            ModelLoadError: the tokenizer is missing, damaged, or cannot be used incrementally.
        """
        path = Path(directory)
        content = _read_json(path, "tokenizer.json")
        if content is None:
            content = _convert(path)
        settings = _read_json(path, "tokenizer_config.json") or settings or {}
        template = _chat_template_file(path)
        if template is not None:
            settings = {**settings, "chat_template": template}
        return cls.from_parts(
            content,
            settings,
            source=str(path),
            eos_token_ids=_config_eos_ids(path).union(eos_token_ids),
            num_logits=_num_logits(path) or num_logits,
        )

    @classmethod
    def from_parts(
        cls,
        content: dict[str, Any],
        settings: dict[str, Any],
        *,
        source: str,
        part: str = "tokenizer.json",
        eos_token_ids: Iterable[int] = (),
        num_logits: int = 0,
    ) -> Tokenizer:
        """Make a tokenizer of what the files of a model directory say.

        Args:
            content: of tokenizer.json.
            settings: of tokenizer_config.json, with the chat template.
            source: the model directory or file, for errors.
            part: the part of the source that describes the tokenizer, for errors.
            eos_token_ids: tokens that end generation, besides the one in the settings.
            num_logits: the model's own size of its vocabulary; 0 if it is unknown.
        Raises:
            ModelLoadError: the tokenizer is damaged, or cannot be used incrementally.
        """
        if not isinstance(content.get("model"), dict):
            raise ModelLoadError(source, f"{part} has no model entry")
        try:
            eos = frozenset((*eos_token_ids, *_named_eos_ids(content, settings)))
            tokenizer = cls(_Description(content, settings, eos, num_logits, _chat_template(settings)))
            tokenizer._load()
            tokenizer.chat.prepare()
        except UnsupportedTokenizerError as error:
            raise ModelLoadError(source, f"{part}: {error}") from None
        except (ModelLoadError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # for damaged files the library raises bare exceptions and panics
            raise ModelLoadError(source, f"{part} cannot be used: {error}") from error
        return tokenizer

    # -- encoding

    def encode(self, text: str, *, is_start: bool, allow_special: bool = False) -> list[int]:
        """Encode text. Never adds a start or end token; see `start_ids`.

        Args:
            is_start: whether the text starts its sequence (after `start_ids`) and so gets the tokenizer's dummy prefix space, if any.
                Otherwise exactly its own bytes are encoded.
            allow_special: whether names of special tokens are encoded as these tokens; only for trusted text such as chat framing.
        """
        if not text:
            return []
        text = text.encode("utf-8", "replace").decode() if not text.isascii() else text  # lone surrogates
        ids = _encoded(self._encoder(is_start, allow_special), text)
        if allow_special or self._control_ids.isdisjoint(ids):
            return ids
        # Some models (unigram) also contain special tokens as ordinary tokens. Tokens never cross a split, so every name is split.
        parts = self._cut_names(text)
        if len(parts) == 1:  # the unknown token replaces a character that the model lacks
            return ids
        ids = _encoded(self._encoder(is_start, False), parts[0])
        for encoding in self._encoder(False, False).encode_batch(parts[1:], add_special_tokens=False):
            ids += encoding.ids
        return ids

    def special_names(self, text: str) -> Iterator[tuple[int, int]]:
        """The places in a text where names of control tokens begin and end, as encoding with `allow_special` finds them."""
        if self._name_pattern is not None:
            for found in self._name_pattern.finditer(text):
                yield found.span()

    def _cut_names(self, text: str) -> list[str]:
        """Split the text so that no part contains the name of a control token; names may overlap or contain each other."""
        assert self._name_pattern is not None
        parts, start, place = [], 0, 0
        while (found := self._name_pattern.search(text, place)) is not None:
            place = found.start() + 1  # after the first character of the name; a name starting there is split next
            parts.append(text[start:place])
            start = place
        return [*parts, text[start:]]

    def start_ids(self) -> list[int]:
        """The tokens that start every sequence, if any. The caller must prepend them once."""
        return list(self._start_ids)

    def framing(self, roles: Sequence[str], role: str, *, is_begin: bool) -> str:
        """The text that the chat template writes before or after the content of a message; see `conversation.framing`."""
        return framing(self.chat, roles, role, is_begin=is_begin)

    @functools.cached_property
    def tool_format(self) -> str | None:
        """The name of the format in which the model writes reasoning and tool calls; see reply_format.py."""
        names = [entry["content"] for entry in self._description.content.get("added_tokens") or ()]
        found = reply_format(self.chat, names)
        return None if found is None else found.name

    @property
    def has_dummy_space(self) -> bool:
        """Whether `encode(..., is_start=True)` adds a dummy prefix space."""
        return self._has_dummy_space

    # -- decoding

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of a token; b"" for special tokens and unused ids."""
        return self._token_bytes[token_id] if 0 <= token_id < self.vocab_size else b""

    def named_bytes(self, token_id: int) -> bytes:
        """The bytes of a token; for special tokens their names, b"" for unused ids."""
        return self._named_bytes[token_id] if 0 <= token_id < self.vocab_size else b""

    def difference(self, other: Tokenizer) -> str | None:
        """The first difference between the tokens of this tokenizer and another one, in words; None if all tokens are the same."""
        ours, theirs = self._named_bytes, other._named_bytes
        for token_id, (mine, its) in enumerate(zip(ours, theirs, strict=False)):
            if mine != its:
                return f"token {token_id} is {its!r} instead of {mine!r}"
        if len(ours) != len(theirs):
            return f"{len(theirs):,} tokens instead of {len(ours):,}"
        return None

    def token_name(self, token_id: int) -> str:
        """The tokenizer's own spelling of a token; "" for an unused id."""
        return self._encoder(True, False).id_to_token(token_id) or ""

    def decode(self, token_ids: Iterable[int]) -> str:
        """Decode tokens that continue a sequence. Special tokens give no text, invalid bytes U+FFFD.

        A space before the first word is kept.
        """
        return b"".join(map(self.token_bytes, token_ids)).decode("utf-8", "replace")

    def decoder(self, *, shows_special: bool = False) -> IncrementalDecoder:
        """Create an incremental decoder for one sequence; `shows_special`: special tokens give their names, not b""."""
        return IncrementalDecoder(_Padded(self._named_bytes if shows_special else self._token_bytes))

    # -- for grammars

    def vocabulary(self, vocab_size: int | None = None) -> Vocabulary:
        """The vocabulary for grammars, for logits of width `vocab_size` (default: the tokenizer's size)."""
        width = self.vocab_size if vocab_size is None else vocab_size
        return Vocabulary(
            token_bytes=self._named_bytes[:width],
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
        continued = without_dummy_space(content)
        self._has_dummy_space = any(continued[step] != content.get(step) for step in ("normalizer", "pre_tokenizer"))
        self._start_json = self._continuation_json = json.dumps(content, ensure_ascii=False)  # megabytes
        if self._has_dummy_space:
            self._continuation_json = json.dumps(continued, ensure_ascii=False)
        encoder = self._encoder(True, False)
        self.vocab_size = max((*_model_ids(content["model"]), *encoder.get_added_tokens_decoder()), default=-1) + 1
        self.num_ids = max(self.vocab_size, self._description.num_logits)
        self.special_token_ids = frozenset(entry["id"] for entry in content["added_tokens"] if entry["special"])
        control = {entry["id"]: entry["content"] for entry in content["added_tokens"] if entry["special"]}
        self._control_ids = frozenset(control)
        names = sorted(
            filter(None, control.values()), key=len, reverse=True
        )  # the longest name at a place is the token
        self._name_pattern = re.compile("|".join(map(re.escape, names))) if names else None
        self.eos_token_ids = frozenset(i for i in self._description.eos_token_ids if 0 <= i < self.vocab_size)
        silent = self.special_token_ids | self.eos_token_ids
        table = token_bytes_of(content, self.vocab_size)
        self._token_bytes = tuple(b"" if token_id in silent else text for token_id, text in enumerate(table))
        self._named_bytes = table
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
                raise UnsupportedTokenizerError(f"the tokenizer silently drops {probe!r}")
            if got != probe and got.endswith(probe):
                prefix = got.removesuffix(probe)
                raise UnsupportedTokenizerError(
                    f"the tokenizer prepends {prefix!r} to every string, which cannot be disabled"
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
        # `encode_special_tokens` is a flag of the object, so each setting has its own object, created on demand.
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
    """Token bytes, with b"" for ids beyond the tokenizer, since the model's logits may be wider."""

    def __init__(self, token_bytes: tuple[bytes, ...]) -> None:
        self._token_bytes = token_bytes

    def __len__(self) -> int:
        return len(self._token_bytes)

    def __getitem__(self, token_id: Any) -> Any:
        return self._token_bytes[token_id] if 0 <= token_id < len(self._token_bytes) else b""


def _encoded(encoder: Any, text: str) -> list[int]:
    """The tokens of a text. A long one is encoded as a batch, which lets other threads run; the call for one text does not."""
    if len(text) <= _LONG_TEXT:
        ids: list[int] = encoder.encode(text, add_special_tokens=False).ids
    else:
        ids = encoder.encode_batch_fast([text], add_special_tokens=False)[0].ids
    return ids


def _read_json(directory: Path, name: str) -> dict[str, Any] | None:
    path = directory / name
    try:
        if path.exists() and not path.is_file():  # reading a pipe would block forever
            raise ModelLoadError(str(directory), f"{name} is not a regular file")
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelLoadError(str(directory), f"{name} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise ModelLoadError(str(directory), f"{name} must contain a JSON object")
    return content


def _convert(directory: Path) -> dict[str, Any]:
    """Convert a tokenizer in an older format to the content of tokenizer.json."""
    found = [name for name in _OLDER_FORMATS if (directory / name).is_file()]
    if not found:
        raise ModelLoadError(str(directory), "no tokenizer found: tokenizer.json is missing")
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, trust_remote_code=False, local_files_only=True)
        content: dict[str, Any] = json.loads(tokenizer.backend_tokenizer.to_str())
    except Exception as error:  # third-party code on arbitrary files may raise anything
        lines = str(error).strip().splitlines() or [repr(error)]
        raise ModelLoadError(
            str(directory),
            f"tokenizer.json is missing, and transformers cannot convert {', '.join(found)} ({lines[0]}); "
            "save the tokenizer as tokenizer.json",
        ) from error
    return content


def _token_name(token: object) -> str | None:
    """The name of a token entry in tokenizer_config.json: a string, or an object with `content`."""
    if isinstance(token, Mapping):
        token = token.get("content")
    return token if isinstance(token, str) and token else None


def _named_tokens(settings: dict[str, Any]) -> list[object]:
    named = [settings.get(f"{kind}_token") for kind in ("bos", "eos", "unk", "pad", "sep", "cls", "mask")]
    for key in ("additional_special_tokens", "extra_special_tokens"):
        more = settings.get(key)
        named += more.values() if isinstance(more, Mapping) else more if isinstance(more, list) else ()
    return named


def _model_ids(model: dict[str, Any]) -> Iterable[int]:
    """The ids of the tokens of a model in tokenizer.json, without added ones."""
    vocab = model.get("vocab") or {}
    return vocab.values() if isinstance(vocab, dict) else range(len(vocab))


def _all_added_tokens(content: dict[str, Any], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Added tokens of tokenizer.json and tokenizer_config.json."""
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


def _config_eos_ids(path: Path) -> set[int]:
    """End tokens named in the checkpoint's generation_config.json and config.json."""
    found: set[int] = set()
    for name in ("generation_config.json", "config.json"):
        for part in _configs(path, name):
            value = part.get("eos_token_id")
            found.update(i for i in (value if isinstance(value, list) else [value]) if type(i) is int and i >= 0)
    return found


def _named_eos_ids(content: dict[str, Any], settings: dict[str, Any]) -> set[int]:
    """The end token that tokenizer_config.json names."""
    found: set[int] = set()
    eos = _token_name(settings.get("eos_token"))
    if eos is not None:
        found.update(entry["id"] for entry in _all_added_tokens(content, settings) if entry["content"] == eos)
        vocab = content["model"].get("vocab")
        if isinstance(vocab, dict) and eos in vocab:
            found.add(vocab[eos])
    return found


def _num_logits(path: Path) -> int:
    """The model's own size of its vocabulary; 0 if config.json does not say."""
    sizes = (part.get("vocab_size") for part in _configs(path, "config.json"))
    return max((size for size in sizes if type(size) is int), default=0)


def _configs(path: Path, name: str) -> list[dict[str, Any]]:
    """A configuration and that of its text model, as far as they exist."""
    config = _read_json(path, name) or {}
    return [part for part in (config, config.get("text_config")) if isinstance(part, dict)]


def _chat_template_file(path: Path) -> str | None:
    """The chat template in chat_template.jinja, which counts more than the entry in tokenizer_config.json."""
    source = path / "chat_template.jinja"
    try:
        if source.is_file():
            return source.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ModelLoadError(str(path), f"chat_template.jinja cannot be read: {error}") from None
    return None


def _chat_template(settings: dict[str, Any]) -> str | None:
    """The default chat template in tokenizer_config.json."""
    template = settings.get("chat_template")
    if isinstance(template, list):  # several, by name
        named = {entry.get("name"): entry.get("template") for entry in template if isinstance(entry, dict)}
        template = named.get("default")
    return template if isinstance(template, str) else None
