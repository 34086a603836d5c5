"""Corpus tasks: sums, products and exact quotients; comparing numbers.

Results are between 0 and 200. Most documents hold many sums, since the tokens of a result are few and they are what has
to be learnt.
"""

from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.words import Draw, Messages

TEMPLATES = sections_of("tasks_arithmetic")

MAX_RESULT = 200
ASK_SUM = ("What is {left}?", "{left} =", "Compute {left}.", "How much is {left}?", "{left}", "Calculate {left}.")
HELD_ASK_SUM = ("What is the result of {left}?", "Please compute {left}.", "{left} = ?")
ASK_LIST = (
    TEMPLATES["ASK_LIST"],
    TEMPLATES["ASK_LIST 2"],
    TEMPLATES["ASK_LIST 3"],
    TEMPLATES["ASK_LIST 4"],
)
HELD_ASK_LIST = (TEMPLATES["HELD_ASK_LIST"], TEMPLATES["HELD_ASK_LIST 2"])
ASK_RESULTS = (TEMPLATES["ASK_RESULTS"], TEMPLATES["ASK_RESULTS 2"], TEMPLATES["ASK_RESULTS 3"])
HELD_ASK_RESULTS = (TEMPLATES["HELD_ASK_RESULTS"], TEMPLATES["HELD_ASK_RESULTS 2"])


def wording(draw: Draw, known: tuple[str, ...], held: tuple[str, ...]) -> str:
    """One of the known wordings; where wordings are those of the test split, half of the time one of the held-out ones.

    `Draw.wording` is for tasks whose held-out wordings are many enough to be asked alone.
    """
    return draw.pick(held if draw.wordings == "test" and draw.chance(0.5) else known)


def value_of(left: str) -> int:
    """The value of `a + b`, `a - b`, `a * b` or an exact `a / b`."""
    first, sign, second = left.split()
    a, b = int(first), int(second)
    return a + b if sign == "+" else a - b if sign == "-" else a * b if sign == "*" else a // b


def operand(draw: Draw) -> int:
    """A number up to 99; small ones are frequent."""
    kind = draw.random.random()
    return draw.number(0, 10) if kind < 0.22 else draw.number(2, 30) if kind < 0.5 else draw.number(10, 99)


def left_side(draw: Draw) -> str:
    """A sum, difference, product or exact quotient whose value is between 0 and 200."""
    kind = draw.random.random()
    if kind < 0.37:
        return f"{operand(draw)} + {operand(draw)}"
    if kind < 0.42:
        a = draw.number(100, 190)
        return f"{a} + {draw.number(1, MAX_RESULT - a)}"
    if kind < 0.72:
        a, b = operand(draw), operand(draw)
        return f"{max(a, b)} - {min(a, b)}"
    if kind < 0.78:
        a = draw.number(100, MAX_RESULT)
        return f"{a} - {draw.number(1, a)}"
    if kind < 0.92:
        a = draw.number(2, 9)
        b = draw.number(2, 12) if draw.chance(0.6) else draw.number(2, MAX_RESULT // a)
        return f"{a} * {b}" if draw.chance(0.5) else f"{b} * {a}"
    b = draw.number(2, 10)
    return f"{b * draw.number(1, 12)} / {b}"


def equation(left: str) -> str:
    """The left side with its value: `3 + 4 = 7`."""
    return f"{left} = {value_of(left)}"


def drill(draw: Draw) -> Messages:
    """A list of sums to compute: the equations, or only their results."""
    lefts = [left_side(draw) for _ in range(draw.number(6, 20))]
    lines, kind = "\n".join(lefts), draw.random.random()
    if kind < 0.65:
        ask = wording(draw, ASK_LIST, HELD_ASK_LIST)
        return [("user", ask.format(lines=lines)), ("assistant", "\n".join(map(equation, lefts)))]
    if kind < 0.9:
        ask = wording(draw, ASK_RESULTS, HELD_ASK_RESULTS)
        return [("user", ask.format(lines=lines)), ("assistant", "\n".join(str(value_of(left)) for left in lefts))]
    return [("text", "\n".join(map(equation, lefts)) + "\n")]


def arithmetic(draw: Draw) -> Messages:
    """One to ten questions for a result."""
    messages: Messages = []
    for _ in range(draw.pick((1, 4, 6, 8, 10))):
        left = left_side(draw)
        messages += [
            ("user", wording(draw, ASK_SUM, HELD_ASK_SUM).format(left=left)),
            ("assistant", str(value_of(left))),
        ]
    return messages


def comparison(draw: Draw) -> Messages:
    """Several questions about the order, the parity and the neighbours of numbers, and about the order of a list."""
    messages: Messages = []
    for _ in range(draw.pick((1, 4, 6, 8))):
        a, b = operand(draw), operand(draw)
        if a == b:
            b = a + 1
        turn: tuple[str, int | str]
        kind = draw.number(0, 6)
        if kind == 0:
            turn = (
                wording(
                    draw,
                    ("Which is larger, {a} or {b}?", "Which is more, {a} or {b}?"),
                    ("What is larger, {a} or {b}?",),
                ),
                max(a, b),
            )
        elif kind == 1:
            turn = (
                wording(
                    draw,
                    ("Which is smaller, {a} or {b}?", "Which is less, {a} or {b}?"),
                    ("What is smaller, {a} or {b}?",),
                ),
                min(a, b),
            )
        elif kind == 2:
            turn = (
                wording(
                    draw, ("Is {a} larger than {b}?", "Is {a} more than {b}?"), ("Is {a} larger than {b}? yes or no",)
                ),
                "yes" if a > b else "no",
            )
        elif kind == 3:
            turn = wording(draw, ("Is {a} even or odd?",), ("Even or odd: {a}",)), "odd" if a % 2 else "even"
        elif kind == 4:
            turn = (
                wording(
                    draw, ("Which number comes after {a}?", "What comes after {a}?"), ("What number comes after {a}?",)
                ),
                a + 1,
            )
        elif kind == 5:
            turn = (
                wording(draw, ("Count from {a} to {end}.", "Count: {a} to {end}"), ("Count from {a} up to {end}.",)),
                " ".join(map(str, range(a, a + 6))),
            )
        else:
            numbers = draw.sample(range(100), draw.number(3, 5))
            extreme, value = draw.pick((("largest", max(numbers)), ("smallest", min(numbers))))
            listed = ", ".join(map(str, numbers))
            ask = wording(
                draw,
                (f"Which is the {extreme}: {listed}?", f"{listed}\nWhich is the {extreme}?"),
                (f"What is the {extreme}: {listed}?",),
            )
            turn = ask, value
        messages += [("user", turn[0].format(a=a, b=b, end=a + 5)), ("assistant", str(turn[1]))]
    return messages
