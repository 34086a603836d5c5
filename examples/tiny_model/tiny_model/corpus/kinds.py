"""What a kind of records is: how each is drawn, and the texts that tell it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tiny_model.corpus.clauses import Clauses, composed
from tiny_model.corpus.extras import Extra, Record
from tiny_model.corpus.other_verbs import with_other_verbs
from tiny_model.corpus.words import Draw

CLAUSES_SHARE = 0.15  # of the texts of a kind that has clauses
SENTENCES_SHARE = 0.15  # of the texts of a kind that has sentences
FIRST_PERSON_SHARE = 0.35  # of the texts made of sentences, where a kind has some in the first person
PLURAL = "items"  # the slot with the plural of a field's value
SLOT = re.compile(r"{(\w+)}")
Drawn = tuple[Record, dict[str, str]]  # a record, and the words of the text that spell it otherwise than its values


def joined(told: list[str]) -> str:
    """The sentences in a line; a value at the end of one does not run on into the next."""
    return " ".join([*(f"{one}." if one[-1] == "}" else one for one in told[:-1]), told[-1]])


@dataclass(frozen=True)
class Kind:
    """Records of one kind. Called with a draw, it gives its name, a text and the record that the text tells."""

    name: str
    names: tuple[str, ...]
    draw: Callable[[Draw], Drawn]
    known: tuple[str, ...]
    held: tuple[str, ...]
    extras: tuple[Extra, ...] = field(default=())
    sentences: tuple[str, ...] = field(default=())  # each tells one field or a few
    first_person: tuple[str, ...] = field(default=())  # the same, in the words of the person whom the record is about
    aliases: Mapping[str, str] = field(default_factory=dict)  # other names of fields in texts; "" tells no field
    clauses: Clauses | None = None  # what longer sentences are put together from
    verbs_tell_roles: bool = False  # if true, they are not swapped

    def __call__(self, draw: Draw) -> tuple[str, str, Record]:
        record, spelled = self.draw(draw)
        line = self.line(draw, record)
        if not self.verbs_tell_roles:
            line = with_other_verbs(draw, line)
        text, record = self.filled(line, record, spelled)
        return self.name, text, record

    def filled(self, line: str, record: Record, spelled: Mapping[str, str]) -> tuple[str, Record]:
        """The text of a template, and the record as it tells it: with the plural as the value where the template has `{items}`."""
        if PLURAL in spelled and "{" + PLURAL + "}" in line:
            record = {**record, self.aliases[PLURAL]: spelled[PLURAL]}
        return line.format_map({**record, **spelled}), record

    def line(self, draw: Draw, record: Record) -> str:
        """A template that tells every field of the record."""
        shape = draw.random.random() if draw.templates == "train" else 1.0
        if self.clauses is not None and shape < CLAUSES_SHARE:
            return self.in_clauses(draw, record)
        if self.sentences and shape < CLAUSES_SHARE + SENTENCES_SHARE:
            return self.in_sentences(draw, record)
        return draw.template(self.known, self.held)

    def told_by(self, line: str) -> set[str]:
        """The fields that a template tells."""
        return {self.aliases.get(name, name) for name in SLOT.findall(line)} - {""}

    def in_clauses(self, draw: Draw, record: Record) -> str:
        """Sentences put together from clauses which together tell every field once."""
        assert self.clauses is not None
        return joined(composed(draw, self.clauses, self.sentences, set(record), self.told_by))

    def in_sentences(self, draw: Draw, record: Record) -> str:
        """Sentences of one voice in random order which together tell every field once."""
        voice = self.first_person if self.first_person and draw.chance(FIRST_PERSON_SHARE) else self.sentences
        left, told = set(record), []
        for sentence in draw.shuffled(voice):
            told_here = self.told_by(sentence)
            if told_here and told_here <= left:
                left -= told_here
                told.append(draw.spoken(sentence))
        assert not left, f"no sentence of {self.name} tells {left} alone"
        shape = draw.random.random()
        if shape < 0.7:
            return joined(told)
        if shape < 0.85:
            return draw.pick(("\n", "\n", "\n- ", "\n* ", "\n\n")).join(told)
        return draw.pick(("; ", ", ", " / ", " - ")).join(sentence.rstrip(".") for sentence in told)


def money(draw: Draw) -> tuple[int | float, str]:
    """A JSON number and its spelling in a text."""
    cents = draw.cents()
    whole, rest = divmod(cents, 100)
    if rest == 0:
        return whole, f"{whole}.00" if draw.chance(0.1) else str(whole)
    return cents / 100, f"{whole}.{rest:02d}"
