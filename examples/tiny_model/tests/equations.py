"""Reading the equations and numbers of a word problem, independently of how the corpus makes them."""

import re
from fractions import Fraction

EQUATION = re.compile(r"^(?:thought: )?(\d+) ([-+*/]) (\d+) = (\d+)$", re.MULTILINE)


def exact(a: str, sign: str, b: str) -> Fraction:
    """The value of `a sign b`."""
    x, y = Fraction(a), Fraction(b)
    return {"+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y, "/": lambda: x / y}[sign]()


def holds(equation: tuple[str, str, str, str]) -> bool:
    """Whether an equation, as a group of `EQUATION`, is true."""
    return exact(*equation[:3]) == int(equation[3])


def numbers_of(text: str) -> list[int]:
    """Numbers told as digits or as words that stand for a factor."""
    spelled = [("doubles", 2), ("triples", 3), ("half of", 2), ("twice", 2)]
    return [int(digits) for digits in re.findall(r"\d+", text)] + [number for word, number in spelled if word in text]
