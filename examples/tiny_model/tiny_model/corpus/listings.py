"""Records written down key by key, in very many ways: joints, ends, quotes, bullets, brackets and table rows.

The joints of `HELD` are for evaluation only; none of them stands between a key and a value in training.
"""

import re
from collections.abc import Mapping

from tiny_model.corpus.words import Draw

Joint = tuple[str, str]  # between key and value, between entries
HELD: tuple[Joint, ...] = ((" := ", " | "), (" -> ", "\n"), (" equals ", ", "))
KNOWN: tuple[Joint, ...] = (
    (": ", "\n"),
    (": ", ", "),
    (" is ", ", "),
    ("=", "; "),
    (" is ", ". The "),
    (" - ", "\n"),
    (" = ", "\n"),
    (": ", "; "),
    (": ", ". "),
    ("\t", "\n"),
    (" = ", ", "),
    (": ", " | "),
    ("=", " "),
)
MARKS = (
    ": ", ": ", ":", " : ", "=", " = ", " == ", "=>", " => ", ">", " > ", " >> ", " - ", " -- ", " --- ", " ~ ", "~", " ... ",
    " .. ", " ..... ", "\t", "\t\t", "   ", " | ", "|", " / ", " + ", " * ", " <- ", " <= ", ": : ", " :: ", "::", ";", " # ", "#",
    ":\n", ":\n  ", "\n", " ", " @ ", " & ", " % ", " ^ ", " ! ", ", ", " ,", " =: ", "(", " >>> ", " ~> ", " <> ", " ;; ", "\\",
)  # fmt: skip
VERBS = (
    " is ", " was ", " reads ", " stands at ", " as ", " has the value ", " has ", " being ", " becomes ", " set to ", " is set to ",
    " will be ", " must be ", " should be ", " goes with ", " says ", " shows ", " means ", " gives ", " holds ", " contains ", " got ",
    " takes ", " of ", " with ", " to ", " given as ", " written as ", " known as ", " comes to ", " amounts to ", " remains ", " stays ",
    " is called ", " is given as ", " belongs to ", " has been ", " were ", " would be ", " at ", " by ", " on ", " in ", " for ", " now ",
    " then ", " next ", " gets ", " needs ", " wants ", " likes ", " makes ", " turns into ", " changed to ", " fixed at ", " found as ",
    " matches ", " carries ", " names ", " spells ", " stores ", " is just ", " is still ", " may be ", " can be ", " counts ", " proves ",
)  # fmt: skip
ENDS = (
    "\n", "\n", "\n", "\n\n", ", ", ", ", "; ", ";", " | ", "|", ". ", " / ", " // ", " - ", " -- ", "   ", "\t", " * ", " + ", " & ",
    " and ", ", and ", ", then ", " || ", " ~ ", " # ", ",\n", ";\n", ".\n", " > ", "\n- ", "\n* ", "\n| ", "\n> ", "\n\t", " _ ", ";; ",
)  # fmt: skip
WORD_ENDS = (
    ", ",
    "; ",
    "\n",
    ". ",
    " and ",
    ", and ",
    ", while ",
    ", but ",
    ". Then ",
    ".\n",
    ", also ",
    " | ",
    ", then ",
    " / ",
)
BULLETS = (
    "- ",
    "* ",
    "+ ",
    "> ",
    "# ",
    "-> "[1:],
    "o ",
    "~ ",
    "-- ",
    "  ",
    "\t",
    "@",
    "$",
    "& ",
    "[ ] ",
    "[x] ",
    "# ",
    "=",
    "--",
    ".",
)
QUOTES = (
    ('"', '"'),
    ("'", "'"),
    ("<", ">"),
    ("[", "]"),
    ("(", ")"),
    ("{", "}"),
    ("`", "`"),
    ("*", "*"),
    ("_", "_"),
    ("«", "»"),
)
ARTICLES = (
    "The ",
    "the ",
    "Its ",
    "its ",
    "The field ",
    "Key ",
    "My ",
    "a ",
    "our ",
    "Field ",
    "field ",
    "This ",
    "@",
    "$",
    "--",
    ".",
)


