"""The seeded source of everything that the training corpus talks about.

Names, places and goods come partly from the lists of `lexicon`, partly from the random words of `spelling`, so that the
only way to learn a task is to copy from the prompt. `Draw` owns the random state and knows which split it serves: the
words of the `HELD_*` lists, the held-out text templates and the held-out wordings are never drawn for training.
"""

import random
import re
from collections.abc import Sequence
from functools import cache
from typing import Literal, TypeVar

from tiny_model.corpus import lexicon
from tiny_model.corpus.spelling import accented, plain_word

T = TypeVar("T")
Messages = list[tuple[str, str]]  # (role, content) in turn
Split = Literal["train", "test"]

CHOICE = re.compile(r"\[([^\[\]]*/[^\[\]]*)\]")
UNKNOWN = 0.2  # the share of random words in a slot that has a list


class Draw:
    """A seeded source of words for one split. Owns its random state.

    `split` decides about words, `templates` about text templates and `wordings` about instructions; the latter two are
    those of `split` unless given, so that an evaluation can hold out one of the three alone.
    """

    def __init__(
        self, seed: int, split: Split = "train", *, templates: Split | None = None, wordings: Split | None = None
    ) -> None:
        self.random = random.Random(seed)
        self.split = split
        self.templates: Split = templates or split
        self.wordings: Split = wordings or split

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, all alike."""
        return options[int(self.random.random() * len(options))]

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        """So many different options in random order."""
        return self.random.sample(options, count)

    def subset(self, options: Sequence[T], count: int) -> list[T]:
        """A sample in the order of the options. Unlike a shuffled one, it is easy to continue without a repetition."""
        return [options[index] for index in sorted(self.random.sample(range(len(options)), count))]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """All options in random order."""
        return self.random.sample(options, len(options))

    def number(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + int(self.random.random() * (high - low + 1))

    def spoken(self, template: str) -> str:
        """The template with one way taken at each of its choices, which are written as `[one/two/]`."""
        parts = choices(template)
        return template if "[" not in template else "".join(self.pick(ways) for ways in parts)

    def template(self, known: Sequence[str], held: Sequence[str]) -> str:
        """One of the known text templates, or of the held-out ones where templates are those of the test split."""
        return self.spoken(self.pick(held if self.templates == "test" else known))

    def wording(self, known: Sequence[str], held: Sequence[str]) -> str:
        """One of the known instruction wordings, or of the held-out ones where wordings are those of the test split."""
        return self.spoken(self.pick(held if self.wordings == "test" else known))

    def made_up(self) -> str:
        """A lower-case word of letters a-z in one of many styles of spelling."""
        return plain_word(self.random)

    def capital(self) -> str:
        """A made-up name: capitalized, now and then with an accent."""
        word = plain_word(self.random)
        if self.random.random() < 0.08:
            word = accented(self.random, word)
        return word.capitalize()

    def slot(self, known: Sequence[str], held: Sequence[str] = (), unknown: float = UNKNOWN) -> str:
        """A word of a list, or a made-up one; half of the time one of the held-out words where the split is test."""
        if held and self.split == "test" and self.chance(0.5):
            return self.pick(held)
        if self.chance(unknown):
            return f"{self.made_up()} {self.made_up()}" if self.chance(0.08) else self.made_up()
        return self.pick(known)

    def _listed(self, known: Sequence[str], held: Sequence[str], listed: float) -> str | None:
        if self.split == "test" and self.chance(0.5):
            return self.pick(held)
        return self.pick(known) if self.chance(listed) else None

    def first_name(self) -> str:
        """A first name, listed or made up."""
        return self._listed(lexicon.FIRST_NAMES, lexicon.HELD_FIRST_NAMES, 0.5) or self.capital()

    def family_name(self) -> str:
        """A family name, listed or made up."""
        return self._listed(lexicon.FAMILY_NAMES, lexicon.HELD_FAMILY_NAMES, 0.45) or self.capital()

    def person(self, full: float = 0.45) -> str:
        """A first name, with a family name in a share `full` of draws."""
        first = self.first_name()
        return f"{first} {self.family_name()}" if self.chance(full) else first

    def full_name(self) -> str:
        """A person's name in one of the shapes that names come in."""
        shape = self.random.random()
        if shape < 0.45:
            return self.first_name()
        if shape < 0.85:
            return f"{self.first_name()} {self.family_name()}"
        if shape < 0.88:
            return f"{self.first_name()}-{self.first_name()} {self.family_name()}"
        if shape < 0.91:
            return f"{self.first_name()} {self.family_name()}-{self.family_name()}"
        if shape < 0.935:
            prefix = "O'" if self.chance(0.7) else "D'"
            return f"{self.first_name()} {prefix}{self.family_name()}"
        if shape < 0.96:
            initials = " ".join(f"{self.pick('ABCDEFGHJKLMNPRSTW')}." for _ in range(self.number(1, 2)))
            return f"{initials} {self.family_name()}"
        if shape < 0.98:
            return f"{self.first_name()} {self.pick('ABCDEFGHJKLMNPRSTW')}. {self.family_name()}"
        return f"{self.first_name()} {self.pick(('van', 'de', 'von', 'del', 'al', 'van der'))} {self.family_name()}"

    def city(self) -> str:
        """The name of a town in one word, listed or made up."""
        return self._listed(lexicon.CITIES, lexicon.HELD_CITIES, 0.5) or self.capital()

    def place_name(self) -> str:
        """A town, now and then of two words."""
        if self.chance(0.88):
            return self.city()
        if self.chance(0.5):
            return f"{self.pick(lexicon.PLACE_FIRST)} {self.capital()}"
        return f"{self.capital()} {self.pick(lexicon.PLACE_LAST)}"

    def item(self, described: float = 0.35) -> str:
        """A thing in the singular, with an adjective in a share `described` of draws."""
        item = self._listed(lexicon.ITEMS, lexicon.HELD_ITEMS, 1 - UNKNOWN) or countable(self.made_up())
        return f"{self.pick(lexicon.ADJECTIVES)} {item}" if self.chance(described) else item

    def goods(self) -> str:
        """A thing to sell in the singular, of one to three words; its regular plural leads back to it."""
        if self.chance(0.15):
            return self._listed(lexicon.LONG_ITEMS, lexicon.HELD_LONG_ITEMS, 1) or ""
        if self.chance(0.05):
            return f"{self.made_up()} {countable(self.made_up())}"
        return self.item()

    def title(self) -> str:
        """The title of a book or film."""
        count = self.pick((1, 2, 2, 3))
        parts = [self.capital() if self.chance(0.25) else self.pick(lexicon.TITLE_WORDS) for _ in range(count)]
        return ("The " if self.chance(0.5) else "") + " ".join(parts)

    def company(self) -> str:
        """The name of a company."""
        first = self.pick((self.family_name(), self.capital()))
        return first if self.chance(0.25) else f"{first} {self.pick(lexicon.COMPANY_LAST)}"

    def team(self) -> str:
        """The name of a sports team."""
        name = self.city()
        return f"{name} {self.pick(lexicon.TEAM_WORDS)}" if self.chance(0.5) else name

    def street(self) -> str:
        """A street with a house number before it."""
        name = self.pick((self.capital(), self.family_name(), self.pick(lexicon.TITLE_WORDS)))
        return f"{self.number(1, 250)} {name} {self.pick(lexicon.STREET_LAST)}"

    def cents(self) -> int:
        """An amount of money in cents, mostly round."""
        whole = self.number(1, 99 if self.chance(0.6) else 999 if self.chance(0.8) else 9999)
        return whole * 100 + (0 if self.chance(0.3) else self.pick((50, 25, 99, 75, 95, 10, 5, self.number(1, 99))))

    def price(self) -> str:
        """A price as digits, without a currency."""
        cents = self.pick(("", "", ".50", ".25", ".99", ".75", ".95", ".10"))
        return f"{self.number(1, 99 if self.chance(0.7) else 999)}{cents}"

    def date(self) -> str:
        """A day of a month, without a year."""
        month, day = self.pick(lexicon.MONTHS), self.number(1, 28)
        return f"{month} {day}" if self.chance(0.6) else f"{day} {month}"

    def any_date(self) -> str:
        """A date in one of many shapes."""
        shape = self.random.random()
        if shape < 0.45:
            return self.date()
        day, month, year = self.number(1, 28), self.number(1, 12), self.number(1990, 2039)
        if shape < 0.6:
            return f"{year}-{month:02d}-{day:02d}"
        if shape < 0.7:
            return f"{day:02d}.{month:02d}.{year}"
        if shape < 0.8:
            return f"{month}/{day}/{year}"
        if shape < 0.9:
            return f"{lexicon.MONTHS[month - 1]} {day}, {year}"
        return f"{day} {lexicon.MONTHS[month - 1]} {year}" if self.chance(0.5) else self.pick(lexicon.DAYS)

    def time(self) -> str:
        """A full quarter of an hour by day, as `09:45`."""
        return f"{self.number(7, 21):02d}:{self.pick(('00', '15', '30', '45'))}"

    def any_time(self) -> str:
        """A time of day in one of several shapes."""
        shape = self.random.random()
        if shape < 0.6:
            return f"{self.number(0, 23):02d}:{self.number(0, 59):02d}" if self.chance(0.3) else self.time()
        half = self.pick(("am", "pm"))
        return f"{self.number(1, 12)} {half}" if shape < 0.8 else f"{self.number(1, 12)}:{self.number(10, 59)} {half}"

    def code(self) -> str:
        """A letter and one or two digits."""
        return f"{self.pick('ABCDEFGHKLMRSTX')}{self.number(1, 99)}"

    def any_code(self) -> str:
        """A reference of letters and digits in one of several shapes; never digits only."""
        letters = "".join(self.pick("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(self.number(1, 4)))
        digits = str(self.number(0, 999999))
        shapes = (
            letters + digits,
            f"{letters}-{digits}",
            f"{digits}-{letters}",
            f"{letters}-{digits}-{self.number(1, 99)}",
        )
        more = (
            f"{self.number(2019, 2030)}-{self.number(1, 9999):04d}",
            f"#{letters}{digits}",
            f"{letters}{digits}{letters[0]}",
        )
        return self.pick((*shapes, *more, self.code()))

    def phone(self) -> str:
        """A phone number in one of several shapes."""
        a, b, c = self.number(100, 999), self.number(100, 999), self.number(1000, 9999)
        return self.pick(
            (f"{a}-{b}-{c}", f"+{self.number(1, 99)} {a} {c}", f"0{a} {c}{b}", f"({a}) {b}-{c}", f"{a} {b} {c}")
        )

    def email(self) -> str:
        """An email address of made-up words."""
        user, host = self.made_up(), self.made_up()
        if self.chance(0.4):
            user = f"{user}{self.pick(('.', '_', ''))}{self.pick((self.made_up(), str(self.number(1, 99))))}"
        return f"{user}@{host}.{self.pick(('com', 'org', 'net', 'de', 'io', 'example', 'co.uk'))}"

    def url(self) -> str:
        """A web address of made-up words."""
        start, end = self.pick(("https://", "http://", "www.")), self.pick(("", f"/{self.made_up()}"))
        return f"{start}{self.made_up()}.{self.pick(('com', 'org', 'net', 'io'))}{end}"


@cache
def choices(template: str) -> tuple[tuple[str, ...], ...]:
    """The stretches of a template in turn, each as the ways to say it. Brackets without a `/` in them are text."""
    pieces = CHOICE.split(template)  # text and choice in turn
    return tuple(
        tuple(piece.split("/")) if index % 2 else (piece,) for index, piece in enumerate(pieces) if piece or index % 2
    )


def countable(word: str) -> str:
    """The word, made to end so that its plural is `word + s` and nothing else."""
    return word + "nrtlmk"[len(word) % 6] if word[-1] in "szxhyeoi" else word


def plural(noun: str) -> str:
    """The regular English plural of a noun of these lists or of a made-up word."""
    if noun.endswith(("s", "sh", "ch", "x", "z")):
        return noun + "es"
    if noun.endswith("y") and len(noun) > 2 and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def article(noun: str) -> str:
    """`a` or `an` and the noun."""
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def listing(items: Sequence[str]) -> str:
    """`a`, `a and b`, or `a, b and c`."""
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def sentence(text: str) -> str:
    """The text with a capital first letter."""
    return text[0].upper() + text[1:]
