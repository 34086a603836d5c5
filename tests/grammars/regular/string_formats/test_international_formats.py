"""Internationalized host names, checked against the `idna` package."""

from __future__ import annotations

import random
import unicodedata

import idna
import pytest
from idna import idnadata

from rtlang_grammars.regular.characters import code_points
from rtlang_grammars.regular.language import Language
from rtlang_grammars.regular.string_formats.international_formats import idn_hostname, permitted_characters

LABELS = [
    *(
        "a",
        "abc",
        "a-b",
        "-a",
        "a-",
        "ab--c",
        "xn--a",
        "é",
        "bücher",
        "Bücher",
        "日本",
        "ドメイン",
        "ラ・ブ",
        "・",
        "a・b",
    ),
    *(
        "l·l",
        "a·l",
        "l·",
        "l·l·l",
        "α͵β",
        "α͵",
        "א׳ב",
        "׳ב",
        "שלום",
        "שלום1",
        "شبكة",
        "شبكة١",
        "١a",
        "क्‍ष",
        "क‍ष",
        "بي‌بي",
        "‌a",
    ),
    *("\u0300a", "\u0903a", "ß", "ς", "ｱ", "İ", "1", "1a", "0", "א1١", "ab\u0300", "א-", "۰0", "\u0660\u06f0ب"),
]


@pytest.fixture(scope="module")
def names() -> Language:
    return idn_hostname()


def _is_name(text: str) -> bool:
    try:
        idna.encode(text)
    except (idna.IDNAError, UnicodeError):
        return False
    return True


def test_permitted_characters_agree_with_idna() -> None:
    """Except for characters that only one of the two Unicode versions knows."""
    tabulated = {
        code_point
        for pair in idnadata.codepoint_classes["PVALID"]
        for code_point in range(pair >> 32, pair & 0xFFFFFFFF)
    }
    in_context = set(range(0x660, 0x66A)) | set(range(0x6F0, 0x6FA))
    derived = {code_point for first, last in permitted_characters() for code_point in range(first, last + 1)}
    differing = (tabulated ^ derived) - in_context - {ord("-")}
    assert [hex(each) for each in differing if unicodedata.category(chr(each)) != "Cn"] == []
    assert code_points.size(permitted_characters()) > 100_000


@pytest.mark.parametrize("label", LABELS, ids=ascii)
def test_labels_agree_with_idna(names: Language, label: str) -> None:
    for text in (label, f"a.{label}", f"{label}。b"):
        expected = _is_name(text) and "xn--" not in text
        assert names.accepts(text) == expected, ascii(text)


def test_samples_can_be_encoded(names: Language) -> None:
    rng = random.Random(2)
    letters = [
        "a",
        "é",
        "日",
        "ナ",
        "・",
        "·",
        "l",
        "ב",
        "׳",
        "ب",
        "١",
        "1",
        "-",
        ".",
        "क",
        "्",
        "\u200d",
        "\u200c",
        "͵",
        "α",
    ]
    num_names = 0
    for _ in range(3000):
        text = "".join(rng.choice(letters) for _ in range(rng.randint(1, 6)))
        if names.accepts(text):
            num_names += 1
            assert _is_name(text), ascii(text)
    assert num_names > 200


def test_length_limits_are_enforced(names: Language) -> None:
    assert names.accepts("a" * 63)
    assert not names.accepts("a" * 64)
    assert not names.accepts("é" * 60)
    assert names.accepts(".".join(["a" * 63] * 3 + ["a" * 61]))
    assert not names.accepts(".".join(["a" * 63] * 3 + ["a" * 62]))
