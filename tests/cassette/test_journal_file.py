"""The file of a journal: what was noted is there when it is opened again."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from rtlang.cassette.journal_file import MAGIC, JournalFile, is_in_use, placed_deltas
from rtlang.cassette.places import Places
from rtlang.cassette.records import encode_record
from rtlang.contract.errors import JournalError
from rtlang.contract.events import Completion, NodeFinished, TextDelta, Timing, TokenLogprob
from rtlang.contract.params import FinishReason, SamplingParams, Usage
from rtlang.contract.request_graph import Call, Const, Generate, Text
from rtlang.contract.runs.node_keys import Keys

HEAD = {"model": "m@1", "seed": 7, "inputs": {}, "run": "abc"}
NODES = (
    Text(0, None, ("Hi",)),
    Generate(1, 0, "x", SamplingParams(max_tokens=4), path="x"),
    Generate(2, 0, "y", SamplingParams(n=2), path="y"),
    Call(3, "f", (Const(1 << 70),), "z", path="f()"),
)
PLACED = [each for _, each in Places(Keys({}, 7)).add(NODES)]
TEXT, X, Y, F = PLACED


def test_everything_that_was_noted_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    logprobs = (TokenLogprob(5, -0.5),)
    pieces = [TextDelta(9, 1, 0, "a", (5,), logprobs), TextDelta(9, 2, 1, "b", (6, 7)), TextDelta(9, 1, 0, "c", (8,))]
    intent = {"function": "f", "args": [{"$int": str(1 << 70)}], "policy": "retry", "at": 5.5}
    end = NodeFinished(9, 1, "x", (Completion("ac", (5, 8), FinishReason.LENGTH),), Usage(1, 0, 2), Timing())
    with contextlib.closing(JournalFile(path)) as file:
        assert not file.head
        file.begin(HEAD)
        file.note_nodes(PLACED)
        for piece, node in zip(pieces, (X, Y, X), strict=True):
            file.note_delta(node.place, node.key, piece)
        file.note_intents({"f()": intent})
        file.note_answer("f()", {"value": {"$int": str(1 << 70)}}, is_effect=True)
        assert is_in_use(path)
        with contextlib.closing(JournalFile(path, is_written=False)) as other:
            assert other.intents == {"f()": intent}
    assert not is_in_use(path)
    with contextlib.closing(JournalFile(path)) as file:
        assert file.head == HEAD
        assert list(file.nodes.values()) == PLACED
        assert file.place_of == {node.key: node.place for node in PLACED}
        assert file.pieces["x"][0] == X.key
        assert placed_deltas(file.pieces["x"][1], 1, 9) == [pieces[0], pieces[2]]
        assert file.intents == {"f()": intent}
        assert file.answers == {"f()": {"value": {"$int": str(1 << 70)}}}
        file.note_delta("x", X.key, pieces[0])  # goes on
        file.note_delta("y", b"another key", pieces[0])  # begins again
    with contextlib.closing(JournalFile(path)) as file:
        assert [each.text for each in file.pieces["x"][1]] == ["a", "c", "a"]
        assert (file.pieces["y"][0], len(file.pieces["y"][1])) == (b"another key", 1)
        file.note_end("x", X.key, end, [pieces[0], pieces[2]])
        file.note_refused([F])
        file.note_finished()
    with contextlib.closing(JournalFile(path)) as file:
        assert file.is_finished
        assert list(file.pieces) == ["y"]
        assert set(file.nodes) == {TEXT.place, "x", "y"}
        found = file.known[X.key].end
        assert isinstance(found, NodeFinished)
        assert found.completions[0].token_ids == (5, 8)
        assert file.known[X.key].chunks == ((0, 1, 1), (0, 1, 1))
        file.note_nodes([F])
        assert not file.is_finished


def test_a_damaged_or_other_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text("notes")
    with pytest.raises(JournalError, match="expected a file that a journal made"):
        JournalFile(path)
    path.write_bytes(b"rtlang-journal 1\n" + encode_record(["finished"]))
    with pytest.raises(JournalError, match="made by an earlier version of rtlang"):
        JournalFile(path)
    path.write_bytes(MAGIC + encode_record(["what", 1]))
    with pytest.raises(JournalError, match="unknown form"):
        JournalFile(path)
    path.write_bytes(MAGIC + b"\0\0\0\1abcde" + encode_record(["finished"]))
    with pytest.raises(JournalError, match="damaged"):
        JournalFile(path)
