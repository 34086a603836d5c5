"""Corpus tasks: classification, stories and small talk.

Each task function takes a `Draw` and returns the messages of one conversation, ending with the answer; a single message
with the role `text` is a plain completion without chat framing.
"""

from rtlang.model.embedded.phrases import FINDS, INTENTS, LISTS, OPINIONS, SPOTS, TIPS, TOPICS, TRAITS
from rtlang.model.embedded.words import (
    ANIMALS,
    COLORS,
    FIRST_NAMES,
    JOBS,
    Draw,
    Messages,
    article,
    listing,
    plural,
    sentence,
)

NUMBER_WORDS = {2: "two", 3: "three", 4: "four"}


def opinion(draw: Draw, label: str) -> str:
    first, *rest = draw.sample(OPINIONS[label], draw.pick((1, 1, 2)))
    subject = draw.item()
    if label != "neutral" and draw.chance(0.15):
        other = draw.pick(OPINIONS["negative" if label == "positive" else "positive"])
        return f"{sentence(other)}, but in the end {first}."
    clauses = [first, *rest]
    return draw.pick(
        (
            f"I bought the {subject}. " + ". ".join(map(sentence, clauses)) + ".",
            ". ".join(map(sentence, clauses)) + ".",
            f"About the {subject}: " + " and ".join(clauses) + ".",
            f"The {subject}? " + sentence(" and ".join(clauses)) + "!",
            f"{sentence(first)}, said {draw.first_name()}.",
        )
    )


def sentiment(draw: Draw) -> Messages:
    labels = ["positive", "negative", "neutral"] if draw.chance(0.6) else ["positive", "negative"]
    label = draw.pick(labels)
    text = opinion(draw, label)
    if draw.chance(0.35):
        subject, verdict = draw.pick(
            (("Review", "Sentiment"), ("Text", "Sentiment"), ("Review", "Label"), ("Comment", "Mood"))
        )
        shots = []
        for shot_label in [*draw.sample(labels, draw.number(0, len(labels))), label]:
            shots.append((opinion(draw, shot_label), shot_label))
        gap = draw.pick(("\n", "\n\n"))
        return [("text", gap.join(f"{subject}: {shot}\n{verdict}: {shot_label}" for shot, shot_label in shots) + "\n")]
    options = listing(labels).replace(" and ", " or ")
    ask = draw.pick(
        (
            f"Is this review {options}?\n{text}",
            f"Classify the sentiment of the review as {options}.\nReview: {text}",
            f"{text}\nSentiment:",
            f"{text}\nIs that {options}?",
            f"What is the sentiment, {options}?\n{text}",
            f"Sentiment of: {text}",
            f"Review: {text}\nOne word: {options}?",
            f"Label the mood of this text ({', '.join(labels)}): {text}",
        )
    )
    return [("user", ask), ("assistant", label)]


def routing(draw: Draw) -> Messages:
    table = draw.pick((INTENTS, INTENTS, TOPICS))
    labels = draw.shuffled(tuple(table)) if draw.chance(0.6) else draw.sample(tuple(table), 3)
    label = draw.pick(labels)
    phrase, name, options = draw.pick(table[label]), draw.first_name(), ", ".join(labels)
    if table is TOPICS:
        text = draw.pick((f"{sentence(phrase)}.", f"{name} said that {phrase}.", f"Today {phrase}."))
        ask = draw.pick(
            (
                f"What is the topic: {options}?\n{text}",
                f"Text: {text}\nTopic ({options}):",
                f"Choose one topic of {options}.\n{text}",
            )
        )
    else:
        text = draw.pick(
            (
                f"Hi, {phrase}.",
                f"{sentence(phrase)}. Please help, thanks, {name}.",
                f"Hello, I am {name} and {phrase}.",
                f"{sentence(phrase)}!",
            )
        )
        ask = draw.pick(
            (
                f"Route this message to one of: {options}.\nMessage: {text}",
                f"Message: {text}\nWhich team should answer: {options}?",
                f"{text}\nIntent ({options}):",
                f"Classify the message as {options}.\n{text}",
                f"Choose the team: {options}.\n{text}",
            )
        )
        if draw.chance(0.15):
            return [("system", f"Route each message to one of: {options}."), ("user", text), ("assistant", label)]
    return [("user", ask), ("assistant", label)]


