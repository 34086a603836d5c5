"""Corpus tasks: small talk, what was told in earlier turns, tips and lists, and exact work on words (copy, spell, count)."""

from collections.abc import Callable

from tiny_model.corpus.corpus_data import blocks_of, sections_of
from tiny_model.corpus.lexicon import (
    ANIMALS,
    CITIES,
    COLORS,
    DAYS,
    DISHES,
    FIRST_NAMES,
    HOBBIES,
    INGREDIENTS,
    ITEMS,
    JOBS,
    MONTHS,
    words,
)
from tiny_model.corpus.phrases import phrases, say, say_wording
from tiny_model.corpus.words import Draw, Messages, article, plural, sentence

TEMPLATES = sections_of("tasks_chat")

MORE = blocks_of("chat")
NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}
TIPS = {
    topic: words(text, "|")
    for topic, text in {
        "sleeping": TEMPLATES["TIPS.sleeping"],
        "studying": TEMPLATES["TIPS.studying"],
        "cooking": TEMPLATES["TIPS.cooking"],
        "traveling": TEMPLATES["TIPS.traveling"],
        "saving money": TEMPLATES["TIPS.saving money"],
        "staying healthy": TEMPLATES["TIPS.staying healthy"],
        "writing": TEMPLATES["TIPS.writing"],
        "gardening": TEMPLATES["TIPS.gardening"],
        "running": TEMPLATES["TIPS.running"],
        "learning a language": TEMPLATES["TIPS.learning a language"],
        "making friends": TEMPLATES["TIPS.making friends"],
        "public speaking": TEMPLATES["TIPS.public speaking"],
        "working from home": TEMPLATES["TIPS.working from home"],
        "caring for a pet": TEMPLATES["TIPS.caring for a pet"],
        "painting": TEMPLATES["TIPS.painting"],
    }.items()
}
LISTS = {
    "colors": COLORS,
    "animals": ANIMALS,
    "cities": CITIES,
    "jobs": JOBS,
    "hobbies": HOBBIES,
    "names": FIRST_NAMES,
    "ingredients": INGREDIENTS,
    "things in a shop": ITEMS,
    "dishes": DISHES,
    "months": MONTHS,
    "days of the week": DAYS,
    "fruits": words("apple banana cherry grape lemon mango orange peach pear plum"),
    "vegetables": words("bean cabbage carrot leek onion pea potato pumpkin spinach tomato"),
    "instruments": words("cello drum flute guitar harp piano trumpet violin"),
    "sports": words("boxing football golf hockey rowing rugby sailing tennis volleyball"),
    "planets": words("Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune"),
    "countries": words("Brazil Canada Chile Egypt France Ghana India Italy Japan Kenya Mexico Norway Peru Spain"),
    "tools": words("axe drill hammer ladder pliers rake saw screwdriver shovel"),
    "trees": words("ash birch cedar elm fir maple oak palm pine willow"),
    "drinks": words("cider cocoa coffee juice lemonade milk tea water"),
}
LIST_ASKS = phrases(
    TEMPLATES["LIST_ASKS"],
    MORE["list"],
)
TIP_ASKS = phrases(
    TEMPLATES["TIP_ASKS"],
    MORE["tip"],
)
GREETINGS = phrases(
    TEMPLATES["GREETINGS"],
    MORE["greetings"],
)
WHO = phrases(TEMPLATES['WHO'], MORE["who"])  # fmt: skip
WHAT = phrases(
    TEMPLATES["WHAT"],
    MORE["what"],
)
THANKS = phrases(
    TEMPLATES["THANKS"],
    MORE["thanks"],
)
BYES = phrases("Goodbye!|Bye|See you!|Good night|That is all, bye.||Bye bye!|Good night, see you.", MORE["byes"])
WELCOME = "You are welcome!"
I_AM = "Hello! I am a tiny language model. I read short texts and fill in forms."
I_CAN = TEMPLATES["I_CAN"]
TELL = {
    fact: phrases(text, MORE[f"tell {fact}"])
    for fact, text in {
        "name": TEMPLATES["TELL.name"],
        "like": "I like {}.|I love {}.|I really like {}.||What I like is {}.",
        "home": "I live in {}.|I am from {}.|My home is {}.||I come from {}.",
        "job": "I work as {}.|I am {}.|My job is to be {}.||By trade I am {}.",
        "age": "I am {} years old.|My age is {}.|I turned {} today.||I was born {} years ago.",
        "pet": TEMPLATES["TELL.pet"],
        "color": "My favorite color is {}.|The color I like best is {}.||Of all colors, I like {} most.",
    }.items()
}
RECALL = {
    fact: (phrases(asks, MORE[f"recall {fact}"]), answer)
    for fact, asks, answer in (
        ("name", "What is my name?|Do you remember my name?|Who am I?||Can you tell me my name?", "Your name is {}."),
        ("like", "What do I like?|Do you remember what I like?||Tell me what I like.", "You like {}."),
        ("home", "Where do I live?|Where am I from?||Do you know where I live?", "You live in {}."),
        ("job", "What is my job?|What do I do for a living?||Do you remember my job?", "You are {}."),
        ("age", "How old am I?|What is my age?||Do you know how old I am?", "You are {} years old."),
        ("pet", "What is my pet called?|What is the name of my pet?||Do you know the name of my pet?", "Your pet is called {}."),
        ("color", "What is my favorite color?|Which color do I like best?||Is there a color I like?", "Your favorite color is {}."),
    )
}  # fmt: skip
NOTED = ("I will remember that.", "Good to know!", "Thank you for telling me.", "Got it.")


