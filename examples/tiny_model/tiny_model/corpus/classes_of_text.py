"""More families of labelled phrases: feelings, urgency, languages, goods, genres, kinds of sentences; and the list of all families."""

from tiny_model.corpus.classes import ASSISTANT, BARE, COMMAND, REPORT, REQUEST, SENTENCE, TEAM, TOPIC, Family
from tiny_model.corpus.corpus_data import blocks_of, sections_of
from tiny_model.corpus.phrases import Phrases, phrases

TEMPLATES = sections_of("classes_of_text")

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
