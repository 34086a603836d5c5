"""Host names, checked against the `idna` package by label and as a whole."""

from __future__ import annotations

import random

import idna
import pytest

from rtlang_grammars.regular.language import Language
from rtlang_grammars.regular.string_formats.host_names import is_host_name, loose_host_names
from tests.grammars.regular.string_formats.test_international_formats import LABELS

A_LABELS = [
    *("xn--9n2bp8q", "xn--zca29lwxobi7a", "xn--qmbc", "xn--ll-0ea", "xn--wva3je", "xn--ngba1o", "xn--11b2ezcs70k"),
    *("xn--X", "xn--", "xn--a", "xn--a-", "xn---", "xn--bcher-kva", "XN--BCHER-KVA", "Xn--Bcher-Kva", "xn--bcher-kvaa"),
    *("xn--aa---o47jg78q", "xn--7a", "xn--hello-txk", "xn--zca", "xn--ihqwcrb4cv8a8dqg056pqjye", "xn--99999999"),
]


@pytest.fixture(scope="module")
def wide() -> Language:
    return loose_host_names(international=True)


@pytest.fixture(scope="module")
def ascii_only() -> Language:
    return loose_host_names(international=False)


def is_valid(label: str) -> bool:
    """Whether `idna` accepts a label; ASCII letters may be in upper case."""
    label = label.lower() if label.isascii() else label
    try:
        encoded = idna.alabel(label)
        return bool(idna.ulabel(encoded)) and (not label.isascii() or encoded.decode() == label)
    except (idna.IDNAError, UnicodeError):
        return False


def accepts(language: Language, text: str) -> bool:
    return language.accepts(text) and is_host_name(text)


@pytest.mark.parametrize("label", [*A_LABELS, *LABELS])
def test_labels_agree_with_idna(wide: Language, ascii_only: Language, label: str) -> None:
    expected = is_valid(label)
    assert accepts(wide, label) is expected
    is_reserved = label[2:4] == "--" and not label.lower().startswith("xn")  # enforced only for U-labels
    assert accepts(ascii_only, label) is (label.isascii() and (expected or is_reserved))
    if expected:
        assert accepts(wide, f"a.{label}") or not label.isascii() or label.lower().startswith("xn--")


def test_random_labels_and_their_encodings_agree_with_idna(wide: Language, ascii_only: Language) -> None:
    rng = random.Random(3)
    pool = "abz09-·é\u0301üßςאבשلمي١۰日本語ラ・̈\u200c\u200dक्\u0375αЖж"
    num_valid = 0
    for _ in range(1500):
        label = "".join(rng.choice(pool) for _ in range(rng.randrange(1, 7)))
        encoded = "xn--" + label.encode("punycode").decode()
        for each in (label, encoded, encoded[:-1], encoded.swapcase()):
            expected = is_valid(each)
            num_valid += expected
            assert accepts(wide, each) is expected, each
            assert accepts(ascii_only, each) is (expected and each.isascii()), each
    assert num_valid > 300


def test_length_limits_apply_to_the_encoded_form(wide: Language) -> None:
    for count in range(1, 64):
        label = "".join(chr(0x4E00 + 37 * i) for i in range(count))
        assert accepts(wide, label) is is_valid(label)
    label = "bücher"
    size = len(idna.alabel(label)) + 1
    assert accepts(wide, ".".join([label] * (254 // size)))
    assert not accepts(wide, ".".join([label] * (254 // size + 1)))
    assert accepts(wide, ".".join(["a" * 63] * 3 + ["b" * 61]))
    assert not accepts(wide, ".".join(["a" * 63] * 3 + ["b" * 62]))


@pytest.mark.parametrize(
    ("name", "is_allowed"),
    [
        ("שלום.example", True),
        ("שלום.1example", False),  # next to a right-to-left label, no label may begin with a digit
        ("xn--9dbne9b.1example", False),
        ("xn--9dbne9b.example", True),
        ("日本。example", True),
        ("example.1a", True),
        ("l·l.שלום", True),
        ("a..b", False),
        ("a.b.", False),
        ("", False),
        ("ab--c.de", False),
    ],
)
def test_the_bidi_rule_applies_to_all_labels(wide: Language, name: str, is_allowed: bool) -> None:
    assert accepts(wide, name) is is_allowed


def test_labels_must_be_in_composed_form(wide: Language) -> None:
    assert accepts(wide, "é")
    assert not accepts(wide, "e\u0301")
