"""Requests for tools that are put together on the spot: a frame, what is asked for, and adjuncts that tell the arguments.

`data/templates/tools_clauses.txt` has blocks for each tool of the catalogue: its name; `do`, a deed that somebody is asked to do;
`noun`, a thing that somebody wants; `say`, whole sentences that call for it; `with`, adjuncts. Lines list alternatives between
bars, and a line that ends with a bar continues on the next. An adjunct tells each argument that the rest leaves out. A tool made
up for one prompt uses its name and its description instead. No run of five words of a held-out request is made.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tiny_model.corpus.clauses import sentence_of
from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.kinds import SLOT
from tiny_model.corpus.lexicon import lines, words
from tiny_model.corpus.words import Draw, choices, listing

TEMPLATES = sections_of("tools_requests")

Run = tuple[str, ...]
RUN = 5
GENERIC_SHARE = 0.25  # of the adjuncts where a tool has others of its own
DO_SHARE, NOUN_SHARE = 0.4, 0.2  # the rest are whole sentences
UNITS = {"minutes": " minutes", "degrees": " degrees", "percent": " percent"}
NO_NOUNS = words("to from at by when why")

# What is put around a deed. Those that end with a question mark are questions.
DO_FRAMES = lines(TEMPLATES["DO_FRAMES"])
NOUN_FRAMES = lines(TEMPLATES["NOUN_FRAMES"])
BY_NAME = words(
    TEMPLATES["BY_NAME"],
    "|",
)
NAMES = words(TEMPLATES["NAMES"], "|")
TOLD = lines(TEMPLATES["TOLD"])
IN_FRONT = lines(TEMPLATES["IN_FRONT"])


@dataclass(frozen=True)
class Wording:
    """What requests for a tool are made of; in each, places for the tool's parameters."""

    do: tuple[str, ...]
    noun: tuple[str, ...]
    say: tuple[str, ...]
    adjuncts: tuple[str, ...]


def wording(block: str) -> tuple[str, Wording]:
    """The name of a tool and its wording, from the lines of a block."""
    name, *rest = block.replace("|\n", "|").split("\n")
    parts = {key: words(text, "|") for key, text in (line.split(": ", 1) for line in rest)}
    return name, Wording(parts["do"], parts["noun"], parts["say"], parts["with"])


def wordings_of(clauses: str) -> dict[str, Wording]:
    """The wordings of each tool, from all of its blocks together."""
    found: dict[str, Wording] = {}
    for name, more in (wording(block) for block in words(clauses.strip(), "\n\n")):
        known = found.get(name, Wording((), (), (), ()))
        found[name] = Wording(
            known.do + more.do, known.noun + more.noun, known.say + more.say, known.adjuncts + more.adjuncts
        )
    return found


WORDINGS = wordings_of(sections_of("tools_clauses")["CLAUSES"])


def runs(text: str) -> set[Run]:
    """All runs of five words or placeholders."""
    parts = [part.strip(".,?!:;()\"'").lower() for part in text.split()]
    return {tuple(parts[index : index + RUN]) for index in range(len(parts) - RUN + 1)}


def runs_of(template: str) -> set[Run]:
    """All runs of five words of what a template with choices can say, where it is short enough to say it all."""
    said = [""]
    for options in choices(template):
        said = [before + way for before in said for way in options]
    return set().union(*map(runs, said))


def slots(text: str) -> set[str]:
    """The parameters that a text tells."""
    return set(SLOT.findall(text))


def generic(draw: Draw, key: str, names: Sequence[str], unit: str) -> str:
    """An adjunct for any parameter, which calls it by one of its names."""
    nouns = [name.replace("_", " ") for name in names if name not in NO_NOUNS]
    place = f"{{{key}}}{unit}"
    if not nouns:
        return draw.pick((f", {place}", place))
    noun, shape = draw.pick(nouns), draw.random.random()
    if shape < 0.3:
        return draw.pick((f", {noun} {place}", f", {noun}: {place}", f", {noun} = {place}", f", {noun} is {place}"))
    if shape < 0.6:
        return draw.pick((f"with the {noun} {place}", f"with {place} as the {noun}", f"with {noun} {place}"))
    if shape < 0.8:
        return draw.pick((f". The {noun} is {place}", f". {noun.capitalize()}: {place}", f". The {noun}: {place}"))
    return draw.pick(
        (f"{noun} {place}", f", where the {noun} is {place}", f", the {noun} is {place}", f"having {noun} {place}")
    )


def put_together(draw: Draw, core: str, adjuncts: list[str], question: bool, open_ends: set[str]) -> str:
    """A core and its adjuncts with marks between and behind them, of which those that start a sentence come last.

    No mark follows one of the parameters `open_ends`, as it would look like a part of the value.
    """
    last = [text for text in adjuncts if text.startswith(". ")]
    near = [text for text in adjuncts if text.startswith(":")]
    inside = [text for text in adjuncts if text not in (*last, *near)]
    if inside and not core.startswith(("I ", "{")):
        core = core[0].lower() + core[1:]
    text = re.sub(r",(?=[,.:])| (?=[,.:])", "", sentence_of(draw, core, inside)) + "".join(near)
    if question and not is_open(text, open_ends):
        text += "?"
        last = [sentence[1:] if index == 0 else sentence for index, sentence in enumerate(last)]
    text += "".join(last)
    if text[-1] in ".?!" or is_open(text, open_ends):
        return text
    return text + draw.pick((".", ".", ".", ".", ".", ".", "!", ""))


