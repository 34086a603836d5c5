"""Fuzzed input, short. The long runs are commands: see tests/support/servers/fuzz.py."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgpack
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.long_tests import sized
from tests.support.servers.fuzz import MESSAGES, Fuzzer, frame, graph_frame, lost_pages, served
from tests.support.servers.fuzz_connection import one_input


@pytest.fixture(scope="module")
def fuzzer() -> Iterator[Fuzzer]:
    with served(with_model=False) as (url, target):
        yield Fuzzer(url, seed=3)
        assert lost_pages(target) == 0


def test_frames_are_answered_and_the_server_goes_on(fuzzer: Fuzzer) -> None:
    fuzzer.round(frame, 600)
    fuzzer.check()
    assert fuzzer.num_answers > 100


def test_graphs_are_answered_and_the_server_goes_on(fuzzer: Fuzzer) -> None:
    fuzzer.round(graph_frame, 200)
    fuzzer.check()


def test_bodies_are_answered_without_a_fault(fuzzer: Fuzzer) -> None:
    fuzzer.bodies(150)
    fuzzer.check()
    assert sum(fuzzer.statuses.values()) > 50


WORDS = st.sampled_from(
    sorted({key for message in MESSAGES for key in message} | {"open", "program", "generate", "\0"})
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=9) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=4), inner, max_size=5),
    max_leaves=12,
)  # fmt: skip
CHANGED = st.sampled_from(MESSAGES).flatmap(
    lambda message: st.dictionaries(st.sampled_from(sorted(message)) | WORDS, VALUES, max_size=3).map(
        lambda changes: {**message, **changes}
    )
)


@given(st.integers(0, 7), st.lists(CHANGED | VALUES, max_size=5))
@example(0, [MESSAGES[0], {**MESSAGES[0], "s": 2}, MESSAGES[5]])
@settings(max_examples=sized(150), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_no_sequence_of_messages_raises(choice: int, values: list[object]) -> None:
    data = bytes([choice])
    for value in values:
        packed = (json.dumps(value).encode(), msgpack.packb(value))[choice % 2]
        data += len(packed).to_bytes(2, "big") + packed
    one_input(data)
    one_input(bytes([choice ^ 1]) + data[1:])


@given(st.binary(max_size=300))
@settings(max_examples=sized(150), deadline=None, derandomize=True)
def test_no_bytes_raise(data: bytes) -> None:
    one_input(data)
