"""Short stories: six plots of eight to thirteen sentences, each part of a plot told in one of several ways."""

from tiny_model.corpus.corpus_data import blocks_of, sections_of
from tiny_model.corpus.lexicon import ANIMALS, FIRST_NAMES, JOBS, words
from tiny_model.corpus.phrases import is_held, phrases, say_wording
from tiny_model.corpus.words import Draw, Messages, article, sentence

TEMPLATES = sections_of("stories")

TRAITS = words(TEMPLATES["TRAITS"])
SPOTS = words(TEMPLATES["SPOTS"])
FINDS = words(
    TEMPLATES["FINDS"],
    "|",
)
LOSSES = words("hat|drum|ring|kite|scarf|favorite cup|blue ball|shoes|voice|silver whistle|map|lamp", "|")
FEARS = words(TEMPLATES["FEARS"], "|")
SKILLS = words(TEMPLATES["SKILLS"], "|")
FEATS = words("a boat|a bridge|a swing|a tree house|a kite|a garden wall|a snow house|a tower of stones", "|")
CONTESTS = words("the great race|the baking contest|the singing contest|the kite festival|the summer games", "|")

OPENINGS = TEMPLATES["OPENINGS"]
HABITS = TEMPLATES["HABITS"]
HELP = TEMPLATES["HELP"]
CHEER = TEMPLATES["CHEER"]
WORK = TEMPLATES["WORK"]
ENDINGS = TEMPLATES["ENDINGS"]
PLOTS = tuple(
    tuple(tuple(options.split("|")) for options in plot)
    for plot in (
        (
            OPENINGS,
            HABITS,
            TEMPLATES["PLOTS"],
            HELP,
            TEMPLATES["PLOTS 2"],
            WORK,
            TEMPLATES["PLOTS 3"],
            ENDINGS,
        ),
        (
            OPENINGS,
            HABITS,
            TEMPLATES["PLOTS 4"],
            TEMPLATES["PLOTS 5"],
            HELP,
            CHEER,
            TEMPLATES["PLOTS 6"],
            TEMPLATES["PLOTS 7"],
            "{name} laughed and thanked {friend}.|{name} was so happy that {he} danced.",
            ENDINGS,
        ),
        (
            OPENINGS,
            TEMPLATES["PLOTS 8"],
            TEMPLATES["PLOTS 9"],
            TEMPLATES["PLOTS 10"],
            TEMPLATES["PLOTS 11"],
            TEMPLATES["PLOTS 12"],
            '"You are the bravest {animal} I know," said {friend}.|"You saved me," said {friend}.',
            TEMPLATES["PLOTS 13"],
        ),
        (
            OPENINGS,
            TEMPLATES["PLOTS 14"],
            TEMPLATES["PLOTS 15"],
            "Only {friend} the {other} did not laugh.|Then {friend}, {a_other}, sat down beside {him}.",
            TEMPLATES["PLOTS 16"],
            TEMPLATES["PLOTS 17"],
            "Spring came, then summer.|Weeks went by.|Some days were good and some were bad.",
            TEMPLATES["PLOTS 18"],
            ENDINGS,
        ),
        (
            OPENINGS,
            HABITS,
            TEMPLATES["PLOTS 19"],
            TEMPLATES["PLOTS 20"],
            TEMPLATES["PLOTS 21"],
            "{name} wanted to give up.|{name} sat down and sighed.",
            CHEER,
            WORK,
            TEMPLATES["PLOTS 22"],
            ENDINGS,
        ),
        (
            OPENINGS,
            "It was time for {contest} at the {spot}.|One summer everybody talked about {contest}.",
            TEMPLATES["PLOTS 23"],
            TEMPLATES["PLOTS 24"],
            TEMPLATES["PLOTS 25"],
            TEMPLATES["PLOTS 26"],
            "So {name} came last.|When {name} arrived, it was all over.",
            TEMPLATES["PLOTS 27"],
            "They gave {him} {a_find}, and a big cake.|There was no prize, but there was a new friend.",
            ENDINGS,
        ),
    )
)
ABOUT = (
    "{an_animal}",
    "{a_trait} {animal}",
    "{an_animal} named {name}",
    "{name} the {animal}",
    "{an_animal} and {a_find}",
    "{name}",
    "{an_animal} near the {spot}",
    "{a_trait} {animal} called {name}",
    "{a_trait} {animal} named {name}",
    "{an_animal} named {name} and {a_other} named {friend}",
)
ASKS = phrases(
    TEMPLATES["ASKS"],
    blocks_of("chat")["story"],
)


def story(draw: Draw) -> Messages:
    """A story of one plot, told on request or as it is."""
    animal = draw.pick(ANIMALS) if draw.chance(0.75) else draw.pick(JOBS)
    other = draw.pick(ANIMALS)
    while other == animal:
        other = draw.pick(ANIMALS)
    he, his, him = draw.pick((("he", "his", "him"), ("she", "her", "her")))
    he2 = draw.pick((("his", "him"), ("her", "her")))
    trait, find = draw.pick(TRAITS), draw.pick(FINDS)
    while is_held(f"{trait} {animal}") != (draw.templates == "test"):
        trait = draw.pick(TRAITS)
        animal = draw.pick(ANIMALS)
    name, friend = draw.first_name(), draw.pick(FIRST_NAMES)
    while friend == name:
        friend = draw.pick(FIRST_NAMES)
    fields = {
        "name": name,
        "friend": friend,
        "animal": animal,
        "an_animal": article(animal),
        "animal_a": article(animal),
        "trait": trait,
        "a_trait": article(trait),
        "other": other,
        "a_other": article(other),
        "spot": draw.pick(SPOTS),
        "find": find,
        "a_find": article(find),
        "loss": draw.pick(LOSSES),
        "fear": draw.pick(FEARS),
        "skill": draw.pick(SKILLS),
        "feat": draw.pick(FEATS),
        "contest": draw.pick(CONTESTS),
        "he": he,
        "He": sentence(he),
        "his": his,
        "him": him,
        "his2": he2[0],
        "him2": he2[1],
    }
    plot = draw.pick(PLOTS)
    text = " ".join(draw.pick(options) for options in plot).format_map(fields)
    if draw.chance(0.08):
        return [("text", text + "\n")]
    ask = say_wording(draw, ASKS).format(draw.pick(ABOUT).format_map(fields))
    messages = [("user", ask), ("assistant", text)]
    if draw.chance(0.2):
        return [("system", draw.pick(("You tell stories.", "You are a helpful assistant."))), *messages]
    return messages
