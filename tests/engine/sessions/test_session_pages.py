"""Holds of sessions: kept over other pages, given up on need, behind the holds of programs."""

from __future__ import annotations

from rtlang.cache.prefix_cache import PrefixCache
from rtlang.cache.scope import PUBLIC
from rtlang.engine.sessions.session_pages import SessionPages
from rtlang.engine.sessions.session_table import Session

PAGE = 4


def store(cache: PrefixCache, tokens: list[int]) -> None:
    match = cache.match(tokens, len(tokens))
    cache.lock(match.node)
    pages = cache.allocate(-(-len(tokens) // PAGE) - len(match.page_ids))
    assert pages is not None
    cache.finish(match.node, tokens[match.num_tokens :], pages, start=match.num_tokens)


def session(number: int) -> Session:
    return Session(number, "a", "", number, None, float(number), float(number))


def test_pages_of_sessions_outlive_younger_ones_and_are_given_up_on_need() -> None:
    cache = PrefixCache(10, PAGE, retention_share=0.3)
    pages = SessionPages(cache)
    texts = [[number * 100 + place for place in range(12)] for number in range(3)]
    certain, answered = session(1), session(2)
    for tokens, each in zip(texts, (certain, answered, None), strict=True):
        store(cache, tokens)
        if each is not None:
            pages.keep(each, tokens, PUBLIC, is_certain=each is certain)
    cache.check()
    taken = cache.allocate(4)
    assert taken is not None
    assert [cache.peek(each) for each in texts] == [12, 12, 0], "pages that nothing holds go first"
    more = cache.allocate(3)
    assert more is not None
    assert [cache.peek(each) for each in texts] == [12, 0, 0], "then those of an answer"
    assert (pages.is_held(certain), pages.is_held(answered)) == (True, False)
    cache.free(taken + more)
    cache.check()


def test_holds_of_programs_go_before_those_of_sessions_within_their_share() -> None:
    cache = PrefixCache(20, PAGE, retention_share=0.3)
    pages = SessionPages(cache)
    texts = [[number * 100 + place for place in range(24)] for number in range(3)]
    for tokens in texts:
        store(cache, tokens)
    for number, tokens in enumerate(texts[:2]):
        pages.keep(session(number), tokens, PUBLIC, is_certain=True)
    assert cache.num_held == 12, "soft holds are not bounded by the share of programs"
    assert cache.hold(texts[2], 5.0) is not None
    cache.check()
    assert cache.num_held == 18
    assert cache.hold([*range(500, 540)], 6.0) is None
    cache.check()
    none = PrefixCache(20, PAGE, retention_share=0.0)
    store(none, texts[0])
    SessionPages(none).keep(session(1), texts[0], PUBLIC, is_certain=True)
    assert none.num_held == 0


def test_what_a_suspended_session_had_alone_is_evicted_first() -> None:
    cache = PrefixCache(10, PAGE, retention_share=0.3)
    pages = SessionPages(cache)
    other, own = list(range(100, 116)), list(range(16))
    store(cache, other)
    store(cache, own)
    each = session(1)
    each.num_shared_tokens = 8
    pages.keep(each, own, PUBLIC, is_certain=True)
    pages.let_go(each, gives_up=True)
    taken = cache.allocate(4)
    assert taken is not None
    assert (cache.peek(own), cache.peek(other)) == (8, 16)
    cache.check()
