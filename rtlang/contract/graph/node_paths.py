"""Paths of nodes: one name for each node within its run.

    draft/answer             the generation `answer` in the scope `draft`
    answer#2                 the second generation with this name in the same place
    fork[1]/tip              `tip` in the second state of the first call of `fork`
    fork#2[0]/tip            in the first state of the second call of `fork`
    summary/gen              an unnamed generation of the program `summary`, called by the program that runs
    repeat[3]/search()       the call of `search` in the fourth turn of a loop of the graph
    switch[yes]/reason       in the branch whose key is "yes"
    answer[1]                candidate 1 of `answer`; `answer:thought` is the reasoning before it

A path depends only on the place of a node in the program: not on the order in which values are read, on nodes in other places, or on how
the graph is submitted. Within the body of a loop `[*]` stands for the turn, until the turn runs.
"""

from __future__ import annotations

import hashlib
import re
from urllib.parse import unquote

MAX_PATH_CHARS = 4_096
ANY_TURN = "[*]"
_MAX_PREFIX_CHARS = 1_024
_SPECIAL = re.compile(r"[%/#\[\]:*()~]")
_DIGEST_BYTES = 12
_INDEX = re.compile(r"\[[^\]]*\]")
_ORDINAL = re.compile(r"#\d+")
_NAME = re.compile(r"^[^#\[:(]+")
_ATTEMPT = re.compile(r"([^:#\[]+)(?:#\d+)?(?:\[\d+\])?(?::repair\[\d+\])?")
_TURN = re.compile(r"((?:^|/)repeat(?:#\d+)?)\[\d+\](?=/)")


def segment(name: str) -> str:
    """A name as one segment of a path; characters with a meaning in paths are escaped with a percent sign."""
    if name.isidentifier() or _SPECIAL.search(name) is None:  # nearly all are
        return name
    return _SPECIAL.sub(lambda found: f"%{ord(found[0]):02X}", name)


def joined(prefix: str, last: str) -> str:
    """The path of `last`, a segment, in the place `prefix`, the path of a place or the empty string.

    A long prefix is replaced by a digest, so that paths of deeply nested forks stay short.
    """
    if not prefix:
        return last
    if len(prefix) > _MAX_PREFIX_CHARS:
        digest = hashlib.blake2b(prefix.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
        prefix = f"~{digest}{ANY_TURN * prefix.count(ANY_TURN)}"
    return f"{prefix}/{last}"


def at_turn(path: str, turn: int) -> str:
    """The path of a node of a loop's body in one turn. Of nested loops the outermost is resolved first."""
    return path.replace(ANY_TURN, f"[{turn}]", 1)


def site_of(path: str) -> str:
    """The place in the program text: a path without indices of forks and turns and without ordinals."""
    return _ORDINAL.sub("", _INDEX.sub("[]", path))


def first_of(path: str) -> str:
    """The path of the first node with the same name in the same place."""
    place, slash, last = path.rpartition("/")
    return f"{place}{slash}{_ORDINAL.sub('', last)}"


def sequence_of(path: str) -> str:
    """What the paths of all nodes have in common that follow one another: the path without turns of loops and without its ordinal."""
    return first_of(_TURN.sub(rf"\1{ANY_TURN}", path))


def is_named_by(path: str, asked: str) -> bool:
    """Whether `asked` is the path of a node, of one of its completions or turns, or a place in which the node is."""
    if path == asked or path.startswith(f"{asked}/") or (asked.endswith("]") and asked.rpartition("[")[0] == path):
        return True
    general = _TURN.sub(rf"\1{ANY_TURN}", f"{asked}/")[:-1] if ANY_TURN in path else asked
    return general != asked and is_named_by(path, general)


def tells_more(path: str) -> bool:
    """Whether a path tells more than the names of the node and of its scopes: a fork, a turn, or which one of several."""
    return "[" in path or "#" in path


def without_name(path: str) -> tuple[str, str]:
    """What is left of a path when the variable is renamed: the place before the name, and what follows the name."""
    place, slash, last = path.rpartition("/")
    return place + slash, _NAME.sub("", last)


def attempted_name(path: str) -> str | None:
    """The name, without its scopes, of the generation of which the node is an attempt or a completion; None for other nodes."""
    found = _ATTEMPT.fullmatch(path.rpartition("/")[2])
    return None if found is None else unquote(found[1])


def mixed_seed(seed: int, place: str | int) -> int:
    """A seed of 64 bits for a place: the first bytes of the SHA-256 hash of both."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{place}".encode(errors="surrogatepass")).digest()[:8], "big")