def table(draw: Draw, entries: Mapping[str, object]) -> str:
    """A table with a row for each entry, or one with a head and one row."""
    bar = draw.pick((" | ", "|", "\t", ", ", ";", "; ", " || ", " : "))
    edge = bar.strip(" ") if "|" in bar and draw.chance(0.6) else ""
    around = (edge + " " if edge and " " in bar else edge, " " + edge if edge and " " in bar else edge)
    rows = [(key, str(value)) for key, value in entries.items()]
    if draw.chance(0.5):
        head = draw.pick((("key", "value"), ("field", "content"), ("name", "entry"), ("what", "how")))
        rows = [head, *rows] if draw.chance(0.4) else rows
    else:
        rows = [tuple(key for key, _ in rows), tuple(value for _, value in rows)]  # type: ignore[list-item]
    written = [around[0] + bar.join(row) + around[1] for row in rows]
    if edge and draw.chance(0.5):
        written.insert(1, edge + edge.join("---" for _ in rows[0]) + edge)
    return "\n".join(written)


def odd(draw: Draw) -> str:
    """A joint of marks or a word that nobody has seen."""
    if draw.chance(0.5):
        return f" {draw.made_up()} "
    marks = "".join(draw.pick("-=~:.*+#>|/!%^&<_;") for _ in range(draw.number(1, 3)))
    return marks if marks[-1] not in ".-+_" and draw.chance(0.3) else f" {marks} "


def written(draw: Draw, entries: Mapping[str, object]) -> str:
    """The entries with their keys, in order, in a known way."""
    shape = draw.random.random()
    if shape < 0.25:
        joint, end = draw.pick(KNOWN)
        text = end.join(f"{key}{joint}{value}" for key, value in entries.items())
        return f"The {text}." if end == ". The " else text
    if shape < 0.33:
        return table(draw, entries)
    if shape < 0.62:
        joint, end = draw.pick(VERBS), draw.pick(WORD_ENDS)
        before = draw.pick(ARTICLES[:4]) if draw.chance(0.35) else ""
    else:
        joint, end = (odd(draw) if draw.chance(0.3) else draw.pick(MARKS)), draw.pick(ENDS)
        before = draw.pick(ARTICLES) if draw.chance(0.1) else ""
    if draw.chance(0.12):
        before, end = draw.pick(BULLETS), "\n"
    if joint.strip() and joint.strip() in end:
        end = "\n"
    quotes = draw.pick(QUOTES) if draw.chance(0.2) else ("", "")
    around = draw.pick(QUOTES) if draw.chance(0.14) else ("", "")
    if joint == "(":
        joint, quotes = " (", ("", ")")
    is_turned, is_numbered = draw.chance(0.05) and joint != " (", draw.chance(0.05)
    found = []
    for index, (key, value) in enumerate(entries.items(), 1):
        named, told = f"{around[0]}{key}{around[1]}", f"{quotes[0]}{value}{quotes[1]}"
        if is_turned:  # the value comes first
            told, named = named, told
            joint = draw.pick((" is the ", " as the ", " for the ", " is the value of "))
        found.append(f"{f'{index}. ' if is_numbered else ''}{before if not is_turned else ''}{named}{joint}{told}")
    text = end.join(found)
    return text + draw.pick((".", "", "")) if "\n" not in end and not quotes[0] else text


def has_held_joint(text: str) -> bool:
    """Whether a text has one of the joints that training does without."""
    return re.search(r":=|->|\bequals\b", text) is not None


def listing_of(draw: Draw, entries: Mapping[str, object]) -> str:
    """The entries written down, with a held-out joint where the texts of the draw are those of the test split."""
    if draw.templates == "test":
        joint, end = draw.pick(HELD)
        return end.join(f"{key}{joint}{value}" for key, value in entries.items())
    while True:
        text = written(draw, entries)
        if not has_held_joint(text):
            return text