def told(draw: Draw) -> Messages:
    """Someone tells about themselves over one or more turns, and asks for it later."""
    values = {
        "name": draw.first_name(),
        "like": draw.pick((draw.city(), draw.pick(COLORS), plural(draw.item(0)), draw.pick(HOBBIES))),
        "home": draw.city(),
        "job": article(draw.pick(JOBS)),
        "age": str(draw.number(16, 80)),
        "pet": draw.first_name(),
        "color": draw.pick(COLORS),
    }
    name = values["name"]
    facts = ["name", *draw.sample(tuple(values)[1:], draw.pick((0, 1, 1, 2, 3)))]
    if draw.chance(0.35):
        facts, told_text = ["name", "like"], draw.pick(("My name is {} and I like {}.", "Hi, I am {}. I like {}."))
        messages = [("user", told_text.format(name, values["like"])), ("assistant", f"Nice to meet you, {name}!")]
    elif draw.chance(0.5):
        text = " ".join(say(draw, TELL[fact]).format(values[fact]) for fact in facts)
        messages = [("user", text), ("assistant", f"Nice to meet you, {name}!")]
    else:
        messages = []
        for fact in facts:
            reply = f"Nice to meet you, {name}!" if fact == "name" else draw.pick(NOTED)
            messages += [("user", say(draw, TELL[fact]).format(values[fact])), ("assistant", reply)]
    if draw.chance(0.2):
        messages += small_talk(draw)
    for fact in draw.sample(facts, draw.number(1, len(facts))):
        wordings, answer = RECALL[fact]
        messages += [("user", say_wording(draw, wordings)), ("assistant", answer.format(values[fact]))]
    return messages


def small_talk(draw: Draw) -> Messages:
    """One to three turns of greetings, thanks, and what the model is."""
    turns: list[tuple[str, str]] = []
    for kind in sorted(draw.sample(range(5), draw.pick((1, 1, 2, 3)))):
        if kind == 0:
            turns.append((say_wording(draw, GREETINGS), I_AM if not turns else "Hello!"))
        elif kind == 1:
            turns.append((say_wording(draw, WHO), I_AM))
        elif kind == 2:
            turns.append((say_wording(draw, WHAT), I_CAN))
        elif kind == 3:
            turns.append((say_wording(draw, THANKS), WELCOME))
        else:
            turns.append((say_wording(draw, BYES), "Goodbye!"))
    return [turn for ask, answer in turns for turn in (("user", ask), ("assistant", answer))]


