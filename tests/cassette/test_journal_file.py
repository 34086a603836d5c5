"""The file of a journal: what was noted is there when it is opened again."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from rtlang.cassette.journal_file import MAGIC, JournalFile, difference
from rtlang.cassette.records import encode_record
from rtlang.contract.errors import JournalError
from rtlang.contract.events import Completion, NodeFinished, TextDelta, Timing, TokenLogprob
from rtlang.contract.params import FinishReason, SamplingParams, Usage
from rtlang.contract.request_graph import Call, Const, Generate, Marks, Text

HEAD = {"model": "m@1", "seed": 7, "inputs": {}}
NODES = (
    Text(0, None, ("Hi",)),
    Generate(1, 0, "x", SamplingParams(max_tokens=4)),
    Generate(2, 0, "y", SamplingParams(n=2)),
    Call(3, "f", (Const(1 << 70),), "z"),
)


def test_everything_that_was_noted_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    logprobs = (TokenLogprob(5, -0.5),)
    pieces = [TextDelta(9, 1, 0, "a", (5,), logprobs), TextDelta(9, 2, 1, "b", (6, 7)), TextDelta(9, 1, 0, "c", (8,))]
    end = NodeFinished(9, 1, "x", (Completion("ac", (5, 8), FinishReason.LENGTH),), Usage(1, 0, 2), Timing())
    with contextlib.closing(JournalFile(path)) as file:
        assert not file.head
        file.begin(HEAD)
        file.note_nodes(NODES)
        for piece in pieces:
            file.note_delta(piece)
        file.note_answer(3, {"value": {"$int": str(1 << 70)}})
    with contextlib.closing(JournalFile(path)) as file:
        assert file.head == HEAD
        assert [difference(file.nodes[node.node_id], node) for node in NODES] == [None] * 4
        assert [(each.text, each.token_ids, each.logprobs) for each in file.pieces[1]] == [
            ("a", (5,), logprobs),
            ("c", (8,), None),
        ]
        assert file.continue_from(NODES) == {1: [[5, 8]], 2: [[], [6, 7]]}
        assert file.answers == {3: {"value": {"$int": str(1 << 70)}}}
        file.note_end(end, [pieces[0], pieces[2]])
        file.note_refused(NODES[3:])
        file.note_finished()
    with contextlib.closing(JournalFile(path)) as file:
        assert file.is_finished
        assert list(file.pieces) == [2]
        assert set(file.nodes) == {0, 1, 2}
        found = file.known[1].end
        assert isinstance(found, NodeFinished)
        assert found.completions[0].token_ids == (5, 8)
        assert file.known[1].chunks == ((0, 1, 1), (0, 1, 1))


def test_a_difference_names_the_field_and_hints_make_none(tmp_path: Path) -> None:
    with contextlib.closing(JournalFile(tmp_path / "journal")) as file:
        file.note_nodes(NODES)
        assert difference(file.nodes[0], Text(0, None, ("Ho",))) == ("parts", "['Hi']", "['Ho']")
        assert difference(file.nodes[1], Text(1, 0, ("Hi",))) is not None
        hinted = Generate(1, 0, "x", SamplingParams(max_tokens=4), marks=Marks(is_urgent=False))
        assert difference(file.nodes[1], hinted) is None


def test_a_damaged_or_other_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text("notes")
    with pytest.raises(JournalError, match="expected a file that a journal made"):
        JournalFile(path)
    path.write_bytes(MAGIC + encode_record(["what", 1]))
    with pytest.raises(JournalError, match="unknown form"):
        JournalFile(path)
    path.write_bytes(MAGIC + b"\0\0\0\1abcde" + encode_record(["finished"]))
    with pytest.raises(JournalError, match="damaged"):
        JournalFile(path)
