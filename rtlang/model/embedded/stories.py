"""Short stories: six plots of eight to thirteen sentences, each part of a plot told in one of several ways."""

from rtlang.model.embedded.lexicon import ANIMALS, FIRST_NAMES, JOBS, words
from rtlang.model.embedded.phrases import is_held, phrases, say_wording
from rtlang.model.embedded.text_files import blocks_of
from rtlang.model.embedded.words import Draw, Messages, article, sentence

TRAITS = words("brave shy clever kind lazy curious tiny proud gentle noisy lonely happy old young quiet hungry sleepy")
SPOTS = words("forest village garden castle cave meadow desert harbor valley park town jungle swamp orchard")
FINDS = words(
    "lost key|golden egg|strange map|hidden door|magic lamp|old book|bright star|small boat|silver bell|glass ball|"
    "red feather|wooden box|rusty crown|blue stone|broken clock|long letter",
    "|",
)
LOSSES = words("hat|drum|ring|kite|scarf|favorite cup|blue ball|shoes|voice|silver whistle|map|lamp", "|")
FEARS = words(
    "the dark|deep water|thunder|high places|the big city|strangers|the first day of school|the old bridge", "|"
)
SKILLS = words("to sing|to swim|to dance|to read|to fly a kite|to bake bread|to play the drum|to climb|to paint", "|")
FEATS = words("a boat|a bridge|a swing|a tree house|a kite|a garden wall|a snow house|a tower of stones", "|")
CONTESTS = words("the great race|the baking contest|the singing contest|the kite festival|the summer games", "|")

