"""Other verbs after the values of a text.

A text template has the verb that fits, so that a model could learn where a value ends from which words follow it in the templates.
With verbs from all of everyday language it has to learn what a verb is. What a text then says may be odd, more so where a noun or
participle is spelled like a verb ("copies of") and swapped as well; its fields stay what they are.
"""

import re

from rtlang.model.embedded.lexicon import words
from rtlang.model.embedded.words import Draw

SWAPPED_SHARE = 0.4  # of the verbs that stand after a value
ADVERB_SHARE = 0.15  # of the verbs that stand after a value
REGULAR = words(
    "accept add admire adore advise agree aim allow annoy answer appear argue arrange arrive ask attach attack attempt attract "
    "avoid bake balance bark beg behave believe blink block bloom boast boil bounce bow brush bubble burn call camp carry cause "
    "change charm chase chat cheer chew circle claim clap clean clear climb close collapse collect comb confuse connect consider "
    "contain continue cook copy cough count cover crack crash crawl creak cross crumble cry cure curl dance dare decay decide "
    "deliver demand depend deserve destroy develop differ disappear dive divide double doubt drag drift drip drop drown employ end "
    "enjoy enter escape expand expire explain explode fade fail faint fasten fetch finish fix flash float flow fold follow frighten "
    "gain gather glow grab greet grin guard guess guide hammer handle happen harm hesitate hope hover hug hum hunt hurry "
    "ignore imagine impress improve include increase inform inspire intend interest invite join joke juggle jump kiss knock land "
    "last laugh lean learn level lick lift linger listen live load lock look love manage march marry match matter melt mend "
    "mention miss mix moan move murmur nod notice object obtain occur offer oppose orbit order owe pack paint park pass pause "
    "perform persuade plan play please point polish possess practise pray prefer present press pretend prevent produce promise "
    "promote protect prove pull punish push puzzle question race rattle reach recover reduce refuse regret relax rely remain "
    "remember remind remove repeat replace rescue resist respond rest return reveal roar roll rot rule rush sail save scatter "
    "scream search seem serve settle shelter shiver shock shout sigh sign slip slow smell smile snore soften sparkle spill "
    "splash stare start startle stay stir stop stretch struggle stumble succeed suffer suggest suit supply support surprise "
    "surround survive suspect swallow sway talk taste tempt thank tick touch train transform trap travel treat tremble trip trust "
    "try turn twist unite vanish visit vote wait walk wander warm warn wash waste watch wave weigh whisper whistle wink wipe "
    "wish wobble wonder work worry wrap yawn yell yield",
)
DOUBLED = frozenset(
    words(
        "beg chat clap drag drip drop grab grin hug hum nod occur plan prefer regret rot slip stir stop trap trip wrap"
    )
)  # before -ed
# Of verbs whose past is their own: the base form and the past. Here and in REGULAR there is no verb that a held-out text of the short
# kinds has after a value.
IRREGULAR = tuple(
    pair.split(">")
    for pair in words(
        "beat>beat become>became begin>began bend>bent bite>bit bleed>bled blow>blew break>broke bring>brought build>built "
        "burst>burst catch>caught cling>clung creep>crept cut>cut deal>dealt dig>dug draw>drew dream>dreamt drink>drank drive>drove "
        "eat>ate fall>fell feel>felt fight>fought find>found flee>fled fling>flung fly>flew forget>forgot forgive>forgave "
        "freeze>froze get>got give>gave go>went grind>ground grow>grew hang>hung hear>heard hide>hid hit>hit hurt>hurt keep>kept "
        "know>knew lay>laid lead>led lend>lent let>let lie>lay light>lit lose>lost make>made mean>meant meet>met ride>rode "
        "ring>rang rise>rose run>ran see>saw seek>sought sell>sold send>sent set>set shake>shook shine>shone shrink>shrank "
        "shut>shut sing>sang sink>sank sit>sat sleep>slept slide>slid speak>spoke spend>spent spin>spun split>split spread>spread "
        "spring>sprang stand>stood steal>stole stick>stuck sting>stung strike>struck swear>swore sweep>swept swim>swam swing>swung "
        "take>took teach>taught tear>tore tell>told think>thought throw>threw understand>understood wake>woke wear>wore weep>wept "
        "win>won wind>wound write>wrote"
    )
)
# None ends a value of a list ("hums loudly").
ADVERBS = words(
    "abruptly actually almost already also always anyhow apparently barely bravely briefly calmly certainly clearly "
    "curiously eagerly eventually evidently faintly finally firmly frankly generally gently gladly gradually "
    "happily hardly honestly hopefully just later likewise literally luckily mainly maybe merely mostly naturally nearly "
    "neatly never nicely normally noticeably now obviously occasionally officially often once only openly ordinarily otherwise "
    "partly patiently perhaps plainly possibly practically presumably previously probably promptly proudly quietly rarely "
    "really regularly repeatedly sadly seemingly seldom silently simply smoothly steadily still "
    "suddenly supposedly surely surprisingly temporarily therefore thus tirelessly truly typically unexpectedly usually "
    "utterly visibly warmly wisely",
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
