"""Which texts a template with choices and fields makes."""

import re
from functools import cache

from tiny_model.corpus.words import Draw


@cache
def spoken_pattern(template: str, field: str = "[^\\n]{1,90}?") -> re.Pattern[str]:
    """Matches what the template makes: one way of each `[one/two/]`, and `field` for every `{}`."""
    made = ""
    for part in re.split(r"(\[[^\[\]]*/[^\[\]]*\]|\{[^}]*\})", template):
        if part[:1] == "{":
            made += field
        elif re.fullmatch(r"\[[^\[\]]*/[^\[\]]*\]", part):
            ways = (re.sub(r"\\\{[^}]*\}", lambda _: field, re.escape(way)) for way in part[1:-1].split("/"))
            made += "(?:" + "|".join(ways) + ")"
        else:
            made += re.escape(part)
    return re.compile(made)


def is_spoken(text: str, templates: tuple[str, ...]) -> bool:
    """Whether one of the templates makes the whole text."""
    return any(spoken_pattern(template).fullmatch(text) for template in templates)


def occurs_in(text: str, templates: tuple[str, ...]) -> bool:
    """Whether a text that one of the templates makes stands in the text, whatever the case."""
    return any(pattern_of_any_case(template).search(text) for template in templates)


@cache  # of its own: there are more templates than `re` keeps patterns
def pattern_of_any_case(template: str) -> re.Pattern[str]:
    """`spoken_pattern` of the template, whatever the case."""
    return re.compile(spoken_pattern(template).pattern, re.IGNORECASE)


def ways(template: str) -> set[str]:
    """All texts that a template without fields makes."""
    found = {""}
    for part in re.split(r"(\[[^\[\]]*/[^\[\]]*\])", template):
        options = part[1:-1].split("/") if re.fullmatch(r"\[[^\[\]]*/[^\[\]]*\]", part) else [part]
        found = {text + option for text in found for option in options}
    return found


def some_ways(template: str, count: int) -> list[str]:
    """What the template makes for the first `count` seeds, fields as they stand; just one text where it has no choice."""
    return [Draw(seed).spoken(template) for seed in range(count if "[" in template else 1)]