def tips(draw: Draw) -> Messages:
    """One tip, or a numbered list of tips in a fixed order, which is easy to continue without a repetition."""
    topic, count = draw.pick(tuple(TIPS)), draw.pick((1, 1, 2, 3, 3, 3, 4, 5))
    chosen = draw.subset(TIPS[topic], count)
    if count == 1:
        what, answer = draw.pick(("a tip", "one tip")), f"{sentence(chosen[0])}."
    else:
        what = f"{draw.pick((NUMBERS[count], str(count)))} tips"
        answer = "\n".join(f"{index}. {sentence(tip)}." for index, tip in enumerate(chosen, 1))
    return [("user", sentence(say_wording(draw, TIP_ASKS).format(what, topic))), ("assistant", answer)]


def listed(draw: Draw) -> Messages:
    """Some members of a kind: in a line, numbered, or as a JSON list."""
    what, count = draw.pick(tuple(LISTS)), draw.number(2, 6)
    chosen = draw.subset(LISTS[what], count)
    ask = say_wording(draw, LIST_ASKS).format(draw.pick((NUMBERS[count], NUMBERS[count], str(count))), what)
    form = draw.random.random()
    if form < 0.6:
        return [("user", ask), ("assistant", ", ".join(chosen))]
    if form < 0.8:
        lines = "\n".join(f"{index}. {member}" for index, member in enumerate(chosen, 1))
        return [("user", ask + draw.pick((" Use a numbered list.", " Number them."))), ("assistant", lines)]
    if form < 0.9:
        quoted = ", ".join(f'"{member}"' for member in chosen)
        return [("user", f"{ask} Answer as a JSON list."), ("assistant", f"[{quoted}]")]
    return [("user", f"{ask} Use bullets."), ("assistant", "\n".join(f"- {member}" for member in chosen))]


def some_words(draw: Draw, low: int, high: int) -> list[str]:
    """Words of any kind: random, capitalised, numbers, goods, places."""
    return [
        draw.pick((draw.made_up, draw.made_up, draw.capital, draw.first_name, lambda: str(draw.number(0, 9999)),
                   lambda: draw.pick(ITEMS), draw.city))()
        for _ in range(draw.number(low, high))
    ]  # fmt: skip


COPY_ASKS = phrases(TEMPLATES['COPY_ASKS'], MORE["copy"])  # fmt: skip
_WORK: tuple[tuple[str, str, Callable[[list[str]], str]], ...] = (
    ("last", "What is the last word of: {}|Last word: {}||Name the last word. {}", lambda w: w[-1]),
    ("first", "What is the first word of: {}|First word: {}||Name the first word. {}", lambda w: w[0]),
    ("count", "How many words are there? {}|Count the words: {}||Number of words in: {}", lambda w: str(len(w))),
    ("reverse", "Reverse the order of the words: {}|Say these words backwards: {}||Reverse: {}", lambda w: " ".join(w[::-1])),
    ("upper", "Write in capital letters: {}|Upper case: {}||Make it upper case: {}", lambda w: " ".join(w).upper()),
    ("lower", "Write in small letters: {}|Lower case: {}||Make it lower case: {}", lambda w: " ".join(w).lower()),
    ("commas", "Put commas between the words: {}|Separate by commas: {}||Join with commas: {}", lambda w: ", ".join(w)),
    ("bullets", "Write one word per line: {}|One word per line: {}||Put each word on its own line. {}", "\n".join),
    ("json", "Write these words as a JSON list: {}|JSON list of: {}||Make a JSON list of the words {}",
     lambda w: "[" + ", ".join(f'"{x}"' for x in w) + "]"),
)  # fmt: skip
WORK = {kind: (phrases(asks, MORE[f"work {kind}"]), done) for kind, asks, done in _WORK}
SPELL_ASKS = phrases(
    TEMPLATES["SPELL_ASKS"],
    MORE["spell"],
)
LETTER_ASKS = (
    (
        phrases(
            "What is the first letter of {}?|First letter of {}?||Which letter does {} start with?",
            MORE["first letter"],
        ),
        0,
    ),
    (
        phrases(
            "What is the last letter of {}?|Last letter of {}?||Which letter does {} end with?", MORE["last letter"]
        ),
        -1,
    ),
)


