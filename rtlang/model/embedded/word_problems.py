"""Families of word problems for the corpus: a text in everyday words and the steps of its one solution.

A family takes the draw, how many steps are wanted (it may give fewer or more), and whether numbers are large. No number of
a step is negative or above 200; quotients are exact.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rtlang.model.embedded.tasks_arithmetic import MAX_RESULT, equation, value_of, wording
from rtlang.model.embedded.tasks_lookup import distinct
from rtlang.model.embedded.words import FIRST_NAMES, THINGS, Draw

LEGS = (
    ("dog", 4),
    ("cat", 4),
    ("horse", 4),
    ("goat", 4),
    ("duck", 2),
    ("hen", 2),
    ("bee", 6),
    ("ant", 6),
    ("spider", 8),
)
WARES = ("cup", "pen", "plate", "book", "hat", "lamp", "ball", "ring", "mug", "stamp")
FRUITS = ("apples", "pears", "lemons", "plums", "figs")
LINKS = ("Then", "Later", "Next", "After that")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


@dataclass(frozen=True, slots=True)
class Problem:
    """A word problem with its equations in the order in which they are solved."""

    text: str
    steps: list[str]
    result: int


class Story:
    """The sentences and steps of a problem as it is made up."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.sentences: list[str] = []
        self.steps: list[str] = []

    def say(self, known: tuple[str, ...], held: tuple[str, ...] = (), **slots: object) -> None:
        self.sentences.append(wording(self.draw, known, held or known).format(**slots))

    def step(self, a: int, sign: str, b: int) -> int:
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
                ("{link} {name} finds {n} more.", "{link} {name} buys {n} more.", "{link} {name} gets {n} from a friend.", "{link} a friend gives {name} {n} more."),
                ("{link} {name} gets {n} more.", "{link} {name} finds {n}."),
                link=link, name=name, n=n,
            )  # fmt: skip
            current = story.step(current, "+", n)
        elif kind < 0.86:
            n = amount(draw, large, current)
            story.say(
                ("{link} {name} gives away {n}.", "{link} {name} loses {n}.", "{link} {name} sells {n}.", "{link} {name} breaks {n}.", "{link} {name} gives {n} to a friend."),
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
            story.say(("{link} {name} buys {t} {ware}s at {e} dollars each.",), ("{link} {name} buys {t} {ware}s for {e} dollars each.",), link=link, name=name, t=times, ware=ware, e=each)  # fmt: skip
            current = story.step(current, "-", story.step(times, "*", each))
        elif kind < 0.4 and is_pair and current + times * each <= MAX_RESULT:
            story.say(
                ("{link} {name} works {t} hours for {e} dollars an hour.",), (), link=link, name=name, t=times, e=each
            )
            current = story.step(current, "+", story.step(times, "*", each))
        elif kind < 0.65 and current < 180:
            n = amount(draw, large, MAX_RESULT - current)
            story.say(("{link} {name} earns {n} dollars.", "{link} {name} gets {n} dollars."), ("{link} {name} earns {n} dollars more.",), link=link, name=name, n=n)  # fmt: skip
            current = story.step(current, "+", n)
        elif current > 1:
            n = amount(draw, large, current)
            story.say(("{link} {name} spends {n} dollars.", "{link} {name} pays {n} dollars for a {ware}."), ("{link} {name} buys a {ware} for {n} dollars.",), link=link, name=name, n=n, ware=ware)  # fmt: skip
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
        leave = draw.chance(0.6) and current > 0
        enter = (not leave or draw.chance(0.6)) and len(story.steps) + leave < count and current < 190
        if leave:
            off = amount(draw, large, current)
            current = story.step(current, "-", off)
        if enter:
            on = amount(draw, large, MAX_RESULT - current)
            current = story.step(current, "+", on)
        if leave and enter:
            story.say(("At the {stop} stop {off} get off and {on} get on.",), ("At the {stop} stop {off} people get off and {on} get on.",), stop=stop, off=off, on=on)  # fmt: skip
        elif leave or enter:
            story.say((f"At the {stop} stop {off if leave else on} people get {'off' if leave else 'on'}.",))
    return story.finish(f"How many people are on the {vehicle} now?", current)


def change(draw: Draw, count: int, large: bool) -> Problem:
    """Wares at a price each, the sum, and the change from what is paid."""
    story, name = Story(draw), draw.pick(FIRST_NAMES)
    kinds = 1 if count <= 2 else 2 if count <= 4 else 3
    bought = [(ware, draw.number(2, 8), draw.number(2, 9 if large else 6)) for ware in draw.sample(WARES, kinds)]
    for ware, number, each in bought:
        story.say(("{name} buys {n} {ware}s at {e} dollars each.",), ("{name} buys {n} {ware}s for {e} dollars each.",), name=name, n=number, ware=ware, e=each)  # fmt: skip
    parts = [story.step(number, "*", each) for _, number, each in bought]
    total = parts[0]
    for part in parts[1:]:
        total = story.step(total, "+", part)
    if (count % 2 and kinds < 3) or total >= MAX_RESULT:
        return story.finish(
            wording(draw, (f"How much does {name} pay?",), (f"How many dollars does {name} pay?",)), total
        )
    paid = draw.pick([note for note in (10, 20, 50, 100, 150, 200) if note >= total] or [MAX_RESULT])
    if paid < total:
        return story.finish(f"How much does {name} pay?", total)
    story.say(("{name} pays with {paid} dollars.",), (), name=name, paid=paid)
    return story.finish(
        wording(draw, (f"How much change does {name} get?",), (f"How many dollars does {name} get back?",)),
        story.step(paid, "-", total),
    )


def legs(draw: Draw, count: int, large: bool) -> Problem:
    """The legs of several animals."""
    story, animals = Story(draw), draw.sample(LEGS, 1 if count < 2 else 2 if count < 5 else 3)
    numbers = [draw.number(2, 9 if large else 5) for _ in animals]
    listed = [
        f"{number} {animal}s with {each} legs each" for number, (animal, each) in zip(numbers, animals, strict=True)
    ]
    place = draw.pick(("On a farm", "In a garden", "In a park"))
    story.say((f"{place} there are {' and '.join(listed)}.",), (f"{place} live {' and '.join(listed)}.",))
    parts = [story.step(number, "*", each) for number, (_, each) in zip(numbers, animals, strict=True)]
    total = parts[0]
    for part in parts[1:]:
        total = story.step(total, "+", part)
    return story.finish(wording(draw, ("How many legs are there?",), ("How many legs do they have together?",)), total)


def reading(draw: Draw, count: int, large: bool) -> Problem:
    """Pages a day against the pages of a book."""
    story, name = Story(draw), draw.pick(FIRST_NAMES)
    a, b = draw.number(2, 12 if large else 6), draw.number(2, 6)
    total = story.step(a, "*", b)
    story.say(
        ("{name} reads {a} pages a day for {b} days.",),
        ("For {b} days {name} reads {a} pages a day.",),
        name=name,
        a=a,
        b=b,
    )
    while len(story.steps) < count - 1:
        n = amount(draw, large, min(MAX_RESULT - 1 - total, 30))
        story.say(("{link} {name} reads {n} more pages.",), (), link=draw.pick(LINKS), name=name, n=n)
        total = story.step(total, "+", n)
        if total > 180:
            break
    if count == 1:
        return story.finish(f"How many pages does {name} read?", total)
    book = draw.number(total, MAX_RESULT if large else min(MAX_RESULT, total + 20))
    story.say(("The book has {book} pages.",), ("The whole book has {book} pages.",), book=book)
    return story.finish(
        wording(draw, ("How many pages are left?",), (f"How many pages are left for {name}?",)),
        story.step(book, "-", total),
    )


def seats(draw: Draw, count: int, large: bool) -> Problem:
    """Rows of seats, some of them taken."""
    story, place = Story(draw), draw.pick(("hall", "theater", "cinema", "classroom"))
    rows, each = draw.number(2, 12 if large else 6), draw.number(2, 12 if large else 8)
    free = story.step(rows, "*", each)
    story.say(("A {place} has {r} rows of {e} seats.", "A {place} has {r} rows with {e} seats each."), ("There are {r} rows of {e} seats in a {place}.",), place=place, r=rows, e=each)  # fmt: skip
    if count > 2 and free < 180:
        extra = amount(draw, large, min(MAX_RESULT - free, 40))
        story.say((f"There are {extra} more seats at the side.",))
        free = story.step(free, "+", extra)
    for group in ("children", "adults", "guests")[: max(0, count - len(story.steps))]:
        if free:
            taken = amount(draw, large, free)
            story.say(
                ("{n} {g} sit down.", "{n} seats are taken by {g}."),
                ("{n} of the seats are taken by {g}.",),
                n=taken,
                g=group,
            )
            free = story.step(free, "-", taken)
    question = "How many seats are free?" if any("-" in step for step in story.steps) else "How many seats are there?"
    return story.finish(question, free)


def ages(draw: Draw, count: int, large: bool) -> Problem:
    """Ages of people, each told by the one before."""
    story, people = Story(draw), distinct(draw, lambda source: source.pick(FIRST_NAMES), count + 1)
    age = draw.number(12, 40) if large else draw.number(3, 15)
    story.say((f"{people[0]} is {age} years old.",))
    for before, name in zip(people, people[1:], strict=False):
        kind, n = draw.random.random(), draw.number(2, 12)
        if kind < 0.15 and age <= 40:
            story.say((f"{name} is twice as old as {before}.",))
            age = story.step(age, "*", 2)
        elif kind < 0.6 or age <= n:
            story.say((f"{name} is {n} years older than {before}.",))
            age = story.step(age, "+", n)
        else:
            story.say((f"{name} is {n} years younger than {before}.",))
            age = story.step(age, "-", n)
    return story.finish(
        wording(draw, (f"How old is {people[-1]}?",), (f"What is the age of {people[-1]}?",)), age, False
    )


def baskets(draw: Draw, count: int, large: bool) -> Problem:
    """The fruit of two people, compared."""
    story, people = Story(draw), distinct(draw, lambda source: source.pick(FIRST_NAMES), 2)
    kinds = draw.sample(FRUITS, 1 if count == 1 else 3 if count > 3 else 2)
    top = 30 if large else 9
    held = sorted([[draw.number(1, top) for _ in kinds] for _ in people], key=sum)
    sums = []
    for name, numbers in zip(people, held, strict=True):
        listed = [f"{number} {kind}" for number, kind in zip(numbers, kinds, strict=True)]
        story.say(
            (f"{name} has {' and '.join(listed)}.",), (f"In the basket of {name} there are {' and '.join(listed)}.",)
        )
        total = numbers[0]
        for number in numbers[1:]:
            total = story.step(total, "+", number)
        sums.append(total)
    fruit = kinds[0] if len(kinds) == 1 else "fruits"
    if draw.chance(0.4):
        return story.finish(wording(draw, (f"How many {fruit} do they have together?",), (f"How many {fruit} do {people[0]} and {people[1]} have together?",)), story.step(sums[0], "+", sums[1]))  # fmt: skip
    return story.finish(
        f"How many more {fruit} does {people[1]} have than {people[0]}?", story.step(sums[1], "-", sums[0])
    )


def trip(draw: Draw, count: int, large: bool) -> Problem:
    """Kilometers on several days, and what is left of the way."""
    story, name = Story(draw), draw.pick(FIRST_NAMES)
    verb = draw.pick(("walks", "drives", "rides", "sails"))
    number = max(2, min(count, 6))
    legs_of_trip = [draw.number(2, 190 // number if large else 12) for _ in range(number)]
    for day, distance in zip(DAYS, legs_of_trip, strict=False):
        story.say(
            ("On {day} {name} {verb} {n} kilometers.",),
            ("{name} {verb} {n} kilometers on {day}.",),
            day=day,
            name=name,
            verb=verb,
            n=distance,
        )
    total = legs_of_trip[0]
    for distance in legs_of_trip[1:]:
        total = story.step(total, "+", distance)
    if count < 2 or draw.chance(0.3):
        return story.finish("How many kilometers is that in all?", total)
    whole = draw.number(total, min(MAX_RESULT, total + (60 if large else 15)))
    story.say(("The whole way is {n} kilometers.",), ("The way is {n} kilometers.",), n=whole)
    return story.finish(
        wording(draw, ("How many kilometers are left?",), ("How many kilometers are still left?",)),
        story.step(whole, "-", total),
    )


def sharing(draw: Draw, count: int, large: bool) -> Problem:
    """Boxes of things that are shared equally."""
    story, name, thing = Story(draw), draw.pick(FIRST_NAMES), draw.pick(THINGS)
    people, share = draw.number(2, 8), draw.number(2, 20 if large else 8)
    total = people * share
    if count == 1:
        story.say(("{name} has {n} {thing}.",), (), name=name, n=total, thing=thing)
    else:
        first = draw.number(1, total - 1)
        story.say(("{name} has {n} {thing}.",), (), name=name, n=first, thing=thing)
        story.say(("Then {name} finds {n} more.", "Later {name} buys {n} more."), (), name=name, n=total - first)
        story.step(first, "+", total - first)
    story.say(
        ("{name} shares them equally among {p} friends.",),
        ("{name} shares all of them equally among {p} friends.",),
        name=name,
        p=people,
    )
    each = story.step(total, "/", people)
    if count > 2:
        own = amount(draw, large, 40)
        story.say(("One of the friends already had {n}.",), (), n=own)
        return story.finish(f"How many {thing} does this friend have now?", story.step(own, "+", each))
    return story.finish(
        wording(draw, (f"How many {thing} does each friend get?",), (f"How many {thing} are there for each friend?",)),
        each,
    )


def minutes(draw: Draw, count: int, large: bool) -> Problem:
    """Minutes of a day's doings, some of them repeated."""
    story, name = Story(draw), draw.pick(FIRST_NAMES)
    total: int | None = None
    for doing in draw.sample(("cooks", "reads", "swims", "paints", "runs", "sings", "cleans", "studies"), 7):
        n = draw.number(5, 30) if large else draw.number(2, 12)
        link = "First" if total is None else draw.pick(LINKS)
        if len(story.steps) + (1 if total is None else 2) <= count and draw.chance(0.3):
            times, n = draw.number(2, 4), draw.number(2, 10)
            if (total or 0) + times * n > MAX_RESULT:
                continue
            story.say(("{link} {name} {doing} {t} times for {n} minutes.",), ("{link} {name} {doing} for {n} minutes, {t} times.",), link=link, name=name, doing=doing, t=times, n=n)  # fmt: skip
            n = story.step(times, "*", n)
        elif (total or 0) + n > MAX_RESULT:
            continue
        else:
            story.say(("{link} {name} {doing} for {n} minutes.",), (), link=link, name=name, doing=doing, n=n)
        total = n if total is None else story.step(total, "+", n)
        if len(story.steps) >= count:
            break
    return story.finish(
        wording(draw, ("How many minutes is that in all?",), ("How many minutes are that together?",)), total or 0
    )


Family = Callable[[Draw, int, bool], Problem]
FAMILIES: tuple[Family, ...] = (
    collection, collection, collection, collection, money, money, bus, change, legs, reading, seats, ages, baskets, trip, sharing, minutes,
)  # fmt: skip
LONG_FAMILIES: tuple[Family, ...] = (
    collection,
    collection,
    money,
    money,
    bus,
    change,
    reading,
    baskets,
    trip,
    minutes,
    ages,
)
