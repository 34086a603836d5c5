"""Families of word problems for the corpus: a text in everyday words and the steps of its one solution."""

from collections.abc import Callable
from itertools import pairwise

from tiny_model.corpus.lexicon import FIRST_NAMES, THINGS
from tiny_model.corpus.tasks_arithmetic import MAX_RESULT, wording
from tiny_model.corpus.tasks_lookup import distinct
from tiny_model.corpus.word_problem_chains import LINKS, WARES, Problem, Story, amount, bus, collection, money
from tiny_model.corpus.words import Draw

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
FRUITS = ("apples", "pears", "lemons", "plums", "figs")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def change(draw: Draw, count: int, large: bool) -> Problem:
    """Wares at a price each, the sum, and the change from what is paid."""
    story, name = Story(draw), draw.pick(FIRST_NAMES)
    kinds = 1 if count <= 2 else 2 if count <= 4 else 3
    bought = [(ware, draw.number(2, 8), draw.number(2, 9 if large else 6)) for ware in draw.sample(WARES, kinds)]
    for ware, number, each in bought:
        story.say(
            ("{name} buys {n} {ware}s at {e} dollars each.",),
            ("{name} buys {n} {ware}s for {e} dollars each.",),
            name=name,
            n=number,
            ware=ware,
            e=each,
        )
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
    story.say(
        ("A {place} has {r} rows of {e} seats.", "A {place} has {r} rows with {e} seats each."),
        ("There are {r} rows of {e} seats in a {place}.",),
        place=place,
        r=rows,
        e=each,
    )
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
    for before, name in pairwise(people):
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
        return story.finish(
            wording(
                draw,
                (f"How many {fruit} do they have together?",),
                (f"How many {fruit} do {people[0]} and {people[1]} have together?",),
            ),
            story.step(sums[0], "+", sums[1]),
        )
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
            story.say(
                ("{link} {name} {doing} {t} times for {n} minutes.",),
                ("{link} {name} {doing} for {n} minutes, {t} times.",),
                link=link,
                name=name,
                doing=doing,
                t=times,
                n=n,
            )
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