def is_open(text: str, open_ends: set[str]) -> bool:
    """Whether the text ends with one of the parameters."""
    return any(text.endswith(f"{{{key}}}") for key in open_ends)


def attempt(draw: Draw, wordings: Wording, names: Mapping[str, Sequence[str]], fills: Mapping[str, str]) -> str | None:
    """A request that tells every parameter once, or None where the drawn parts do not fit together."""
    shape, question = draw.random.random(), False
    if shape < DO_SHARE:
        frame, core = draw.spoken(draw.pick(DO_FRAMES)), draw.spoken(draw.pick(wordings.do))
    elif shape < DO_SHARE + NOUN_SHARE:
        frame, core = draw.spoken(draw.pick(NOUN_FRAMES)), draw.spoken(draw.pick(wordings.noun))
    else:
        frame, core = "{}", draw.spoken(draw.pick(wordings.say))
    if frame.endswith("?") or core.endswith("?"):
        question = True
    core = frame.rstrip("?").replace("{}", core.rstrip(".?"))
    left = set(names) - slots(core)
    adjuncts: list[str] = []
    own = draw.shuffled([draw.spoken(line) for line in wordings.adjuncts])
    while left:
        fitting = [line for line in own if slots(line) and slots(line) <= left]
        if fitting and not draw.chance(GENERIC_SHARE):
            line = draw.pick(fitting)
        else:
            key = draw.pick(sorted(left))
            line = generic(draw, key, names[key], "" if draw.chance(0.3) else UNITS.get(fills[key], ""))
        left -= slots(line)
        adjuncts.append(line)
    marks = [line for line in adjuncts if line.startswith(":")]
    if len(marks) > 1 or (marks and any(line.startswith(". ") for line in adjuncts)):
        return None
    open_ends = {key for key, fill in fills.items() if fill in ("email", "url", "file")}
    text = put_together(draw, core, adjuncts, question, open_ends)
    return text if sorted(SLOT.findall(text)) == sorted(names) else None


def request_for(
    draw: Draw, wordings: Wording, names: Mapping[str, Sequence[str]], fills: Mapping[str, str], held: set[Run]
) -> str:
    """A request for a tool of the catalogue.

    Args:
        draw: gives the choices.
        wordings: what the request is made of.
        names: all names of each parameter.
        fills: what fills each parameter.
        held: runs of five words that no request may have.

    Returns:
        a template with a place for each parameter, once.
    """
    while True:
        text = attempt(draw, wordings, names, fills)
        if text is not None and not runs(text) & held:
            return text


def pairs_told(draw: Draw, arguments: Mapping[str, object]) -> str:
    """Arguments by name, in any order."""
    spaces = draw.chance(0.5)
    joint = draw.pick((" ", " ", " = ", "=", " is ", ": ", " as ", " set to ", ":", " of "))
    before = draw.pick(("", "", "the ", "a ")) if joint in (" ", " is ", " of ", " set to ") else ""
    quote = draw.pick(('"', "'")) if draw.chance(0.1) else ""
    values = {
        key: f"{quote}{value}{quote}" if isinstance(value, str) else str(value) for key, value in arguments.items()
    }
    keys = {key: key.replace("_", " ") if spaces else key for key in arguments}
    found = [f"{before}{keys[key]}{joint}{value}" for key, value in values.items()]
    if draw.chance(0.12) and joint in (" ", ": ", " as "):
        found = [f"{value} as {keys[key]}" for key, value in values.items()]
    found = draw.shuffled(found)
    return listing(found) if draw.chance(0.45) else draw.pick((", ", ", ", "; ", " and ", " | ")).join(found)


def request_by(draw: Draw, name: str, deed: str | None, arguments: Mapping[str, object]) -> str:
    """A request for a made-up tool, by its name, or by what it does where `deed` is given; with its arguments by name."""
    if deed is not None:
        frame, core = draw.spoken(draw.pick(DO_FRAMES)), deed
    elif draw.chance(0.65):
        frame, core = draw.spoken(draw.pick(DO_FRAMES)), draw.spoken(draw.pick(BY_NAME)).format(name=name)
    else:
        frame, core = draw.spoken(draw.pick(NOUN_FRAMES)), draw.spoken(draw.pick(NAMES)).format(name=name)
    mark = "?" if frame.endswith("?") else ""
    text = frame.rstrip("?").replace("{}", core)
    pairs = pairs_told(draw, arguments)
    if draw.chance(0.3):
        front = draw.spoken(draw.pick(IN_FRONT)).format(pairs=pairs)
        text = f"{front} {text}{mark or draw.pick(('', '.'))}"
    elif mark and draw.chance(0.5):
        text = f"{text}? {draw.pick(('Take ', 'Use ', 'With ', 'The arguments: ', ''))}{pairs}"
    else:
        told = draw.spoken(draw.pick(TOLD)).format(pairs=pairs)
        text = f"{text}{'' if told[0] in ' ,:.' else ' '}{told}"
    copied = tuple(part for part in (name, *map(str, arguments.values())) if part)  # these stay as they are
    if text.startswith(copied) or (deed is None and draw.chance(0.4)):
        return text
    return text[0].upper() + text[1:]
