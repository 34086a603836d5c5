"""Phrases with a part held back for the test split, and what suits a character's role.

A list of phrases is written in one string, `known|known||held|held`: training draws from the known ones only, the test split
from the held ones only.
"""

import zlib
from collections.abc import Sequence
from typing import NamedTuple

from tiny_model.corpus.lexicon import words
from tiny_model.corpus.words import Draw


class Phrases(NamedTuple):
    """Phrases, or wordings with `{}` fields, of one meaning."""

    known: tuple[str, ...]
    held: tuple[str, ...]


def phrases(text: str, more: Sequence[str] = ()) -> Phrases:
    """`known|known||held|held` as phrases; `more` are further known ones."""
    known, held = text.split("||")
    return Phrases((*known.split("|"), *more), tuple(held.split("|")))


def say(draw: Draw, options: Phrases) -> str:
    """One of the phrases, of the part that the draw's split of texts may use.

    A known phrase with choices that would come to say what a held one says is drawn again.
    """
    text = draw.template(options.known, options.held)
    while draw.templates != "test" and any(held in text for held in options.held):
        text = draw.template(options.known, options.held)
    return text


def say_wording(draw: Draw, options: Phrases) -> str:
    """One of the instruction wordings, of the part that the draw's split of wordings may use.

    A known one that comes to say just what a held one says is drawn again.
    """
    text = draw.wording(options.known, options.held)
    while draw.wordings != "test" and text in options.held:
        text = draw.wording(options.known, options.held)
    return text


def is_held(text: str) -> bool:
    """Whether a composed phrase belongs to the fifth that only the test split may use. The same in every process."""
    return zlib.crc32(text.encode()) % 5 == 0


