"""What reviews say: whole phrases by label, and phrases composed of an aspect and a judgement of it.

A part of every list, and a fifth of the composed phrases, is held back for the test split.
"""

from tiny_model.corpus.corpus_data import blocks_of, sections_of
from tiny_model.corpus.lexicon import words
from tiny_model.corpus.phrases import is_held, phrases, say
from tiny_model.corpus.words import Draw

TEMPLATES = sections_of("opinions")

MORE = blocks_of("opinions")

OPINIONS = {
    "positive": phrases(
        TEMPLATES["OPINIONS.positive"],
        MORE["positive"],
    ),
    "negative": phrases(
        TEMPLATES["OPINIONS.negative"],
        MORE["negative"],
    ),
    "neutral": phrases(
        TEMPLATES["OPINIONS.neutral"],
        MORE["neutral"],
    ),
}
ASPECTS = {
    "product": words(TEMPLATES["ASPECTS.product"]),
    "place": words(TEMPLATES["ASPECTS.place"]),
    "story": words("story plot ending acting music cast dialogue humor beginning hero picture idea style pace"),
    "app": words("design speed menu login search update support layout sound help map chat"),
}
SUBJECTS = {
    "place": words(TEMPLATES["SUBJECTS.place"]),
    "story": words("film book show series novel game play movie comic episode"),
    "app": words("app website program game tool update"),
}
GOOD = phrases(
    TEMPLATES["GOOD"],
    MORE["positive words"],
)
BAD = phrases(
    TEMPLATES["BAD"],
    MORE["negative words"],
)
PLAIN = phrases(
    TEMPLATES["PLAIN"],
    MORE["neutral words"],
)
JUDGEMENTS = {"positive": GOOD, "negative": BAD, "neutral": PLAIN}
FRAMES = {
    "positive": phrases(
        TEMPLATES["FRAMES.positive"],
        MORE["positive frames"],
    ),
    "negative": phrases(
        TEMPLATES["FRAMES.negative"],
        MORE["negative frames"],
    ),
    "neutral": phrases(
        TEMPLATES["FRAMES.neutral"],
        MORE["neutral frames"],
    ),
}
OPPOSITE = {"positive": "negative", "negative": "positive"}
TURNS = phrases(
    TEMPLATES["TURNS"],
    MORE["turns"],
)


def domain(draw: Draw) -> tuple[str, str]:
    """What is reviewed: its kind and its name."""
    kind = draw.pick(("product", "product", "place", "story", "app"))
    return kind, draw.item() if kind == "product" else draw.pick(SUBJECTS[kind])


def judgement(draw: Draw, label: str, kind: str) -> str:
    """One clause: a whole phrase, or an aspect of the thing and what is thought of it."""
    chance = draw.random.random()
    if chance < 0.45:
        return say(draw, OPINIONS[label])
    aspect = draw.pick(ASPECTS[kind])
    if chance < 0.6:
        return say(draw, FRAMES[label]).format(aspect)
    options = JUDGEMENTS[label]
    for _ in range(20):
        text = f"the {aspect} {draw.pick(('is', 'was'))} {draw.spoken(draw.pick(options.known))}"
        if is_held(text) == (draw.templates == "test"):
            return text
        aspect = draw.pick(ASPECTS[kind])
    return f"the {aspect} is {say(draw, options)}"


def verdict(draw: Draw, label: str, kind: str) -> str:
    """One or two clauses of a label; at times the opposite is granted first."""
    own = judgement(draw, label, kind)
    chance = draw.random.random()
    if label in OPPOSITE and chance < 0.12:
        return say(draw, TURNS).format(other=judgement(draw, OPPOSITE[label], kind), own=own)
    if chance < 0.4:
        other = judgement(draw, label, kind)
        if other != own:
            return f"{own}{draw.pick((' and ', ' and ', ', and ', '. ', '; '))}{other}"
    return own


def mixed(draw: Draw, kind: str) -> str:
    """One good and one bad side, in either order."""
    sides = [judgement(draw, "positive", kind), judgement(draw, "negative", kind)]
    first, second = draw.shuffled(sides)
    return f"{first}{draw.pick((', but ', ' but ', ', however, ', '. On the other hand '))}{second}"
