"""The growing end of a sequence."""

from __future__ import annotations

import pytest

from rtlang.contract.errors import TraceError
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Ref, RoleEnd, RoleStart
from rtlang.lang.output_types.types import TEXT
from rtlang.lang.program_state.sequence import NodeSequence
from rtlang.lang.recordings.driver import AheadOfTime
from rtlang.lang.recordings.recording import Recording


@pytest.fixture
def recording() -> Recording:
    return Recording(AheadOfTime(is_async=False))


def test_parts_are_those_from_the_start_or_behind_a_node(recording: Recording) -> None:
    sequence = NodeSequence(recording)
    sequence.append(["a", ""])
    start = sequence.head
    sequence.append([])
    assert sequence.head == start
    sequence.head = recording.add_generate(sequence.head, "x", SamplingParams(), TEXT)
    sequence.append(["b", "c"])
    assert sequence.parts(None) == ["a", Ref(1), "b", "c"]
    assert sequence.parts(start) == [Ref(1), "b", "c"]
    assert sequence.parts(sequence.head) == []


def test_a_branch_continues_at_the_same_place_and_in_the_same_message(recording: Recording) -> None:
    sequence = NodeSequence(recording)
    sequence.open_role(RoleStart("user"))
    branch = sequence.branch()
    branch.append(["theirs"])
    sequence.append(["ours"])
    assert branch.parts(None) == [RoleStart("user"), "theirs"]
    assert sequence.parts(None) == [RoleStart("user"), "ours"]
    assert branch.role == "user"
    assert recording.branch_points == {0}
    with pytest.raises(TraceError, match="inside a user message"):
        branch.open_role(RoleStart("assistant"))


def test_an_empty_branch_starts_empty(recording: Recording) -> None:
    assert NodeSequence(recording).branch().head is None
    assert recording.branch_points == set()


def test_a_message_is_opened_and_closed(recording: Recording) -> None:
    sequence = NodeSequence(recording)
    sequence.open_role(RoleStart("user"))
    sequence.close_role()
    assert sequence.parts(None) == [RoleStart("user"), RoleEnd()]
    assert sequence.role is None


def test_a_message_of_side_branches_only_is_taken_back(recording: Recording) -> None:
    sequence = NodeSequence(recording)
    sequence.append(["a"])
    sequence.open_role(RoleStart("assistant"))
    recording.add_generate(sequence.head, "x", SamplingParams(n=2), TEXT)
    sequence.keep_head()
    sequence.close_role()
    assert sequence.parts(None) == ["a"]
    assert sequence.head in recording.branch_points
