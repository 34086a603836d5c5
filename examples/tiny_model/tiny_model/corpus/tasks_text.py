"""Corpus tasks: choose a label for a text. Sentiment, routing, any family of classes, and whether a claim follows.

Each task function takes a `Draw` and returns the messages of one conversation, ending with the answer; a single message
with the role `text` is a plain completion without chat framing. Phrases and wordings follow the split of the draw.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tiny_model.corpus.classes import FAMILIES, INTENTS, TEAMS, TOPICS, Family
from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.opinions import domain, mixed, verdict
from tiny_model.corpus.phrases import Phrases, phrases, say, say_wording
from tiny_model.corpus.tasks_claims import claimed, claims_in_a_row, people
from tiny_model.corpus.words import Draw, Messages, sentence

TEMPLATES = sections_of("tasks_text")

LETTERS = "ABCDEFGH"
SENTIMENT_ASKS = phrases(TEMPLATES["SENTIMENT_ASKS"])
NAMING_ASKS = Phrases(
    *(tuple(ask for ask in asks if "{either}" in ask or "{options}" in ask) for asks in SENTIMENT_ASKS)
)
CHOICE_ASKS = phrases(TEMPLATES["CHOICE_ASKS"])
TEAM_ASKS = phrases(TEMPLATES["TEAM_ASKS"])
SHOT_NAMES = phrases("Text|Input|Message|Sentence|Q||Example|Comment")
SENTIMENT_SHOTS = (("Review", "Sentiment"), ("Text", "Sentiment"), ("Review", "Label"), ("Comment", "Mood"))
SYSTEMS = phrases(TEMPLATES["SYSTEMS"])
SENTIMENT_LABELS = (
    ("positive", "negative"),
    ("positive", "negative"),
    ("positive", "negative", "neutral"),
    ("positive", "negative", "neutral"),
    ("positive", "negative", "neutral", "mixed"),
    ("good", "bad"),
    ("happy", "unhappy"),
)
MEANING = {"good": "positive", "bad": "negative", "happy": "positive", "unhappy": "negative"}


class Labelled(NamedTuple):
    """A conversation whose answer is one of some labels."""

    messages: Messages
    options: tuple[str, ...]


def opinion(draw: Draw, label: str) -> str:
    """A review of the label, in one of several forms."""
    kind, subject = domain(draw)
    meaning = MEANING.get(label, label)
    text = mixed(draw, kind) if meaning == "mixed" else verdict(draw, meaning, kind)
    return draw.pick(
        (
            f"{sentence(text)}.",
            f"{sentence(text)}.",
            f"I bought the {subject}. {sentence(text)}."
            if kind == "product"
            else f"We tried the {subject}. {sentence(text)}.",
            f"About the {subject}: {text}.",
            f"The {subject}? {sentence(text)}!",
            f"{sentence(text)}, said {draw.first_name()}.",
            f"{subject}: {text}",
            f"{text}",
            f"{sentence(text)}!",
        )
    )


def either(labels: Sequence[str]) -> str:
    """`a, b or c`."""
    return ", ".join(labels[:-1]) + " or " + labels[-1]


def asked(draw: Draw, wordings: Phrases, labels: Sequence[str], text: str, noun: str = "label") -> str:
    """The question for the label of a text, with the labels as the wording lists them."""
    options = draw.pick((", ", ", ", " / ", "; ")).join(labels)
    return say_wording(draw, wordings).format(
        text=text,
        noun=noun,
        Noun=sentence(noun),
        options=options,
        either=either(labels),
        gap=draw.pick(("\n", " ")),
        bullets="\n".join(f"- {label}" for label in labels),
    )


def few_shot(
    draw: Draw, labels: Sequence[str], example: Callable[[str], str], names: tuple[str, str], opening: str = ""
) -> Messages:
    """A plain text of none to four labelled examples and one more, or a chat with the same examples as turns."""
    shown = [draw.pick(labels) for _ in range(draw.number(0, 2))]
    if draw.chance(0.6) or labels[0] in MEANING:  # labels that are unusual have to be shown
        shown = draw.shuffled([*labels[:3], *shown[:1]])
    shots = [(example(label), label) for label in [*shown, draw.pick(labels)]]
    if draw.chance(0.25) and (opening or shots[-1][1] in shown):
        turns = [turn for text, label in shots for turn in (("user", text), ("assistant", label))]
        return [("system", opening), *turns] if opening else turns
    gap = draw.pick(("\n", "\n\n", "\n"))
    head = f"{opening}{gap}" if opening and draw.chance(0.5) else ""
    return [("text", head + gap.join(f"{names[0]}: {text}\n{names[1]}: {label}" for text, label in shots) + "\n")]


def lettered(draw: Draw, question: str, options: Sequence[str], label: str) -> Labelled:
    """The question with options A, B, C; the answer is the letter."""
    mark = draw.pick((". ", ") ", ": "))
    listed = "\n".join(f"{letter}{mark}{option}" for letter, option in zip(LETTERS, options, strict=False))
    end = draw.pick(
        ("\nAnswer with one letter.", "\nAnswer:", "\nA, B or C?" if len(options) == 3 else "\nWhich letter?")
    )
    messages = [("user", f"{question}\n{listed}{end}"), ("assistant", LETTERS[options.index(label)])]
    return Labelled(messages, tuple(LETTERS[: len(options)]))


def sentiment(draw: Draw) -> Messages:
    """Is an opinion positive or negative, in one word."""
    return labelled_sentiment(draw).messages


def labelled_sentiment(draw: Draw) -> Labelled:
    """`sentiment` with its labels."""
    listed = draw.pick(SENTIMENT_LABELS)
    labels = draw.shuffled(listed) if draw.chance(0.4) else list(listed)
    chance = draw.random.random()
    if chance < 0.3:
        shots = few_shot(draw, labels, lambda label: opinion(draw, label), draw.pick(SENTIMENT_SHOTS))
        return Labelled(shots, tuple(labels))
    label = draw.pick(labels)
    text = opinion(draw, label)
    if chance < 0.36:
        return Labelled(by_system(draw, labels, text, label), tuple(labels))
    wordings = SENTIMENT_ASKS if listed == SENTIMENT_LABELS[0] else NAMING_ASKS  # other labels must be named
    ask = asked(draw, wordings, labels, text, "sentiment").rstrip("\n")
    return Labelled([("user", ask), ("assistant", label)], tuple(labels))


def by_system(draw: Draw, labels: Sequence[str], text: str, label: str) -> Messages:
    """The labels in the system message, the text alone in the user's."""
    system = say_wording(draw, SYSTEMS).format(options=", ".join(labels))
    return [("system", system), ("user", text), ("assistant", label)]