OPENINGS = (
    "Once upon a time there was {a_trait} {animal} named {name}.|There once lived {a_trait} {animal} called {name}.|"
    "{name} was {a_trait} {animal}.|Near the {spot} lived {a_trait} {animal} named {name}.|"
    "Long ago, by the {spot}, there lived {a_trait} {animal} called {name}."
)
HABITS = (
    "{name} lived near the {spot}.|{He} loved the {spot} more than any other place.|"
    "Every morning {he} walked to the {spot}.|"
    "Nobody knew the {spot} better than {name}.|{He} had only one friend, {friend} the {other}."
)
HELP = (
    "{name} did not know what to do, so {he} asked {friend} the {other}.|{He} ran to {his} friend {friend}, {a_other}.|"
    '"What shall I do?" asked {name}. {friend} the {other} came to look.|'
    "{friend}, {a_other}, heard it and came at once."
)
CHEER = (
    '"We can do it together," said {friend}.|"Let us try," said {friend}.|'
    '{friend} smiled. "Do not be afraid," said the {other}.|'
    '"Two are better than one," said {friend}.|"I know a way," said {friend}.'
)
WORK = (
    "They worked all day until the sun went down.|They tried three times, and the third time it worked.|"
    "It was hard, but they did not stop.|The rain came, but they sang and went on.|"
    "They walked for hours and told each other jokes.|"
    "First nothing happened. Then {friend} had an idea."
)
ENDINGS = (
    "After that, {name} was never alone again.|From that day on, {name} and {friend} were best friends.|"
    "And {name} the {animal} never forgot what {friend} had taught {him}.|"
    "That night, {name} slept well and dreamed of the {spot}.|"
    "And if you walk by the {spot} today, you can still hear them laugh."
)
PLOTS = tuple(
    tuple(tuple(options.split("|")) for options in plot)
    for plot in (
        (
            OPENINGS,
            HABITS,
            "One day {name} found {a_find} by the {spot}.|One night {he} saw {a_find} in the {spot}.|"
            "But one day there was {a_find} in the {spot}.|One evening {he} stumbled over {a_find}.",
            HELP,
            '{friend} looked at the {find} and smiled. "Do not be afraid," said the {other}.|'
            '"That {find} is very old," said {friend}.|'
            '"We must find out whose it is," said {friend}.|"I have seen such {a_find} before," said {friend}.',
            WORK,
            "In the end the {find} made everyone in the {spot} happy.|"
            "The {find} belonged to an old king, who thanked them with a feast.|"
            "When {name} touched the {find}, it began to shine.|They gave the {find} back, and everyone cheered.",
            ENDINGS,
        ),
        (
            OPENINGS,
            HABITS,
            "One day {name} lost {his} {loss}.|One morning the {loss} of {name} was gone.|"
            "When {he} woke up, {his} {loss} was not there.",
            "{He} looked under every stone of the {spot}.|{He} searched the {spot} from one end to the other.|"
            "{He} cried so loud that the birds flew up.",
            HELP,
            CHEER,
            "They followed the tracks in the sand.|They asked everyone they met.|"
            "They looked behind the trees and in the grass.",
            "At last they saw a small mouse that slept beside the {loss}.|"
            "In the evening they found the {loss} in the nest of a bird.|"
            "The wind had carried the {loss} to the other side of the {spot}.",
            "{name} laughed and thanked {friend}.|{name} was so happy that {he} danced.",
            ENDINGS,
        ),
        (
            OPENINGS,
            "{name} was afraid of {fear}.|There was one thing that {name} feared: {fear}.|"
            "Everyone knew that {name} was afraid of {fear}.",
            "One night {friend} the {other} called for help from the {spot}.|"
            "One day {friend}, {a_other}, was in trouble at the {spot}.|"
            "Then a storm came, and {friend} the {other} was alone in the {spot}.",
            "{name} had to think of {fear} and trembled.|There was no time, and nobody else was near.|"
            "{He} wanted to hide, but {he} could not leave {friend} alone.",
            "{He} took a deep breath and ran.|Step by step {he} went on.|"
            "{He} closed {his} eyes, counted to three and went.",
            "{He} reached {friend} and took {him2} home.|Soon {friend} was safe.|Together they found the way back.",
            '"You are the bravest {animal} I know," said {friend}.|"You saved me," said {friend}.',
            "From that day on, {name} was no longer afraid of {fear}.|"
            "{name} was still a little afraid of {fear}, but {he} knew what {he} could do.",
        ),
        (
            OPENINGS,
            "{He} wanted to learn {skill}.|All that {he} wanted was {skill}.|{name} had a dream: {skill}.",
            "The others laughed at {him}.|Nobody thought that {animal_a} could do that.|"
            "{He} tried it alone and fell on {his} nose.",
            "Only {friend} the {other} did not laugh.|Then {friend}, {a_other}, sat down beside {him}.",
            '"Begin with something small," said {friend}.|"Try it once every day," said {friend}.|'
            '"I could not do it at first, too," said {friend}.',
            "So {name} practiced in the {spot}, day after day.|{name} practiced in the morning and at night.",
            "Spring came, then summer.|Weeks went by.|Some days were good and some were bad.",
            "Then one day it worked.|And one evening everybody stopped to look.|And suddenly it was easy.",
            ENDINGS,
        ),
        (
            OPENINGS,
            HABITS,
            "One day {he} decided to build {feat}.|{He} and {friend} the {other} wanted to build {feat}.|"
            "{friend} the {other} had an idea: they would build {feat}.",
            "{friend} brought wood, and {name} brought nails.|They made a plan and drew it in the sand.|"
            "They looked for everything they needed in the {spot}.",
            "But in the night the wind broke it.|Then it fell down with a loud noise.|But nothing fit together.",
            "{name} wanted to give up.|{name} sat down and sighed.",
            CHEER,
            WORK,
            "When it was done, all of the {spot} came to see it.|It was not perfect, but it was theirs.|"
            "They ate cake beside it and were proud.",
            ENDINGS,
        ),
        (
            OPENINGS,
            "It was time for {contest} at the {spot}.|One summer everybody talked about {contest}.",
            "{name} wanted to win.|{He} had never dared to take part.|This time {name} put {his} name on the list.",
            "On the day of {contest}, {friend} the {other} hurt {his2} foot.|"
            "On the way {he} met {friend}, {a_other}, who sat in the grass and cried.",
            "{name} stopped, although the others went on.|{name} looked at the others, and then at {friend}.",
            '"I will help you first," said {name}.|"You are more important," said {name}, and carried {friend} home.',
            "So {name} came last.|When {name} arrived, it was all over.",
            "But the crowd cheered louder than ever.|But {friend} had told everyone what {name} had done.",
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
    "Write a short story about {}.|Write a short story about {}.|Tell me a story about {}.|Tell a story about {}.|"
    "A story about {}, please.|Write a story about {}.|Make up a story about {}.|I want to hear a story about {}.||"
    "Could you tell a story about {}?|Please write a little story about {}.|Story time! Tell me about {}.",
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
