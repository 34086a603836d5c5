"""Families of labelled phrases: what messages of a class say. A part of each list is held back for the test split.

A family has a noun for what its labels are (`topic`, `intent`) and a form of its phrases: clauses that stand inside of
sentences, or whole sentences. Phrases and frames are composed of parts with choices, so that the words that carry a label occur in
many constructions.
"""

from dataclasses import dataclass

from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.phrases import Phrases, phrases

TEMPLATES = sections_of("classes")


@dataclass(frozen=True, slots=True)
class Family:
    """Labels of one kind. `frames` take a phrase in the field `{}`, a name in `{name}`; `{cap}` is the phrase, capital first."""

    noun: str
    frames: Phrases
    labels: dict[str, Phrases]


REQUEST = phrases(TEMPLATES["REQUEST"])
REPORT = phrases(TEMPLATES["REPORT"])
COMMAND = phrases(TEMPLATES["COMMAND"])
SENTENCE = phrases(TEMPLATES["SENTENCE"])
BARE = phrases("{}|{cap}|{cap}.|[Text/Line]: {}||{}.")

TEAM = {
    "billing": phrases(TEMPLATES["TEAM.billing"]),
    "shipping": phrases(TEMPLATES["TEAM.shipping"]),
    "returns": phrases(TEMPLATES["TEAM.returns"]),
    "technical": phrases(TEMPLATES["TEAM.technical"]),
    "account": phrases(TEMPLATES["TEAM.account"]),
    "sales": phrases(TEMPLATES["TEAM.sales"]),
    "jobs": phrases(TEMPLATES["TEAM.jobs"]),
    "feedback": phrases(TEMPLATES["TEAM.feedback"]),
}
ASSISTANT = {
    "weather": phrases(TEMPLATES["ASSISTANT.weather"]),
    "timer": phrases(TEMPLATES["ASSISTANT.timer"]),
    "music": phrases(TEMPLATES["ASSISTANT.music"]),
    "message": phrases(TEMPLATES["ASSISTANT.message"]),
    "booking": phrases(TEMPLATES["ASSISTANT.booking"]),
    "shopping": phrases(TEMPLATES["ASSISTANT.shopping"]),
    "translation": phrases(TEMPLATES["ASSISTANT.translation"]),
    "math": phrases(TEMPLATES["ASSISTANT.math"]),
    "joke": phrases(TEMPLATES["ASSISTANT.joke"]),
    "lights": phrases(TEMPLATES["ASSISTANT.lights"]),
}
TOPIC = {
    "sports": phrases(TEMPLATES["TOPIC.sports"]),
    "food": phrases(TEMPLATES["TOPIC.food"]),
    "music": phrases(TEMPLATES["TOPIC.music"]),
    "travel": phrases(TEMPLATES["TOPIC.travel"]),
    "weather": phrases(TEMPLATES["TOPIC.weather"]),
    "money": phrases(TEMPLATES["TOPIC.money"]),
    "health": phrases(TEMPLATES["TOPIC.health"]),
    "science": phrases(TEMPLATES["TOPIC.science"]),
    "politics": phrases(TEMPLATES["TOPIC.politics"]),
    "school": phrases(TEMPLATES["TOPIC.school"]),
    "animals": phrases(TEMPLATES["TOPIC.animals"]),
    "art": phrases(TEMPLATES["TOPIC.art"]),
}