def message(draw: Draw, family: Family, label: str) -> str:
    """A phrase of the label in a sentence."""
    phrase = say(draw, family.labels[label])
    return say(draw, family.frames).format(phrase, cap=sentence(phrase), name=draw.first_name())


def choose(draw: Draw, family: Family, wordings: Phrases) -> Labelled:
    """One label of a family, or of some of its labels, for a message."""
    count = draw.number(2, min(7, len(family.labels)))
    if draw.chance(0.25):
        count = min(5, len(family.labels))
    labels = draw.sample(tuple(family.labels), count)
    label = draw.pick(labels)
    chance = draw.random.random()
    if chance < 0.15:
        names = (say_wording(draw, SHOT_NAMES), draw.pick((sentence(family.noun), "Label", sentence(family.noun))))
        opening = f"{sentence(family.noun)}: {either(labels)}."
        shots = few_shot(draw, labels[:4], lambda label: message(draw, family, label), names, opening)
        return Labelled(shots, tuple(labels))
    text = message(draw, family, label)
    if chance < 0.23:
        return Labelled(by_system(draw, labels, text, label), tuple(labels))
    ask = asked(draw, wordings, labels, text, family.noun)
    return Labelled([("user", ask), ("assistant", label)], tuple(labels))


def letter_questions(family: Family) -> tuple[str, str]:
    """What is asked before the lettered labels of a family."""
    return f"Which {family.noun} fits?", "Choose."


