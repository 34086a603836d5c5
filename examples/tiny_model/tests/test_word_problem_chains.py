"""A chain of events comes to what its sentences tell, read one by one."""

import re

import pytest
from tiny_model.corpus.word_problem_chains import bus, collection
from tiny_model.corpus.words import Draw, Split


def collected(text: str) -> int:
    """The result of a problem about a collection, read sentence by sentence."""
    current = 0
    for sentence in re.split(r"(?<=\.) ", text):
        numbers = [int(digits) for digits in re.findall(r"\d+", sentence)]
        if "neighbor" in sentence or "shop opens" in sentence or "day" in sentence or "house" in sentence:
            continue
        if " has " in sentence:
            current = numbers[0]
        elif re.search(r"packs|boxes", sentence):
            current += numbers[0] * numbers[1]
        elif "half" in sentence:
            current //= 2
        elif re.search(r"doubles|triples", sentence):
            current *= 2 if "doubles" in sentence else 3
        elif re.search(r"gives away|loses|sells|breaks|gives \d+ (?:to|away)", sentence):
            current -= numbers[0]
        elif numbers:
            current += numbers[0]
    return current


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_collection_comes_to_what_its_sentences_tell(split: Split) -> None:
    draw = Draw(2, split)
    for _ in range(600):
        problem = collection(draw, draw.number(1, 6), draw.chance(0.5))
        assert problem.result == collected(problem.text.rsplit(" How many ", 1)[0]), problem


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_passengers_of_a_bus_are_those_who_got_on_and_not_off(split: Split) -> None:
    draw = Draw(3, split)
    for _ in range(3000):
        problem = bus(draw, draw.number(1, 6), draw.chance(0.7))
        on = re.findall(r"(?:starts with|leaves with|There are) (\d+)|(\d+) (?:people )?get on", problem.text)
        off = re.findall(r"(\d+) (?:people )?get off", problem.text)
        assert problem.result == sum(int(a or b) for a, b in on) - sum(map(int, off)), problem
