"""Word lists and random words of the training corpus.

Everything the corpus talks about is drawn from here. Names, places and goods come half from fixed lists and half from
random syllables, so that the only way to learn a task is to copy from the prompt. `Draw` owns the random state and knows
which split it serves: the words of the `HELD_*` lists are never drawn for training, only for evaluation.
"""

import random
from collections.abc import Sequence
from typing import Literal, TypeVar

T = TypeVar("T")
Messages = list[tuple[str, str]]  # (role, content) in turn
Split = Literal["train", "test"]


def words(text: str, separator: str | None = None) -> tuple[str, ...]:
    """The words of a list that is written as one string."""
    return tuple(text.split(separator))


ONSETS = words("b c d f g h j k l m n p r s t v w z y br cr dr st tr gr fl pl sh th ch kl sl sk qu")
VOWELS = words("a e i o u a e i o u ai ea ou ia ee oo")
CODAS = ("n", "r", "l", "s", "t", "m", "ck", "nd", "rt", "x", "ng", "", "", "", "")
FIRST_NAMES = words(
    "Ada Amir Anna Bella Ben Bruno Carla Chen Clara Dana David Elena Emma Erik Fatima Felix Grace Hana Hugo Ines "
    "Ivan Jack James Julia Kai Karim Lara Leo Lily Lucas Maria Max Mia Mina Mira Nadia Nina Noah Nora Olga Omar "
    "Oscar Paula Pedro Priya Rosa Ruth Sam Sara Sofia Tariq Theo Tom Uma Vera Victor Wendy Yara Yuki Zara Zoe Adam "
    "Alice Bob Carol Daniel Eve Frank Helen Iris John Kira Liam Maya Nils Otto Petra Quinn Rita Simon Tara Ursula "
    "Vikram Will Xenia Yusuf Zeno",
)
HELD_FIRST_NAMES = words(
    "Bianca Cedric Dmitri Esther Gideon Ingrid Joel Keiko Lorenzo Marta Nikhil Ophelia",
)
CITIES = words(
    "Paris London Berlin Rome Madrid Oslo Cairo Delhi Tokyo Lima Boston Chicago Dublin Vienna Prague Athens Lagos "
    "Nairobi Seoul Sydney Lisbon Warsaw Toronto Denver Quito Accra Hanoi Geneva Porto Turin",
)
HELD_CITIES = words("Krakow Seville Montreal Tunis Bergen Osaka")
COLORS = words("red blue green black white yellow brown gray orange purple")
ADJECTIVES = words(
    "red blue green black white yellow brown gray orange purple small large old new wooden steel glass cotton "
    "leather plastic silver golden round heavy light",
)
ITEMS = words(
    "chair table lamp mug kettle notebook pen backpack jacket scarf umbrella clock mirror pillow blanket bottle "
    "candle basket hammer ladder bicycle helmet keyboard monitor speaker camera tent rope bowl plate vase rug desk "
    "sofa guitar drum flute kite puzzle book apple shirt hat ring bag cup spoon door stamp ball wheel coat boot map "
    "radio cable brush towel",
)
HELD_ITEMS = words("telescope wallet toaster hammock compass lantern")
MONTHS = words("January February March April May June July August September October November December")
DAYS = words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
EVENTS = words(
    "concert workshop meeting lecture picnic dinner exhibition tournament party hike festival seminar",
)
VENUES = words(
    "library|town hall|park|museum|school|harbor|garden|theater|office|cafe|stadium|market|old mill|main square",
    "|",
)
JOBS = words(
    "teacher nurse baker pilot farmer lawyer dentist painter chef engineer driver writer plumber gardener librarian "
    "sailor doctor singer carpenter tailor",
)
HOBBIES = words(
    "chess tennis cooking fishing painting hiking reading dancing swimming cycling knitting singing running gardening",
)
DEVICES = words("laptop printer phone router tablet screen scanner keyboard server camera")
PROBLEMS = words(
    "does not turn on|is very slow|makes a loud noise|keeps restarting|shows a blank screen|will not connect|"
    "overheats|lost all data|has a broken button|does not charge",
    "|",
)
DISHES = words("soup salad stew bread pie cake pasta curry omelet pancakes")
INGREDIENTS = words(
    "flour sugar butter rice beans tomatoes onions carrots potatoes milk cheese mushrooms spinach lemons apples eggs "
    "garlic pepper honey salt cream basil",
)
ANIMALS = words(
    "fox cat dog owl bear rabbit mouse turtle frog duck horse bird wolf goat bee whale dragon robot",
)
THINGS = words("apples coins books cards stones shells marbles stamps pencils cookies")


class Draw:
    """A seeded source of words for one split. Owns its random state."""

    def __init__(self, seed: int, split: Split = "train") -> None:
        self.random = random.Random(seed)
        self.split = split

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self.random.random() * len(options))]

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        return self.random.sample(options, count)

    def subset(self, options: Sequence[T], count: int) -> list[T]:
        """A sample in the order of the options. Unlike a shuffled one, it is easy to continue without a repetition."""
        return [options[index] for index in sorted(self.random.sample(range(len(options)), count))]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        return self.random.sample(options, len(options))

    def number(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return self.random.randint(low, high)

    def made_up(self) -> str:
        """A lower-case word of one to three random syllables."""
        syllables = self.pick((1, 2, 2, 2, 3))
        return "".join(self.pick(ONSETS) + self.pick(VOWELS) for _ in range(syllables)) + self.pick(CODAS)

    def _listed(self, known: Sequence[str], held: Sequence[str], listed: float) -> str | None:
        if self.split == "test" and self.chance(0.5):
            return self.pick(held)
        return self.pick(known) if self.chance(listed) else None

    def first_name(self) -> str:
        return self._listed(FIRST_NAMES, HELD_FIRST_NAMES, 0.5) or self.made_up().capitalize()

    def person(self, full: float = 0.45) -> str:
        first = self.first_name()
        return f"{first} {self.made_up().capitalize()}" if self.chance(full) else first

    def city(self) -> str:
        return self._listed(CITIES, HELD_CITIES, 0.5) or self.made_up().capitalize()

    def item(self, described: float = 0.35) -> str:
        item = self._listed(ITEMS, HELD_ITEMS, 0.8) or self.made_up()
        return f"{self.pick(ADJECTIVES)} {item}" if self.chance(described) else item

    def price(self) -> str:
        cents = self.pick(("", "", ".50", ".25", ".99", ".75", ".95", ".10"))
        return f"{self.number(1, 99 if self.chance(0.7) else 999)}{cents}"

    def date(self) -> str:
        month, day = self.pick(MONTHS), self.number(1, 28)
        return f"{month} {day}" if self.chance(0.6) else f"{day} {month}"

    def time(self) -> str:
        return f"{self.number(7, 21):02d}:{self.pick(('00', '15', '30', '45'))}"

    def code(self) -> str:
        return f"{self.pick('ABCDEFGHKLMRSTX')}{self.number(1, 99)}"


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
