"""Families of labelled phrases for messages of a class: teams, intents, topics, emotions and others.

A part of each list is held back for the test split.

A family has a noun for what its labels are (`topic`, `intent`) and a form of its phrases: clauses that stand inside of
sentences, or whole sentences. Phrases and frames are composed of parts with choices, so that the words that carry a label occur in
many constructions.
"""

from dataclasses import dataclass

from tiny_model.corpus.corpus_data import blocks_of, sections_of
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
EMOTION = {
    "joy": phrases(TEMPLATES["EMOTION.joy"]),
    "sadness": phrases(TEMPLATES["EMOTION.sadness"]),
    "anger": phrases(TEMPLATES["EMOTION.anger"]),
    "fear": phrases(TEMPLATES["EMOTION.fear"]),
    "surprise": phrases(TEMPLATES["EMOTION.surprise"]),
    "love": phrases(TEMPLATES["EMOTION.love"]),
}
URGENCY = {
    "high": phrases(TEMPLATES["URGENCY.high"]),
    "medium": phrases(TEMPLATES["URGENCY.medium"]),
    "low": phrases(TEMPLATES["URGENCY.low"]),
}
SPAM = {
    "spam": phrases(TEMPLATES["SPAM.spam"]),
    "not spam": phrases(TEMPLATES["SPAM.not spam"]),
}
LANGUAGE = {
    "English": phrases(TEMPLATES["LANGUAGE.English"]),
    "Spanish": phrases(TEMPLATES["LANGUAGE.Spanish"]),
    "French": phrases(TEMPLATES["LANGUAGE.French"]),
    "German": phrases(TEMPLATES["LANGUAGE.German"]),
    "Italian": phrases(TEMPLATES["LANGUAGE.Italian"]),
}
GOODS = {
    "clothing": phrases(TEMPLATES["GOODS.clothing"]),
    "furniture": phrases(TEMPLATES["GOODS.furniture"]),
    "kitchen": phrases(TEMPLATES["GOODS.kitchen"]),
    "electronics": phrases(TEMPLATES["GOODS.electronics"]),
    "garden tools": phrases(TEMPLATES["GOODS.garden tools"]),
    "toys": phrases(TEMPLATES["GOODS.toys"]),
    "food": phrases(TEMPLATES["GOODS.food"]),
}
GENRE = {
    "mystery": phrases(TEMPLATES["GENRE.mystery"]),
    "romance": phrases(TEMPLATES["GENRE.romance"]),
    "fantasy": phrases(TEMPLATES["GENRE.fantasy"]),
    "science fiction": phrases(TEMPLATES["GENRE.science fiction"]),
    "horror": phrases(TEMPLATES["GENRE.horror"]),
}
ACT = {
    "question": phrases(TEMPLATES["ACT.question"]),
    "request": phrases(TEMPLATES["ACT.request"]),
    "statement": phrases(TEMPLATES["ACT.statement"]),
    "promise": phrases(TEMPLATES["ACT.promise"]),
}
DIRECTION = {
    "past": phrases(TEMPLATES["DIRECTION.past"]),
    "present": phrases(TEMPLATES["DIRECTION.present"]),
    "future": phrases(TEMPLATES["DIRECTION.future"]),
}
DANGER = {
    "safe": phrases(TEMPLATES["DANGER.safe"]),
    "dangerous": phrases(TEMPLATES["DANGER.dangerous"]),
}

MORE = blocks_of("labels")


def with_more(noun: str, frames: Phrases, labels: dict[str, Phrases]) -> Family:
    """The family with the phrases of labels.txt among the known ones."""
    return Family(
        noun,
        frames,
        {label: Phrases(options.known + MORE[f"{noun}: {label}"], options.held) for label, options in labels.items()},
    )


FAMILIES = (
    with_more("team", REQUEST, TEAM),
    with_more("intent", COMMAND, ASSISTANT),
    with_more("topic", REPORT, TOPIC),
    with_more("emotion", SENTENCE, EMOTION),
    with_more("urgency", REQUEST, URGENCY),
    with_more("type", SENTENCE, SPAM),
    with_more("language", BARE, LANGUAGE),
    with_more("category", BARE, GOODS),
    with_more("genre", REPORT, GENRE),
    with_more("kind of sentence", BARE, ACT),
    with_more("time", BARE, DIRECTION),
    with_more("safety", REPORT, DANGER),
)
TEAMS, INTENTS, TOPICS = FAMILIES[0], FAMILIES[1], FAMILIES[2]
