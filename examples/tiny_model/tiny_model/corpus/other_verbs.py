"""Other verbs after the values of a text.

A text template has the verb that fits, so that a model could learn where a value ends from which words follow it in the templates.
With verbs from all of everyday language it has to learn what a verb is. What a text then says may be odd, more so where a noun or
participle is spelled like a verb ("copies of") and swapped as well; its fields stay what they are.
"""

import re

from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.lexicon import words
from tiny_model.corpus.words import Draw

TEMPLATES = sections_of("other_verbs")

SWAPPED_SHARE = 0.4  # of the verbs that stand after a value
ADVERB_SHARE = 0.15  # of the verbs that stand after a value
REGULAR = words(
    TEMPLATES["REGULAR"],
)
DOUBLED = frozenset(words(TEMPLATES["DOUBLED"]))  # before -ed
# Of verbs whose past is their own: the base form and the past. Here and in REGULAR there is no verb that a held-out text of the short
# kinds has after a value.
IRREGULAR = tuple(pair.split(">") for pair in words(TEMPLATES["IRREGULAR"]))
# None ends a value of a list ("hums loudly").
ADVERBS = words(
    TEMPLATES["ADVERBS"],
)


def third_person(verb: str) -> str:
    """The form after `she`, in the present: `tries` of `try`."""
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return verb + "es"
    return verb[:-1] + "ies" if verb[-1] == "y" and verb[-2] not in "aeou" else verb + "s"


def past_of_regular(verb: str) -> str:
    """The past: `tried` of `try`, `stopped` of `stop`."""
    if verb in DOUBLED:
        return verb + verb[-1] + "ed"
    if verb[-1] == "y" and verb[-2] not in "aeou":
        return verb[:-1] + "ied"
    return verb + ("d" if verb[-1] == "e" else "ed")


THIRD_PERSONS = tuple(third_person(verb) for verb in (*REGULAR, *(base for base, _ in IRREGULAR)))
PASTS = tuple(past_of_regular(verb) for verb in REGULAR) + tuple(past for _, past in IRREGULAR)
MODALS = words("can could may might must shall should will would")
FORMS = {form: forms for forms in (PASTS, THIRD_PERSONS, MODALS) for form in forms}
# A participle may stand after them, so no other verb fits; an adverb does, also where they are the only verb ("has 3 cats").
AUXILIARY = frozenset(words("is are was were has had"))
VERB_AFTER_VALUE = re.compile(r"(?<=}) ([a-z]+) (?=(.))")


def with_other_verbs(draw: Draw, line: str) -> str:
    """The template, in which some of the verbs after its slots are others, in the same form, modal verbs other modal verbs,
    or have an adverb before them.

    Held-out templates stay as they are.
    """
    if draw.templates == "test":
        return line

    def varied(match: re.Match[str]) -> str:
        verb, following = match.groups()
        if verb not in FORMS and verb not in AUXILIARY:
            return match[0]
        # A verb right before another value may be what tells the role of that one.
        if verb in FORMS and following != "{" and draw.chance(SWAPPED_SHARE):
            verb = draw.pick(FORMS[verb])
        return f" {draw.pick(ADVERBS)} {verb} " if draw.chance(ADVERB_SHARE) else f" {verb} "

    return VERB_AFTER_VALUE.sub(varied, line)