def copy(draw: Draw) -> Messages:
    """A text again, letter for letter."""
    text = " ".join(some_words(draw, 1, 10))
    return [("user", say_wording(draw, COPY_ASKS).format(text)), ("assistant", text)]


def word_work(draw: Draw) -> Messages:
    """Exact work on a few words or on the letters of one."""
    chance = draw.random.random()
    if chance < 0.25:
        word = draw.pick((draw.made_up, draw.capital, lambda: draw.pick(ITEMS), draw.first_name))()
        return [("user", say_wording(draw, SPELL_ASKS).format(word)), ("assistant", " ".join(word.replace(" ", "")))]
    if chance < 0.32:
        word, (wordings, index) = draw.made_up(), draw.pick(LETTER_ASKS)
        return [("user", say_wording(draw, wordings).format(word)), ("assistant", word[index])]
    kind = draw.pick(tuple(WORK))
    wordings, done = WORK[kind]
    chosen = [draw.pick((draw.made_up, lambda: draw.pick(ITEMS), draw.capital))() for _ in range(draw.number(2, 5))]
    chosen = [word.replace(" ", "") for word in chosen]
    if kind == "reverse":
        chosen = chosen[:3]
    return [("user", say_wording(draw, wordings).format(" ".join(chosen))), ("assistant", done(chosen))]


VERBS = (("buys", "bought", "buy"), ("sells", "sold", "sell"), ("finds", "found", "find"), ("sees", "saw", "see"))


def rewriting(draw: Draw) -> Messages:
    """A sentence about someone: written from notes, or again with one thing changed."""
    name, job, city = draw.person(), draw.pick(JOBS), draw.city()
    chance = draw.random.random()
    if chance < 0.35:
        ask = draw.wording(
            ("Write one sentence about {}, {} from {}.", "Make a sentence about {}, {} from {}.", "One sentence about {}, {} from {}."),
            ("Write a sentence on {}, {} from {}.",),
        )  # fmt: skip
        answer = draw.pick(
            (f"{name} is {article(job)} who lives in {city}.", f"In {city}, everyone knows {name} the {job}.")
        )
        return [("user", ask.format(name, article(job), city)), ("assistant", answer)]
    other, thing, verb = draw.first_name(), draw.item(), draw.pick(VERBS)
    line = f"{name} {verb[0]} {article(thing)} in {city}."
    if chance < 0.6:
        ask = draw.wording(
            ("Replace {} by {}: {}", "Change {} to {}. {}", "Write {} as {}: {}"), ("Put {1} for {0}: {2}",)
        )
        return [("user", ask.format(name, other, line)), ("assistant", other + line.removeprefix(name))]
    if chance < 0.85:
        ask = draw.wording(
            ("Put into the past: {}", "Write in the past tense: {}", "Past tense: {}"), ("Tell it as the past: {}",)
        )
        return [
            ("user", ask.format(line)),
            ("assistant", f"{name} {verb[1]} {article(thing)} in {city}."),
        ]
    ask = draw.wording(
        ("Make it a question: {}", "Turn into a question: {}", "Write as a question: {}"), ("Ask it: {}",)
    )
    return [("user", ask.format(line)), ("assistant", f"Does {name} {verb[2]} {article(thing)} in {city}?")]


def chat(draw: Draw) -> Messages:
    """Any of the tasks of this module, by share."""
    return draw.pick(KINDS)(draw)


KINDS = (
    told,
    told,
    told,
    small_talk,
    tips,
    tips,
    listed,
    listed,
    copy,
    copy,
    copy,
    copy,
    word_work,
    word_work,
    word_work,
    rewriting,
)
