"""Which parts of an earlier sequence another run gets."""

from __future__ import annotations

from types import SimpleNamespace

from rtlang.contract.request_graph import RoleEnd, RoleStart, TokenIds
from rtlang.lang.program_state.history import History, without_open_message

PIECES = ((RoleStart("user"), "a", TokenIds((1, 2), "bc")), (TokenIds((3,)), RoleEnd()))


def test_the_same_model_gets_the_tokens() -> None:
    target = SimpleNamespace(model_identity="m@1")
    history = History(PIECES, target)
    as_text = ((RoleStart("user"), "a", "bc"), (TokenIds((3,)), RoleEnd()))
    assert history.pieces_for(target) == PIECES
    assert history.pieces_for(SimpleNamespace(model_identity="m@1")) == PIECES
    assert history.pieces_for(SimpleNamespace(model_identity="m@2")) == as_text
    assert history.pieces_for(SimpleNamespace()) == as_text
    assert history.pieces_for(None) == as_text


def test_a_saved_history_remembers_the_model_only() -> None:
    saved = History(PIECES, SimpleNamespace(model_identity="m@1")).saved()
    assert saved == History(PIECES, None, "m@1")
    assert saved.pieces_for(SimpleNamespace(model_identity="m@1")) == PIECES
    unknown = History(PIECES, SimpleNamespace()).saved()
    assert unknown.pieces_for(SimpleNamespace()) != PIECES


def test_an_open_message_is_left_out_across_pieces() -> None:
    closed = ("x", RoleStart("user"), "a", RoleEnd())
    assert without_open_message([closed]) == (closed,)
    assert without_open_message([(*closed, RoleStart("user")), ("b",)]) == (closed,)
    assert without_open_message([closed, (RoleStart("user"), "b")]) == (closed,)
    assert without_open_message([(RoleStart("user"), "b"), ("c", RoleEnd())]) == (
        (RoleStart("user"), "b"),
        ("c", RoleEnd()),
    )
    assert without_open_message([]) == ()
