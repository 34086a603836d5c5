"""What the script dialogue.yaml says, for the programs that use it."""

from __future__ import annotations

WEATHER = "What is the weather in Oslo?"
TWO_CITIES = "Compare the weather in Oslo and Rome."
DOOR = "Who is at the door?"
STORY = "Tell me a story."
ANSWER = "It is 9 degrees in Oslo."
COMPARED = "It is warmer in Rome."
TOLD = 'Once upon a time, in a café — by the 漢字 sea 🌊 — a fox wrote "tests"; they passed.'
THOUGHT = "I need the forecast."
ADA = {"name": 'Ada "Countess" Löve', "age": 36}
asked: list[str] = []
"""The cities that `get_weather` was called for."""


def get_weather(city: str) -> str:
    """The weather in a city."""
    asked.append(city)
    return "9 degrees and rain" if city == "Oslo" else "21 degrees"


def take_asked() -> list[str]:
    """The cities since the last call of this function."""
    taken, asked[:] = list(asked), []
    return taken
