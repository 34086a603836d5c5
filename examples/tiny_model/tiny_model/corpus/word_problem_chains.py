"""Word problems that follow one number through a chain of events, and what all families are written with.

A family takes the draw, how many steps are wanted (it may give fewer or more), and whether numbers are large. No number of
a step is negative or above 200; quotients are exact.
"""

from dataclasses import dataclass

from tiny_model.corpus.lexicon import FIRST_NAMES, THINGS
from tiny_model.corpus.tasks_arithmetic import MAX_RESULT, equation, value_of, wording
from tiny_model.corpus.words import Draw

WARES = ("cup", "pen", "plate", "book", "hat", "lamp", "ball", "ring", "mug", "stamp")
LINKS = ("Then", "Later", "Next", "After that")


@dataclass(frozen=True, slots=True)
class Problem:
    """A word problem with its equations in the order in which they are solved."""

    text: str
    steps: list[str]
    result: int


class Story:
    """The sentences and steps of a problem as it is made up. Owned by the one family function that makes it."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.sentences: list[str] = []
        self.steps: list[str] = []

    def say(self, known: tuple[str, ...], held: tuple[str, ...] = (), **slots: object) -> None:
        """Tell a sentence in one of its wordings; without held-out ones, the known ones serve both splits."""
        self.sentences.append(wording(self.draw, known, held or known).format(**slots))

    def step(self, a: int, sign: str, b: int) -> int:
        """Note the step `a sign b` and return its value."""
        left = f"{a} {sign} {b}"
        self.steps.append(equation(left))
        return value_of(left)

    def finish(self, question: str, result: int, distractors: bool = True) -> Problem:
        """The problem; at times with a number among its sentences that does not matter."""
        draw = self.draw
        if distractors and draw.chance(0.2):
            number, other = draw.number(2, 60), draw.pick(FIRST_NAMES)
            text = draw.pick(
                (
                    f"The shop opens at {draw.number(7, 11)}.",
                    f"It is day {number % 28 + 1} of the month.",
                    f"{other}, a neighbor, has {number} chairs.",
                    f"The house has the number {number}.",
                )
            )
            self.sentences.insert(draw.number(1, len(self.sentences)), text)
        return Problem(" ".join([*self.sentences, question]), self.steps, result)


def amount(draw: Draw, large: bool, limit: int = MAX_RESULT) -> int:
    """A number of at least 1 and at most the limit."""
    return draw.number(1, max(1, min(limit, 60 if large else 12)))


def start(draw: Draw, large: bool) -> int:
    """The number that a chain begins with."""
    return draw.number(20, 90) if large else draw.number(2, 25)


def collection(draw: Draw, count: int, large: bool) -> Problem:
    """Things that are gained, given away, doubled, halved, bought in packs."""
    story, name, thing = Story(draw), draw.pick(FIRST_NAMES), draw.pick(THINGS)
    current = start(draw, large)
    story.say(
        ("{name} has {n} {thing}.",), ("In the beginning {name} has {n} {thing}.",), name=name, n=current, thing=thing
    )
    while len(story.steps) < count:
        link = wording(draw, LINKS, ("Then",))
        kind = draw.random.random()
        if kind < 0.14 and current < 150 and len(story.steps) + 2 <= count:
            packs, each = draw.number(2, 6), draw.number(2, 9)
            if current + packs * each <= MAX_RESULT:
                story.say(
                    ("{link} {name} buys {p} packs of {e} {thing}.", "{link} {name} gets {p} boxes with {e} {thing} each."),
                    ("{link} {name} buys {p} boxes with {e} {thing} each.",),
                    link=link, name=name, p=packs, e=each, thing=thing,
                )  # fmt: skip
                current = story.step(current, "+", story.step(packs, "*", each))
        elif (kind < 0.48 or current < 3) and current < 180:
            n = amount(draw, large, MAX_RESULT - current)
            story.say(
                ("{link} {name} finds {n} more.", "{link} {name} buys {n} more.", "{link} {name} gets {n} from a friend.",
                 "{link} a friend gives {name} {n} more."),
                ("{link} {name} gets {n} more.", "{link} {name} finds {n}."),
                link=link, name=name, n=n,
            )  # fmt: skip
            current = story.step(current, "+", n)
        elif kind < 0.86:
            n = amount(draw, large, current)
            story.say(
                ("{link} {name} gives away {n}.", "{link} {name} loses {n}.", "{link} {name} sells {n}.",
                 "{link} {name} breaks {n}.", "{link} {name} gives {n} to a friend."),
                ("{link} {name} gives {n} away.", "{link} {name} sells {n} of them."),
                link=link, name=name, n=n,
            )  # fmt: skip
            current = story.step(current, "-", n)
        elif kind < 0.94:
            factor = draw.pick((2, 2, 3))
            if current * factor <= MAX_RESULT:
                story.say((f"{link} the number of {thing} {'doubles' if factor == 2 else 'triples'}.",))
                current = story.step(current, "*", factor)
        elif current % 2 == 0 and current > 1:
            story.say((f"{link} {name} gives away half of the {thing}.",))
            current = story.step(current, "/", 2)
    return story.finish(
        wording(
            draw, (f"How many {thing} does {name} have now?",), (f"How many {thing} does {name} have in the end?",)
        ),
        current,
    )


def money(draw: Draw, count: int, large: bool) -> Problem:
    """Dollars that are earned and spent, also by the hour and by the piece."""
    story, name = Story(draw), draw.pick(FIRST_NAMES)
    current = start(draw, large)
    story.say(("{name} has {n} dollars.",), ("{name} has {n} dollars at first.",), name=name, n=current)
    while len(story.steps) < count:
        link, kind, ware = draw.pick(LINKS), draw.random.random(), draw.pick(WARES)
        times, each = draw.number(2, 6), draw.number(2, 9)
        is_pair = len(story.steps) + 2 <= count
        if kind < 0.2 and is_pair and times * each <= current:
            story.say(
                ("{link} {name} buys {t} {ware}s at {e} dollars each.",),
                ("{link} {name} buys {t} {ware}s for {e} dollars each.",),
                link=link,
                name=name,
                t=times,
                ware=ware,
                e=each,
            )
            current = story.step(current, "-", story.step(times, "*", each))
        elif kind < 0.4 and is_pair and current + times * each <= MAX_RESULT:
            story.say(
                ("{link} {name} works {t} hours for {e} dollars an hour.",), (), link=link, name=name, t=times, e=each
            )
            current = story.step(current, "+", story.step(times, "*", each))
        elif kind < 0.65 and current < 180:
            n = amount(draw, large, MAX_RESULT - current)
            story.say(
                ("{link} {name} earns {n} dollars.", "{link} {name} gets {n} dollars."),
                ("{link} {name} earns {n} dollars more.",),
                link=link,
                name=name,
                n=n,
            )
            current = story.step(current, "+", n)
        elif current > 1:
            n = amount(draw, large, current)
            story.say(
                ("{link} {name} spends {n} dollars.", "{link} {name} pays {n} dollars for a {ware}."),
                ("{link} {name} buys a {ware} for {n} dollars.",),
                link=link,
                name=name,
                n=n,
                ware=ware,
            )
            current = story.step(current, "-", n)
    return story.finish(
        wording(draw, (f"How many dollars does {name} have now?",), (f"How many dollars does {name} have left?",)),
        current,
    )


def bus(draw: Draw, count: int, large: bool) -> Problem:
    """Passengers who get on and off."""
    story, vehicle = Story(draw), draw.pick(("bus", "train", "boat"))
    current = start(draw, large)
    story.say(
        ("A {v} starts with {n} people.", "There are {n} people on a {v}."),
        ("A {v} leaves with {n} people.",),
        v=vehicle,
        n=current,
    )
    stops = iter(("first", "second", "third", "fourth", "fifth", "sixth", "seventh"))
    while len(story.steps) < count:
        stop = next(stops)
        leave = current > 0 and (current >= 190 or draw.chance(0.6))
        enter = (not leave or draw.chance(0.6)) and len(story.steps) + leave < count and current < 190
        if leave:
            off = amount(draw, large, current)
            current = story.step(current, "-", off)
        if enter:
            on = amount(draw, large, MAX_RESULT - current)
            current = story.step(current, "+", on)
        if leave and enter:
            story.say(
                ("At the {stop} stop {off} get off and {on} get on.",),
                ("At the {stop} stop {off} people get off and {on} get on.",),
                stop=stop,
                off=off,
                on=on,
            )
        elif leave or enter:
            story.say((f"At the {stop} stop {off if leave else on} people get {'off' if leave else 'on'}.",))
    return story.finish(f"How many people are on the {vehicle} now?", current)
