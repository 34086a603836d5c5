"""Generated text on a terminal: nothing that the terminal would obey."""

from __future__ import annotations

import ast
import unicodedata

from rtlang.contract.process.terminal_text import terminal_text


def test_no_control_character_but_newline_and_tab_is_left() -> None:
    everything = "".join(map(chr, range(0x30000)))
    left = set(terminal_text(everything))
    controls = {char for char in left if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")}
    directions = {char for char in left if unicodedata.bidirectional(char) in DIRECTIONS}
    assert controls == {"\n", "\t"}
    assert directions == set()


DIRECTIONS = ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")


def test_an_escape_is_read_back_as_the_character() -> None:
    for char in "\x00\x07\x08\r\x1b\x7f\x85\x9b\u202e\u2066":
        assert ast.literal_eval(f"'{terminal_text(char)}'") == char


def test_other_text_is_unchanged() -> None:
    text = "Grüße, 世界! \N{PARTY POPPER} e\u0301 \u200d\n\tEnd"
    assert terminal_text(text) == text


def test_pieces_give_what_the_whole_gives() -> None:
    text = "a\x1b[31mred\x1b]0;title\x07\r\nb"
    assert "".join(terminal_text(char) for char in text) == terminal_text(text)
    assert terminal_text(text) == "a\\x1b[31mred\\x1b]0;title\\x07\\x0d\nb"
