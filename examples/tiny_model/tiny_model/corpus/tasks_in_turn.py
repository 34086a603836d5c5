"""Corpus tasks: one instruction, then several texts in one chat, each with its answer.

They ask nothing that the other tasks do not, but a token of them teaches more: what is to be done, which fields, which labels
and which tools there are is read once for up to nine answers.
"""

from tiny_model.corpus import tasks_tools
from tiny_model.corpus.classes import FAMILIES, INTENTS, TEAMS, TOPICS
from tiny_model.corpus.framing import framed
from tiny_model.corpus.instructions import ask_for
from tiny_model.corpus.kinds import Kind
from tiny_model.corpus.phrases import say_wording
from tiny_model.corpus.tasks_extraction import PROSE, SHORT, renamed, spelled
from tiny_model.corpus.tasks_text import SENTIMENT_LABELS, SYSTEMS, message, opinion
from tiny_model.corpus.words import Draw, Messages


def texts(draw: Draw) -> Messages:
    """Texts of one kind, each answered by a record of the same fields."""
    kind: Kind = draw.pick(SHORT if draw.chance(0.7) else PROSE)
    told = [kind(draw) for _ in range(draw.number(3, 5))]
    first = renamed(draw, told[0][2])
    names = dict(zip(told[0][2], first, strict=True))
    keys = draw.sample(list(names), draw.number(min(2, len(names)), len(names))) if draw.chance(0.4) else list(names)
    records = [{names[key]: record[key] for key in keys} for _, _, record in told]
    ask = ask_for(draw, draw.pick(kind.names), records[0], named=1)
    by_system = draw.chance(0.4)
    turns: Messages = [("system", ask)] if by_system else []
    for (_, text, _), record in zip(told, records, strict=True):
        turns += [("user", text if turns else framed(draw, ask, text)), ("assistant", spelled(record))]
    return turns


def labels(draw: Draw) -> Messages:
    """Reviews, or messages of one family of classes, each answered by its label."""
    is_review = draw.chance(0.7)
    family = draw.pick((TEAMS, INTENTS, TOPICS, *FAMILIES))
    listed = draw.pick(SENTIMENT_LABELS) if is_review else tuple(family.labels)
    options = draw.sample(listed, len(listed) if is_review else draw.number(2, min(6, len(listed))))
    turns: Messages = [("system", say_wording(draw, SYSTEMS).format(options=", ".join(options)))]
    for _ in range(draw.number(5, 9)):
        label = draw.pick(options)
        text = opinion(draw, label) if is_review else message(draw, family, label)
        turns += [("user", text), ("assistant", label)]
    return turns


def requests(draw: Draw) -> Messages:
    """A list of tools and requests for at least half of them."""
    return tasks_tools.conversation(draw, asks_most=True)
