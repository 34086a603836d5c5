"""Reads an HTML document or fragment strictly: every element is closed, and nothing is fetched."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "input", "link"}
LEAVES = {"rect", "path", "line", "circle", "polyline"}
NO_ICON = {"rel": "icon", "href": "data:,"}  # keeps a browser from asking for one


@dataclass
class Element:
    """An element: its tag, its attributes, and the texts and elements inside, in order."""

    tag: str
    attributes: dict[str, str]
    inside: list[Element | str] = field(default_factory=list)

    @property
    def children(self) -> list[Element]:
        """The elements directly inside."""
        return [each for each in self.inside if isinstance(each, Element)]

    @property
    def text(self) -> str:
        """The text directly inside."""
        return "".join(each for each in self.inside if isinstance(each, str))

    def all(self, tag: str | None = None, kind: str | None = None) -> list[Element]:
        """The elements inside with this tag and this class, in order."""
        found: list[Element] = []
        todo = self.children[::-1]
        while todo:
            each = todo.pop()
            if (tag is None or each.tag == tag) and (kind is None or kind in each.attributes.get("class", "").split()):
                found.append(each)
            todo.extend(each.children[::-1])
        return found

    @property
    def words(self) -> str:
        """All text inside, without styles and scripts."""
        if self.tag in ("style", "script"):
            return ""
        return "".join(each if isinstance(each, str) else each.words for each in self.inside)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("root", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].inside.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in LEAVES, f"<{tag}/> is not closed in HTML"
        self._open[-1].inside.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].inside.append(data)


def read_html(text: str) -> Element:
    """The root of the elements of a document or fragment."""
    text.encode()
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert [each.tag for each in reader._open] == ["root"]
    for element in reader.root.all():
        if element.tag == "link" and element.attributes == NO_ICON:
            continue
        assert element.tag not in ("link", "iframe", "object", "img", "foreignobject")
        for name, value in element.attributes.items():
            assert not name.startswith("on"), f"{name} on <{element.tag}>"
            assert name not in ("src", "href", "xlink:href")
            assert "://" not in value or name == "xmlns" or name == "title"
    for style in reader.root.all("style"):
        assert "url(" not in style.text
        assert "@import" not in style.text
    return reader.root