# A role of a character: the traits, then the mottos, that suit it.
ROLES = {
    "pilot": (
        words("calm focused daring precise bold"),
        words("The sky is only the beginning.|Look up and keep flying.|Every landing is a gift.", "|"),
    ),
    "baker": (
        words("warm patient generous early cheerful"),
        words("Good bread takes time.|Share the first slice.|Rise before the sun.", "|"),
    ),
    "blacksmith": (
        words("strong stubborn honest patient proud"),
        words("Strike while the iron is hot.|Strength comes from fire.|Honest work never bends.", "|"),
    ),
    "wizard": (
        words("wise curious mysterious patient odd"),
        words("Every riddle has a door.|Magic favors the patient.|Knowledge is the brightest spell.", "|"),
    ),
    "knight": (
        words("brave loyal honest strong proud"),
        words("Honor before gold.|Stand firm and fear nothing.|My word is my shield.", "|"),
    ),
    "thief": (
        words("quick clever quiet charming bold"),
        words("No lock lasts forever.|Quiet feet, quick hands.|Take the risk, leave no trace.", "|"),
    ),
    "healer": (
        words("kind gentle patient calm wise"),
        words("Every wound can close.|Kindness is the best medicine.|First, do no harm.", "|"),
    ),
    "ranger": (
        words("quiet alert patient tough loyal"),
        words("Leave no trail behind.|The forest knows the way.|Walk softly, see far.", "|"),
    ),
    "sailor": (
        words("tough cheerful brave restless loyal"),
        words("The wind decides, we steer.|Calm seas teach nothing.|Home is where the tide goes.", "|"),
    ),
    "captain": (
        words("bold fair brave stern loyal"),
        words("The ship comes first.|Hold the course.|Lead and others will follow.", "|"),
    ),
    "teacher": (
        words("patient kind clever fair cheerful"),
        words("Every question matters.|Learn a little every day.|Mistakes are good teachers.", "|"),
    ),
    "detective": (
        words("sharp curious patient stubborn calm"),
        words("The truth leaves footprints.|Look twice, judge once.|Every clue has a story.", "|"),
    ),
    "chef": (
        words("creative bold precise passionate proud"),
        words("Taste everything twice.|Salt, fire and love.|A good meal needs no words.", "|"),
    ),
    "engineer": (
        words("clever precise practical patient curious"),
        words("Measure twice, build once.|If it breaks, make it better.|Simple things last.", "|"),
    ),
    "farmer": (
        words("patient honest strong humble kind"),
        words("You harvest what you plant.|Rain or shine, we work.|The land remembers.", "|"),
    ),
    "doctor": (
        words("calm kind precise tireless honest"),
        words("Listen first, then heal.|Every life counts.|Care before cure.", "|"),
    ),
    "painter": (
        words("creative dreamy sensitive free curious"),
        words("Paint what you feel.|Every color has a voice.|See the world twice.", "|"),
    ),
    "musician": (
        words("creative lively free passionate warm"),
        words("Play it from the heart.|Silence is music too.|Find your own rhythm.", "|"),
    ),
    "merchant": (
        words("clever charming careful lucky bold"),
        words("A fair price makes a friend.|Gold loves the patient.|Know the worth of things.", "|"),
    ),
    "hunter": (
        words("quiet quick alert tough patient"),
        words("Patience fills the pot.|One arrow is enough.|Listen to the wind.", "|"),
    ),
    "gardener": (
        words("patient gentle humble calm kind"),
        words("Small seeds, tall trees.|Everything grows in time.|Water what you love.", "|"),
    ),
    "librarian": (
        words("quiet wise orderly patient curious"),
        words("Read first, speak later.|Every book is a door.|Order brings peace.", "|"),
    ),
    "explorer": (
        words("curious brave restless tough bold"),
        words("Go where the map ends.|The next hill calls.|Walk far, fear little.", "|"),
    ),
    "inventor": (
        words("clever curious odd tireless creative"),
        words("Try again, but better.|Ideas want to be built.|Failure is a first draft.", "|"),
    ),
    "astronomer": (
        words("patient curious dreamy precise wise"),
        words("The stars answer slowly.|Look up and wonder.|Night is full of light.", "|"),
    ),
    "nurse": (
        words("kind calm tireless warm strong"),
        words("A gentle hand heals.|Stay until morning.|Care is never wasted.", "|"),
    ),
    "guard": (
        words("alert loyal stern strong patient"),
        words("None shall pass.|Eyes open, all night.|Duty before sleep.", "|"),
    ),
    "spy": (
        words("quiet clever charming careful cold"),
        words("Trust no one, smile at all.|Secrets keep me alive.|See all, say nothing.", "|"),
    ),
    "king": (
        words("proud wise stern fair generous"),
        words("The crown serves the people.|Rule with an open hand.|Justice before mercy.", "|"),
    ),
    "queen": (
        words("wise proud fair graceful strong"),
        words("Lead with grace.|A calm voice rules longest.|My people are my crown.", "|"),
    ),
    "poet": (
        words("dreamy sensitive honest free gentle"),
        words("Words are wings.|Say it softly, say it true.|Every day is a verse.", "|"),
    ),
    "fisher": (
        words("patient quiet humble tough calm"),
        words("The sea gives in time.|Wait, then pull.|Mend the net at dusk.", "|"),
    ),
    "robot": (
        words("precise loyal tireless logical curious"),
        words("Error is only data.|I learn, therefore I am.|Serve, think, repeat.", "|"),
    ),
    "dragon rider": (
        words("brave wild loyal bold proud"),
        words("Fire below, sky above.|Fly high or not at all.|Two hearts, one flame.", "|"),
    ),
    "monk": (
        words("calm humble wise quiet gentle"),
        words("Peace begins within.|Breathe and be still.|Want little, have much.", "|"),
    ),
    "mechanic": (
        words("practical clever honest tough patient"),
        words("Everything can be fixed.|Listen to the engine.|Tight bolts, long roads.", "|"),
    ),
    "scientist": (
        words("curious precise logical patient clever"),
        words("Doubt is a good start.|Test it, then trust it.|The data will tell.", "|"),
    ),
    "warrior": (
        words("strong brave fierce loyal proud"),
        words("Courage is my armor.|Fall down, stand up.|Fight for those you love.", "|"),
    ),
    "archer": (
        words("focused quick calm precise proud"),
        words("Breathe, aim, release.|The arrow knows the heart.|One breath, one shot.", "|"),
    ),
    "witch": (
        words("mysterious clever odd wise wild"),
        words("The moon keeps my secrets.|Stir slowly, wish well.|Nature pays its debts.", "|"),
    ),
}
ANY_ROLE = (words("brave kind clever calm loyal"), words("Never give up.|One step at a time.|Do it with heart.", "|"))
