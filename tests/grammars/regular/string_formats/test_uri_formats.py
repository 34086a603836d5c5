"""URIs and IRIs: examples of the RFCs and their differences."""

from __future__ import annotations

import pytest

from rtlang_grammars.regular.language import compile_regex
from rtlang_grammars.regular.string_formats.uri_formats import (
    IPV6,
    IRI,
    IRI_REFERENCE,
    URI,
    URI_REFERENCE,
    URI_TEMPLATE,
)

RFC_3986_EXAMPLES = [
    "ftp://ftp.is.co.za/rfc/rfc1808.txt",
    "http://www.ietf.org/rfc/rfc2396.txt",
    "ldap://[2001:db8::7]/c=GB?objectClass?one",
    "mailto:John.Doe@example.com",
    "news:comp.infosystems.www.servers.unix",
    "tel:+1-816-555-1212",
    "telnet://192.0.2.16:80/",
    "urn:oasis:names:specification:docbook:dtd:xml:4.1.2",
]
RELATIVE = ["", "g", "./g", "g/", "/g", "//g", "?y", "g?y", "#s", "g;x=1/../y", "..", "../../g", "g?y/./x#s/../x"]


@pytest.mark.parametrize("text", RFC_3986_EXAMPLES)
def test_uris_of_the_rfc_match_all_four_formats(text: str) -> None:
    for pattern in (URI, URI_REFERENCE, IRI, IRI_REFERENCE):
        assert compile_regex(pattern).accepts(text)


@pytest.mark.parametrize("text", RELATIVE)
def test_relative_references_are_not_uris(text: str) -> None:
    assert compile_regex(URI_REFERENCE).accepts(text)
    assert compile_regex(IRI_REFERENCE).accepts(text)
    assert not compile_regex(URI).accepts(text)


@pytest.mark.parametrize(
    "text", ["http://a b", "http://a/%zz", "1a:b", "http://[::1", "a:[", "http://a:b/", "a\n:b", "a:\\"]
)
def test_malformed_uris_are_rejected(text: str) -> None:
    for pattern in (URI, IRI):
        assert not compile_regex(pattern).accepts(text)


def test_only_iris_allow_non_ascii_and_private_use_only_in_queries() -> None:
    assert compile_regex(IRI).accepts("http://é.example/ß?ü#\U0001f600")
    assert not compile_regex(URI).accepts("http://é.example/")
    assert compile_regex(IRI).accepts("http://a/?\ue000")
    assert not compile_regex(IRI).accepts("http://a/\ue000")
    assert not compile_regex(IRI).accepts("http://a/\U000e0fff")


def test_a_colon_in_the_first_segment_makes_a_scheme() -> None:
    assert not compile_regex(URI_REFERENCE).accepts("1a:b/c")
    assert compile_regex(URI_REFERENCE).accepts("./1a:b/c")


@pytest.mark.parametrize(
    ("text", "is_address"), [("::", True), ("1::", True), ("1:2:3:4:5:6:7::", True), ("::1:2:3:4:5:6:7:8", False)]
)
def test_a_double_colon_replaces_at_least_one_group(text: str, is_address: bool) -> None:
    assert compile_regex(IPV6).accepts(text) is is_address


@pytest.mark.parametrize(
    ("text", "is_template"),
    [
        ("{var}", True),
        ("{+path,x}/here", True),
        ("{&list*}", True),
        ("{v:123}", True),
        ("{v:}", False),
        ("{", False),
        ("{=a}", False),
    ],
)
def test_templates_agree_with_rfc_6570(text: str, is_template: bool) -> None:
    assert compile_regex(URI_TEMPLATE).accepts(text) is is_template


def test_iri_characters_agree_with_rfc_3987() -> None:
    language = compile_regex(IRI)
    allowed = [
        (0xA0, 0xD7FF),
        (0xF900, 0xFDCF),
        (0xFDF0, 0xFFEF),
        (0x10000, 0x1FFFD),
        (0xD0000, 0xDFFFD),
        (0xE1000, 0xEFFFD),
    ]
    for first, last in allowed:
        assert language.accepts(f"a:{chr(first)}")
        assert language.accepts(f"a:{chr(last)}")
        if last != 0xD7FF:  # followed by surrogates
            assert not language.accepts(f"a:{chr(last + 1)}")
        assert not language.accepts(f"a:{chr(first - 1)}") or first == 0x10000
