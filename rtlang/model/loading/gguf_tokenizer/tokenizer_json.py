"""The tokenizer and the chat template of a GGUF file, as the content of tokenizer.json and tokenizer_config.json.

Tokens are the ones that llama.cpp gives, except where the published tokenizers differ from it:

- a text is brought to Unicode's NFC where the published tokenizer does that (`PreTokenizer.is_composed`);
- words are cut by the published pattern (pre_tokenizers.py);
- of tokens that are matched in a text before it is cut, the leftmost is taken, not the longest of the whole text;
- text never becomes a control token by merging, nor a byte that it only names;
- `</s>` is a control token and ends a text only if its type says so: Gemma has it as a tag of HTML;
- tokens for filling in the middle do not end a text;
- a unigram model with byte tokens uses them, and puts its dummy space also before a text of spaces alone, as SentencePiece does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rtlang.model.loading.gguf_tokenizer.pre_tokenizers import PRE_TOKENIZERS, PreTokenizer
from rtlang.model.loading.gguf_tokenizer.scored_tokens import merging_tokens, unigram_tokens
from rtlang.model.loading.gguf_tokenizer.token_list import (
    MERGES,
    SPECIAL_TYPES,
    UNKNOWN,
    TokenizerKeys,
    TokenList,
    TokenType,
)

logger = logging.getLogger(__name__)

_MODEL, _PRE = "tokenizer.ggml.model", "tokenizer.ggml.pre"
_NAMED_IDS = {
    "bos": "tokenizer.ggml.bos_token_id",
    "eos": "tokenizer.ggml.eos_token_id",
    "unk": UNKNOWN,
    "sep": "tokenizer.ggml.seperator_token_id",  # spelled so in the files
    "pad": "tokenizer.ggml.padding_token_id",
    "cls": "tokenizer.ggml.cls_token_id",
    "mask": "tokenizer.ggml.mask_token_id",
    "eot": "tokenizer.ggml.eot_token_id",
    "eom": "tokenizer.ggml.eom_token_id",
}
_ENDS_BY_NAME = frozenset(
    (
        *("<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<turn|>", "<end_of_utterance>"),
        *("<|return|>", "<|call|>", "<|calls|>", "<|flush|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<eos>", "[e~["),
        *("<|endoftext|>", "<|end_of_text|>", "<\uff5cend\u2581of\u2581sentence\uff5c>"),
    )
)
"""Names of tokens that end a turn or a text, whatever a file says of them."""
_CALLS, _RETURNS = ("<|call|>", "<|calls|>"), ("<|return|>", "<|flush|>")
"""Names of formats where `<|end|>` ends one message of several."""
_NOT_STRIPPED = frozenset(("<unk>", "<s>", "<|endoftext|>"))


@dataclass(frozen=True, slots=True)
class _Kind:
    """A value of `tokenizer.ggml.model`."""

    read: Callable[[TokenizerKeys, TokenList, int | None], dict[str, Any]]
    adds_bos: bool
    adds_eos: bool
    ids: dict[str, int]  # of tokens that the file does not name


@dataclass(frozen=True, slots=True)
class TokenizerParts:
    """A tokenizer, in the parts that a model directory has in files.

    Attributes:
        content: of tokenizer.json.
        settings: of tokenizer_config.json, with the chat template.
        eos_token_ids: tokens that end generation.
    """

    content: dict[str, Any]
    settings: dict[str, Any]
    eos_token_ids: frozenset[int]


def tokenizer_parts(metadata: Mapping[str, Any], source: str) -> TokenizerParts:
    """Build the tokenizer that the metadata of a GGUF file describes.

    Args:
        metadata: values by key. Tokens are strings or bytes.
        source: the file, for errors.
    Raises:
        ModelLoadError: a key is missing, damaged or has a value that is not supported; names it.
    """
    keys = TokenizerKeys(metadata, source)
    model = keys.text(_MODEL)
    kind = _KINDS.get(model or "")
    if kind is None:
        shown = "is missing" if model is None else f"= {model!r:.80} is not supported"
        raise keys.error(_MODEL, f"{shown}: expected {', '.join(_KINDS)}")
    tokens = TokenList.read(keys)
    count = len(tokens.names)
    ids = {name: keys.token_id(key, count, kind.ids.get(name)) for name, key in _NAMED_IDS.items()}
    ends = _ends(tokens, ids)
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": tokens.added(ends, _stripped(keys, tokens)),
        "post_processor": None,
        **kind.read(keys, tokens, ids["unk"]),
    }
    return TokenizerParts(content, _settings(keys, tokens, kind, ids), ends)


def _settings(keys: TokenizerKeys, tokens: TokenList, kind: _Kind, ids: dict[str, int | None]) -> dict[str, Any]:
    settings: dict[str, Any] = {
        f"{name}_token": tokens.names[token_id]
        for name in ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
        if (token_id := ids[name]) is not None
    }
    adds_bos = kind.adds_bos or (kind is _KINDS["gpt2"] and _pre_tokenizer(keys).adds_bos)
    for name, default in (("bos", adds_bos), ("eos", kind.adds_eos)):
        key = f"tokenizer.ggml.add_{name}_token"
        settings[f"add_{name}_token"] = keys.flag(key, default)
        if settings[f"add_{name}_token"] and ids[name] is None:
            raise keys.error(_NAMED_IDS[name], f"is missing: expected the id of a token, since {key} is true")
    templates = keys.templates()
    if len(templates) > 1:
        settings["chat_template"] = [{"name": name, "template": text} for name, text in templates.items()]
    elif "default" in templates:
        settings["chat_template"] = templates["default"]
    return settings


def _ends(tokens: TokenList, ids: dict[str, int | None]) -> frozenset[int]:
    """Tokens that end a text: those that the file names, and those whose name says it."""
    by_name = {name: index for index, name in enumerate(tokens.names) if name in _ENDS_BY_NAME}
    if not by_name.keys().isdisjoint(_CALLS) and not by_name.keys().isdisjoint(_RETURNS):
        by_name.pop("<|end|>", None)
    named = {token_id for name in ("eos", "eot", "eom") if (token_id := ids[name]) is not None}
    slashes = {
        index for index, name in enumerate(tokens.names) if name == "</s>" and tokens.types[index] in SPECIAL_TYPES
    }
    return frozenset(named | slashes | set(by_name.values()))


def _stripped(keys: TokenizerKeys, tokens: TokenList) -> frozenset[int]:
    """Tokens that take the whitespace after them: those of Phi 3, whose files do not say it."""
    name = (keys.text("general.name") or "").lower()
    if "phi-3" not in name and "phi3" not in name:
        return frozenset()
    return frozenset(
        index
        for index, kind in enumerate(tokens.types)
        if (kind in SPECIAL_TYPES or kind == TokenType.USER_DEFINED) and tokens.names[index] not in _NOT_STRIPPED
    )


def _pre_tokenizer(keys: TokenizerKeys) -> PreTokenizer:
    name = keys.text(_PRE, "default") or "default"
    found = PRE_TOKENIZERS.get(name)
    if found is None:
        raise keys.error(_PRE, f"= {name!r:.80} is not supported: expected {', '.join(sorted(PRE_TOKENIZERS))}")
    return found


def _byte_level(keys: TokenizerKeys, tokens: TokenList, unknown: int | None) -> dict[str, Any]:
    """Byte-pair encoding on the 256 characters that stand for bytes. The unknown token is not used."""
    cut = _pre_tokenizer(keys)
    if keys.text(_PRE) is None:
        logger.warning("%s: %s is missing, so words may be cut differently than in training", keys.source, _PRE)
    ids = tokens.ids()
    merges: dict[tuple[str, str], None] = {}
    for index, merge in enumerate(keys.needed_entries(MERGES, (str, bytes), "strings")):
        text = merge.decode("utf-8", "replace") if isinstance(merge, bytes) else merge
        at = text.find(" ", 1)
        left, right = text[:at], text[at + 1 :]
        if at < 0 or left not in ids or right not in ids or left + right not in ids:
            raise keys.error(MERGES, f"has {text!r:.80} at {index}: expected two tokens that make a third")
        merges.setdefault((left, right))
    return {
        **cut.steps(),
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": cut.ignores_merges,
            "vocab": ids,
            "merges": list(merges),
        },
    }


def _word_pieces(keys: TokenizerKeys, tokens: TokenList, unknown: int | None) -> dict[str, Any]:
    """Longest-match pieces of words. The files mark the start of a word, tokenizer.json what continues one."""
    if unknown is None:
        raise keys.error(UNKNOWN, "is missing: expected the id of the token for unknown words")
    vocabulary: dict[str, int] = {}
    for index, (name, kind) in enumerate(zip(tokens.names, tokens.types, strict=True)):
        is_piece = kind not in SPECIAL_TYPES and kind != TokenType.USER_DEFINED and index != unknown
        piece = (name[1:] if name.startswith("\u2581") else f"##{name}") if is_piece else name
        vocabulary.setdefault(piece, index)
    lowercase = keys.flag("tokenizer.ggml.normalizer.lowercase", True)
    return {
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": keys.flag("tokenizer.ggml.normalizer.strip_accents", lowercase),
            "lowercase": lowercase,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False},
        "model": {
            "type": "WordPiece",
            "unk_token": tokens.names[unknown],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocabulary,
        },
    }


_KINDS = {
    "gpt2": _Kind(_byte_level, adds_bos=False, adds_eos=False, ids={}),
    "llama": _Kind(merging_tokens, adds_bos=True, adds_eos=False, ids={"bos": 1, "eos": 2, "unk": 0}),
    "t5": _Kind(unigram_tokens, adds_bos=False, adds_eos=True, ids={"eos": 1, "unk": 2, "pad": 0}),
    "bert": _Kind(
        _word_pieces,
        adds_bos=True,
        adds_eos=False,
        ids={"bos": 101, "unk": 100, "sep": 102, "pad": 0, "mask": 103},
    ),
}
"""By the names in `tokenizer.ggml.model`."""