def story(draw: Draw) -> Messages:
    animal = draw.pick(ANIMALS) if draw.chance(0.7) else draw.pick(JOBS)
    name, friend, trait, spot, find = (
        draw.first_name(),
        draw.pick(FIRST_NAMES),
        draw.pick(TRAITS),
        draw.pick(SPOTS),
        draw.pick(FINDS),
    )
    other = draw.pick([option for option in ANIMALS if option != animal])
    he, his, him = draw.pick((("he", "his", "him"), ("she", "her", "her")))
    beginning = [
        draw.pick(
            (
                f"Once upon a time there was {article(trait)} {animal} named {name}.",
                f"There once lived {article(trait)} {animal} called {name}.",
                f"{name} was {article(trait)} {animal}.",
            )
        ),
        draw.pick(
            (
                f"{name} lived near the {spot}.",
                f"{sentence(he)} loved the {spot} more than any other place.",
                f"Every morning {he} walked to the {spot}.",
            )
        ),
        draw.pick(
            (
                f"One day {name} found {article(find)} by the {spot}.",
                f"One night {he} saw {article(find)} in the {spot}.",
                f"But one day there was {article(find)} in the {spot}.",
            )
        ),
        draw.pick(
            (
                f"{name} did not know what to do, so {he} asked {friend} the {other}.",
                f"{sentence(he)} ran to {his} friend {friend}, {article(other)}.",
                f'"What is this?" asked {name}. {friend} the {other} came to look.',
            )
        ),
        draw.pick(
            (
                '"We can do it together," said ' + f"{friend}.",
                f'{friend} looked at the {find.split()[-1]} and smiled. "Do not be afraid," said the {other}.',
                f'"Let us try," said {friend}.',
            )
        ),
        draw.pick(
            (
                "They worked all day until the sun went down.",
                "They tried three times, and the third time it worked.",
                "It was hard, but they did not stop.",
                "The rain came, but they sang and went on.",
            )
        ),
        draw.pick(
            (
                f"In the end the {find} made everyone in the {spot} happy.",
                f"After that, {name} was never alone again.",
                f"From that day on, {name} and {friend} were best friends.",
                f"And {name} the {animal} never forgot what {friend} had taught {him}.",
            )
        ),
    ]
    about = draw.pick(
        (
            article(animal),
            f"{article(trait)} {animal}",
            f"{article(animal)} named {name}",
            f"{name} the {animal}",
            f"{article(animal)} and {article(find)}",
            f"{name}",
            f"{article(animal)} near the {spot}",
            f"{article(trait)} {animal} called {name}",
        )
    )
    text = " ".join(beginning)
    if draw.chance(0.1):
        return [("text", text + "\n")]
    ask = draw.pick(
        (
            f"Write a short story about {about}.",
            f"Write a short story about {about}.",
            f"Tell me a story about {about}.",
            f"Tell a story about {about}.",
            f"A story about {about}, please.",
        )
    )
    messages = [("user", ask), ("assistant", text)]
    return (
        [("system", draw.pick(("You tell stories.", "You are a helpful assistant."))), *messages]
        if draw.chance(0.2)
        else messages
    )


def chat(draw: Draw) -> Messages:
    """Greetings, names that are told and asked for, tips, lists, slogans."""
    kind = draw.number(0, 5)
    if kind == 0:
        name, thing = draw.first_name(), draw.pick((draw.city(), draw.pick(COLORS), plural(draw.item(0))))
        told = draw.pick((f"My name is {name} and I like {thing}.", f"Hi, I am {name}. I like {thing}."))
        messages = [("user", told), ("assistant", f"Nice to meet you, {name}!")]
        turns = [("What is my name?", f"Your name is {name}."), ("What do I like?", f"You like {thing}.")]
        for ask, answer in draw.sample(turns, draw.number(1, 2)):
            messages += [("user", ask), ("assistant", answer)]
        return messages
    if kind == 1:
        topic = draw.pick(tuple(TIPS))
        count = draw.pick((1, 1, 2, 3))
        tips = draw.sample(TIPS[topic], count)
        if count == 1:
            return [
                (
                    "user",
                    draw.pick((f"Give me a tip about {topic}.", f"One tip for {topic}?", f"Give one tip for {topic}.")),
                ),
                ("assistant", f"{sentence(tips[0])}."),
            ]
        numbered = "\n".join(f"{index}. {sentence(tip)}." for index, tip in enumerate(tips, 1))
        return [
            ("user", f"Give me {NUMBER_WORDS[count]} tips {draw.pick(('about', 'for'))} {topic}."),
            ("assistant", numbered),
        ]
    if kind == 2:
        what, count = draw.pick(tuple(LISTS)), draw.number(2, 4)
        return [
            ("user", f"{draw.pick(('List', 'Name', 'Give me'))} {NUMBER_WORDS[count]} {what}."),
            ("assistant", ", ".join(draw.subset(LISTS[what], count))),
        ]
    if kind == 3:
        return draw.pick(
            (
                [
                    ("user", draw.pick(("Hello!", "Hi", "Hello, who are you?", "Who are you?"))),
                    ("assistant", "Hello! I am a tiny language model. I read short texts and fill in forms."),
                ],
                [
                    ("user", draw.pick(("What can you do?", "How can you help me?"))),
                    (
                        "assistant",
                        "I can extract data, describe characters, sort messages, solve small sums and tell stories.",
                    ),
                ],
                [("user", draw.pick(("Thank you!", "Thanks"))), ("assistant", "You are welcome!")],
            )
        )
    if kind == 4:
        words = " ".join(
            draw.pick(
                (draw.made_up(), draw.made_up().capitalize(), str(draw.number(0, 9999)), draw.item(0), draw.city())
            )
            for _ in range(draw.number(2, 10))
        )
        return [
            ("user", draw.pick((f"Repeat: {words}", f"Say this again: {words}", f"Copy the text.\n{words}"))),
            ("assistant", words),
        ]
    name, job, city = draw.person(), draw.pick(JOBS), draw.city()
    return [
        ("user", f"Write one sentence about {name}, {article(job)} from {city}."),
        (
            "assistant",
            draw.pick(
                (f"{name} is {article(job)} who lives in {city}.", f"In {city}, everyone knows {name} the {job}.")
            ),
        ),
    ]
