"""Pauses grow from zero and end with the time limit; a working connection starts anew."""

from __future__ import annotations

from rtlang.client.reconnect_backoff import ReconnectBackoff


def test_pauses_double_up_to_a_second_and_start_anew() -> None:
    backoff = ReconnectBackoff(1000.0)
    assert [backoff.next_pause() for _ in range(7)] == [0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0]
    assert not backoff.is_over.is_set()
    backoff.end()
    assert backoff.is_over.is_set()
    assert backoff.next_pause() == 0.0


def test_nothing_is_tried_behind_the_limit() -> None:
    backoff = ReconnectBackoff(0.01)
    assert [backoff.next_pause() for _ in range(2)] == [0.0, None]
