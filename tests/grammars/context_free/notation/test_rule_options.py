"""Options of rules."""

from __future__ import annotations

import pytest

from rtlang_grammars.context_free.notation.rule_options import RuleOptions, read_options
from rtlang_grammars.context_free.notation.scanner import scan
from rtlang_grammars.spec.errors import GrammarError


def test_every_option_is_read() -> None:
    found = read_options(
        scan('capture="b.c", temperature=1e-2, max_tokens=7, max_chars=0, stop=/x/, stop_capture="s"'), "a"
    )
    assert (found.capture, found.temperature, found.max_tokens, found.max_chars) == ("b.c", 0.01, 7, 0)
    assert (found.is_lazy, found.is_hidden, found.marker_capture) == (True, True, "s")
    assert [each.text for each in found.marker] == ["/x/"]
    assert read_options(scan("capture , lazy"), "a") == RuleOptions(capture="a", is_lazy=True)
    assert read_options(scan('stop=""'), "a") == RuleOptions(is_hidden=True)  # the rule ends where it can


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("foobar=12", "option 'foobar': expected one of capture, lazy"),
        ("lazy, lazy", "given more than once"),
        ("lazy=1", "expected no value"),
        ("", "expected one or more of"),
        ("lazy,", "expected one or more of"),
        ("max_tokens=0", "max_tokens = 0: expected an integer from 1 to 1000000"),
        ('max_tokens="a"', "expected an integer"),
        ("max_tokens=1000001", "expected an integer"),
        ("max_chars=-1", "max_chars = -1: expected an integer from 0"),
        ("temperature=1e999", "temperature = 1e999: expected a finite number from 0"),
        ("temperature=-0.1", "expected a finite number from 0"),
        ("temperature=a", "expected a finite number from 0"),
        ("temperature", "option temperature: expected = and a value"),
        ('capture="a b"', "expected a string of letters, digits"),
        ('capture=""', "expected a string of letters, digits"),
        ('suffix=""', "expected a terminal that is not empty"),
        ('suffix="a", stop="b"', "suffix and stop exclude each other"),
        ('stop_capture="a"', "stop_capture: expected suffix or stop beside it"),
    ],
)
def test_errors_name_the_option_and_what_is_allowed(written: str, reason: str) -> None:
    with pytest.raises(GrammarError, match=reason):
        read_options(scan(written), "a")
