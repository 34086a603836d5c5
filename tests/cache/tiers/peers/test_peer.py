"""One peer: whatever it answers, a page is right or missing, and a peer that fails rests."""

from __future__ import annotations

import pytest

from rtlang.cache.tiers.peers import peer_tier
from tests.support.engine.lying_peers import (
    LIARS,
    SILENT,
    Answer,
    flipped,
    lying,
    other_digest,
    short,
    silent,
    unsealed,
)
from tests.support.engine.page_peers import IDENTITY, SECRET, contents, digest_of, fetching, served, store

DIGESTS = [digest_of(number) for number in range(8)]


@pytest.mark.parametrize(
    ("secret", "identity", "reason"), [(b"another secret", IDENTITY, "secret"), (SECRET, bytes(16), "model")]
)
def test_peers_of_another_secret_or_model_are_refused(
    secret: bytes, identity: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    with served(store([0]), secret=secret, identity=identity) as server, fetching(server.address) as tier:
        assert tier.stats.num_connected == 0
        tier.ask(DIGESTS)
        assert not tier.has(DIGESTS[0])
        assert server.stats.num_connections == 0
    assert reason in caplog.text


@pytest.mark.parametrize("answer", LIARS, ids=lambda answer: answer.__name__)
def test_a_peer_that_lies_is_disconnected_and_gives_nothing(answer: Answer) -> None:
    with lying(answer) as address, fetching(address) as tier:
        assert tier.stats.num_connected == 1
        tier.ask(DIGESTS)
        tier.expect(DIGESTS)
        assert contents(tier, DIGESTS) == [None] * 8
        assert tier.stats.num_connected == 0
        assert tier.stats.num_bad == (answer in (flipped, other_digest, unsealed, short))
        assert tier.connect() > 0, "it rests"


@pytest.mark.parametrize("answer", SILENT, ids=lambda answer: answer.__name__)
def test_a_peer_that_does_not_answer_in_time_is_disconnected(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_tier, "ANSWER_S", 0.0 if answer is silent else 60.0)
    monkeypatch.setattr(peer_tier, "PAGE_S", 0.0)
    with lying(answer) as address, fetching(address) as tier:
        tier.ask(DIGESTS)
        assert tier.has(DIGESTS[0]) == (answer is not silent)
        tier.expect(DIGESTS)
        assert contents(tier, DIGESTS) == [None] * 8
        assert tier.stats.num_connected == 0
