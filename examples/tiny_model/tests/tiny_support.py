"""Shared by the tests: the shipped checkpoint, a small network, held-out words, and the texts that a template expands to."""

import re
from fractions import Fraction
from pathlib import Path

from tiny_model.corpus import lexicon
from tiny_model.corpus.words import Draw
from tiny_model.training.network import Shape

TINY = Path(__file__).parents[3] / "rtlang" / "tiny"
SMALL = Shape(hidden_size=32, num_layers=1, num_q_heads=2, num_kv_heads=1, head_dim=16, intermediate_size=48)
HELD_WORDS = [word for name, listed in vars(lexicon).items() if name.startswith("HELD_") for word in listed]
EQUATION = re.compile(r"^(?:thought: )?(\d+) ([-+*/]) (\d+) = (\d+)$", re.MULTILINE)


def expansions(template: str, count: int) -> list[str]:
    """The text of a template for the first `count` seeds, with its fields unfilled; one text if it has no alternatives."""
    return [Draw(seed).spoken(template) for seed in range(count if "[" in template else 1)]


def exact(a: str, sign: str, b: str) -> Fraction:
    """The value of `a sign b`."""
    x, y = Fraction(a), Fraction(b)
    return {"+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y, "/": lambda: x / y}[sign]()


def is_true(equation: tuple[str, str, str, str]) -> bool:
    """Whether an equation, as the groups of `EQUATION`, is true."""
    return exact(*equation[:3]) == int(equation[3])


def numbers_of(text: str) -> list[int]:
    """The numbers in a text, written as digits or as words for a factor."""
    spelled = [("doubles", 2), ("triples", 3), ("half of", 2), ("twice", 2)]
    return [int(digits) for digits in re.findall(r"\d+", text)] + [number for word, number in spelled if word in text]
