"""Tokenizers of SentencePiece: tokens with scores, in the two ways that scores are used.

Score-greedy merging (`llama`): of all neighbors that make a token together, those with the best token merge first, at equal scores the
ones further left. Byte-pair encoding does the same if its merges are ordered by the score of what they make, except that two merges with
one score have an order of their own there. Unigram (`t5`): the tokens with the best sum of scores.
"""

from __future__ import annotations

import base64
import itertools
from typing import Any

from rtlang.model.loading.gguf_tokenizer.token_list import (
    SPECIAL_TYPES,
    TOKENS,
    UNKNOWN,
    TokenizerKeys,
    TokenList,
    TokenType,
)

_CHARSMAP = "tokenizer.ggml.precompiled_charsmap"
_MARK = "\u2581"
_PARTS = 64  # the name of a control token has fewer
_MOST_CUTS = 200_000_000  # the sum of the squares of all lengths; Gemma has 11 million
_SKIPPED = "#version"  # merges that are strings and start with it are taken for a comment
_NEVER_MERGED = SPECIAL_TYPES | {TokenType.BYTE}
"""Tokens that text never becomes by merging, as in SentencePiece; llama.cpp does not exclude them."""


def merging_tokens(keys: TokenizerKeys, tokens: TokenList, unknown: int | None) -> dict[str, Any]:
    """The content of tokenizer.json for score-greedy merging.

    Raises:
        ModelLoadError: the scores are missing or damaged, or tokens are too long.
    """
    scores = keys.scores(len(tokens.names))
    merges = _merges(keys, tokens, scores)
    has_prefix = keys.flag("tokenizer.ggml.add_space_prefix", True)
    steps: list[dict[str, Any]] = [{"type": "Prepend", "prepend": _MARK}] if has_prefix else []
    return {
        "normalizer": {"type": "Sequence", "normalizers": [*steps, _replaced(" ", _MARK)]},
        "pre_tokenizer": None,
        "decoder": _decoder(has_prefix),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None if unknown is None else tokens.names[unknown],
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": tokens.ids(),
            "merges": merges,
        },
    }


def unigram_tokens(keys: TokenizerKeys, tokens: TokenList, unknown: int | None) -> dict[str, Any]:
    """The content of tokenizer.json for a unigram model.

    Raises:
        ModelLoadError: the scores or the map of characters are damaged, or there is no token for unknown characters.
    """
    if unknown is None:
        raise keys.error(UNKNOWN, "is missing: expected the id of the token for unknown characters")
    names, types, scores = tokens.names, tokens.types, keys.scores(len(tokens.names))
    lowest = min((score for score, kind in zip(scores, types, strict=True) if kind == TokenType.NORMAL), default=0.0)
    # A user-defined token wins over all others. Text that spells a control token or a byte is read as its parts, which are always better.
    # Unknown characters are worse than the worst token; that this is lower than in SentencePiece does not change what they lose against.
    given = {TokenType.USER_DEFINED: 0.0, **dict.fromkeys(_NEVER_MERGED, _PARTS * (min(lowest, 0.0) - 1))}
    vocabulary = [
        [name, given.get(TokenType(kind), score)] for name, kind, score in zip(names, types, scores, strict=True)
    ]
    has_bytes = {f"<0x{byte:02X}>" for byte in range(256)} <= set(names)
    has_prefix = keys.flag("tokenizer.ggml.add_space_prefix", False)
    steps = _charsmap(keys)
    if has_prefix:
        steps.append({"type": "Prepend", "prepend": " "})
    if keys.flag("tokenizer.ggml.remove_extra_whitespaces", False):
        steps += [_replaced(" {2,}", " ", is_pattern=True), _replaced(r" \z", "", is_pattern=True)]
    return {
        "normalizer": {"type": "Sequence", "normalizers": [*steps, _replaced(" ", _MARK)]},
        "pre_tokenizer": None,
        "decoder": _decoder(has_prefix),
        "model": {"type": "Unigram", "unk_id": unknown, "vocab": vocabulary, "byte_fallback": has_bytes},
    }


def _merges(keys: TokenizerKeys, tokens: TokenList, scores: list[float]) -> list[str] | list[list[str]]:
    """The merge that makes each token, the best tokens first.

    There is one at most: merges inside a token come in the same order in every text, the order they have in the token alone, so its last
    two parts are always the same. Tokens that greedy merging never makes have none.
    """
    score_of = {
        name: score
        for name, kind, score in zip(tokens.names, tokens.types, scores, strict=True)
        if kind not in _NEVER_MERGED and " " not in name  # texts have marks instead of spaces
    }
    if sum(len(name) ** 2 for name in score_of) > _MOST_CUTS:
        longest = max(map(len, score_of))
        problem = f"has too many long tokens, of up to {longest:,} characters, to find their merges"
        raise keys.error(TOKENS, f"{problem}: expected a sum of squares of at most {_MOST_CUTS:,}")
    ordered = sorted(score_of, key=score_of.__getitem__, reverse=True)
    ranks = {name: rank for rank, name in enumerate(ordered)}
    merges = [f"{pair[0]} {pair[1]}" for name in ordered if (pair := _last_parts(name, ranks)) is not None]
    if any(merge.startswith(_SKIPPED) for merge in merges):
        return [merge.split(" ") for merge in merges]
    return merges  # as strings, which are read faster


def _last_parts(name: str, ranks: dict[str, int]) -> list[str] | None:
    """The two parts of a token that greedy merging leaves before it makes the token."""
    parts, none, rank_of = list(name), len(ranks), ranks.get
    found = [rank_of(left + right, none) for left, right in itertools.pairwise(parts)] if len(parts) > 2 else []
    while len(found) > 1:
        best = min(found)
        if best == none:
            return None
        at = found.index(best)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
        del found[at]
        if at:
            found[at - 1] = rank_of(parts[at - 1] + parts[at], none)
        if at < len(found):
            found[at] = rank_of(parts[at] + parts[at + 1], none)
    return parts if len(parts) == 2 and parts[0] in ranks and parts[1] in ranks else None


def _charsmap(keys: TokenizerKeys) -> list[dict[str, Any]]:
    """The normalizer that a precompiled map of characters describes: size of a trie, the trie, texts that end with 0."""
    values = keys.entries(_CHARSMAP, (int,), "bytes")
    if not values:
        return []
    if not all(-128 <= value < 256 for value in values):
        raise keys.error(_CHARSMAP, "has elements that are not bytes")
    data = bytes(value & 255 for value in values)
    size = int.from_bytes(data[:4], "little")
    if len(data) < 5 or size % 4 or size + 4 >= len(data) or data[-1]:
        raise keys.error(_CHARSMAP, f"is damaged: {len(data)} bytes with a trie of {size}")
    return [{"type": "Precompiled", "precompiled_charsmap": base64.b64encode(data).decode()}]


def _replaced(old: str, new: str, *, is_pattern: bool = False) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex" if is_pattern else "String": old}, "content": new}


def _decoder(has_prefix: bool) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [_replaced(_MARK, " "), {"type": "ByteFallback"}, {"type": "Fuse"}]
    if has_prefix:
        steps.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return {"type": "Sequence", "decoders": steps}