def lettered_choice(draw: Draw) -> Messages:
    """A label of a family, or a sentiment, by its letter."""
    return labelled_lettered_choice(draw).messages


def labelled_lettered_choice(draw: Draw) -> Labelled:
    """`lettered_choice` with its letters."""
    if draw.chance(0.3):
        labels = draw.shuffled(draw.pick(SENTIMENT_LABELS))
        label = draw.pick(labels)
        return lettered(draw, f"What is the sentiment?\n{opinion(draw, label)}", labels, label)
    family = draw.pick((TEAMS, INTENTS, TOPICS, *FAMILIES))
    labels = draw.sample(tuple(family.labels), draw.number(2, min(7, len(family.labels))))
    label = draw.pick(labels)
    question = f"{draw.pick(letter_questions(family))}\n{message(draw, family, label)}"
    return lettered(draw, question, labels, label)


def routing(draw: Draw) -> Messages:
    """The team for a message, the intent of a command, or the topic of a text."""
    return labelled_routing(draw).messages


def labelled_routing(draw: Draw) -> Labelled:
    """`routing` with its labels."""
    family = draw.pick((TEAMS, TEAMS, INTENTS, TOPICS))
    return choose(draw, family, TEAM_ASKS if family is TEAMS else CHOICE_ASKS)


def choice(draw: Draw) -> Messages:
    """One label of any family, a label to confirm, a claim that follows or not, or several of these about one text."""
    chance = draw.random.random()
    if chance < 0.3:
        return claims_in_a_row(draw)
    if chance < 0.4:
        return labels_in_a_row(draw)
    return labelled_choice(draw).messages


def labelled_choice(draw: Draw) -> Labelled:
    """`choice` with its labels."""
    chance = draw.random.random()
    if chance < 0.2:
        return confirm(draw)
    if chance < 0.4:
        return entailment(draw)
    return choose(draw, draw.pick(FAMILIES), CHOICE_ASKS)


CONFIRM_ASKS = phrases(TEMPLATES["CONFIRM_ASKS"])
FOLLOW_ASKS = phrases(TEMPLATES["FOLLOW_ASKS"])


def confirm(draw: Draw) -> Labelled:
    """Whether one label fits a text, yes or no."""
    family = draw.pick(FAMILIES)
    labels = draw.sample(tuple(family.labels), 2)
    is_right = draw.chance(0.5)
    ask = say_wording(draw, CONFIRM_ASKS).format(
        text=message(draw, family, labels[0]),
        label=labels[0 if is_right else 1],
        noun=family.noun,
        Noun=sentence(family.noun),
    )
    return Labelled([("user", ask), ("assistant", "yes" if is_right else "no")], ("yes", "no"))


NEXT_LABEL_ASKS = phrases(TEMPLATES["NEXT_LABEL_ASKS"])


def labels_in_a_row(draw: Draw) -> Messages:
    """Several labels of a family for one text, each to confirm; exactly one of them fits."""
    family = draw.pick(FAMILIES)
    labels = draw.sample(tuple(family.labels), min(len(family.labels), draw.number(2, 5)))
    right = draw.pick(labels)
    text = message(draw, family, right)
    turns: Messages = []
    for label in labels:
        ask = say_wording(draw, NEXT_LABEL_ASKS).format(label=label, noun=family.noun, Noun=sentence(family.noun))
        turns += [("user", ask if turns else f"{text}\n{ask}"), ("assistant", "yes" if label == right else "no")]
    return turns


def entailment(draw: Draw) -> Labelled:
    """Whether a claim is what the given sentences say; a wrong claim changes one thing, or the person."""
    given = people(draw, (1, 2, 2, 3))
    claim, _, is_right = claimed(draw, given)
    facts = " ".join(f"{fact}." for _, (fact, _) in given)
    ask = say_wording(draw, FOLLOW_ASKS).format(facts=facts, claim=claim, Claim=sentence(claim))
    words = ("true", "false") if "rue or false" in ask else ("yes", "no")
    return Labelled([("user", ask), ("assistant", words[0 if is_right else 1])], words)
