"""Questions about facts, answered again by a reader with patterns of its own."""

import re

import pytest

from rtlang.model.embedded.tasks_facts import UNKNOWN, facts
from rtlang.model.embedded.words import Draw, Split

PERSON = r"(?P<s>\S+)"
THING = r"(?P<s>[^.?]+?)"
# Relation: how it is told, then how its value, its owner and its truth are asked for.
READERS: dict[str, tuple[str, str, str, str]] = {
    "city": (r"(?P<s>\S+) lives in (?P<v>.+)|The home of (?P<s2>\S+) is (?P<v2>.+)", r"Where does \S+ live|city does \S+ live",
             r"Who lives in (.+)", r"Does (\S+) live in (.+)"),
    "job": (r"(?P<s>\S+) (?:is|works as) an? (?P<v>.+)", r"job|work as", r"Who (?:is|works as) an? (.+)", r"Is (\S+) an? (.+)"),
    "pet": (r"(?P<s>\S+) has an? .+ called (?P<v>.+)", r"What is (?:the|his|her) \S+ (?:of \S+ )?called|name of the \S+ of (?!.*river)",
            r"Who has an? .+ called (.+)", r"Does (\S+) have an? .+ called (.+)"),
    "age": (r"(?P<s>\S+) is (?P<v>\d+) years old|The age of (?P<s2>\S+) is (?P<v2>\d+)", r"How old|What is the age|What age",
            r"Who is (\d+) years old", r"Is (\S+) (\d+) years old"),
    "hobby": (r"(?P<s>\S+) likes (?P<v>.+)|The hobby of (?P<s2>\S+) is (?P<v2>.+)", r"What does \S+ like|hobby", r"Who likes (.+)",
              r"Does (\S+) like (.+)"),
    "favorite": (r"The favorite color of (?P<s>\S+) is (?P<v>.+)", r"is (?:the|his|her) favorite color|is the favorite of",
                 r"Whose favorite color is (.+)", r"Is (?P<v>.+) the favorite color of (?P<s>\S+)"),
    "work": (r"(?P<s>\S+) works at the (?P<v>.+)", r"Where does \S+ work|which place does", r"Who works at the (.+)",
             r"Does (\S+) work at the (.+)"),
    "friend": (r"The best friend of (?P<s>\S+) is (?P<v>.+)", r"(?:Who|What) is (?:the|his|her) best friend", r"Whose best friend is (.+)",
               r"Is (?P<v>.+) the best friend of (?P<s>\S+)"),
    "room": (r"(?P<s>\S+) is in room (?P<v>.+)", r"(?:which|Which|What) room", r"Who is in room (.+)", r"Is (\S+) in room (.+)"),
    "born": (r"(?P<s>\S+) was born on (?P<v>.+)", r"When was|which day was", r"Who was born on (.+)", r"Was (\S+) born on (.+)"),
}  # fmt: skip


def read(story: str) -> dict[tuple[str, str], str]:
    """(relation, subject) to value."""
    found = {}
    for sentence in re.split(r"(?<=\.) ?", story):
        for relation, (told, *_) in READERS.items():
            match = re.fullmatch(f"(?:{told})\\.", sentence)
            if match:
                groups = match.groupdict()
                found[relation, groups["s"] or groups["s2"]] = groups["v"] or groups["v2"]
                break
    return found


def parts(messages: list[tuple[str, str]]) -> tuple[str, list[tuple[str, str]]]:
    """The story and the turns."""
    if messages[0][0] == "system":
        turns = messages[1:]
        return messages[0][1], list(zip((c for _, c in turns[::2]), (c for _, c in turns[1::2]), strict=True))
    whole = messages[0][1]
    story = whole[: whole.rindex(". ") + 1] if "\n" not in whole else whole.rsplit("\n", 1)[0]
    asked = [whole[len(story) :].strip().removeprefix("Question: "), *(c for _, c in messages[2::2])]
    return story, list(zip(asked, (c for _, c in messages[1::2]), strict=True))


@pytest.mark.parametrize("split", ["train", "test"])
def test_answers_about_people_follow_from_the_facts(split: Split) -> None:
    draw, num_checked, kinds = Draw(1, split), 0, set()
    for _ in range(2500):
        messages = facts(draw)
        if messages[0][0] == "text":
            continue
        story, turns = parts(messages)
        story = re.sub(r"^(?:Read these facts: |Facts: |Read: |Answer from these facts\. )", "", story)
        known = read(story)
        if len(known) != len(re.findall(r"\.(?: |$)", story)):
            continue  # about things or places
        last = None
        for asked, said in turns:
            ask = asked.rstrip("?")
            named = [s for _, s in known if re.search(rf"(?:^|\s){re.escape(s)}(?:\s|$)", ask)]
            for relation, (_, value, owner, whether) in READERS.items():
                if match := re.fullmatch(whether, ask):
                    groups = match.groupdict() or dict(zip("sv", match.groups(), strict=True))
                    if groups["s"] not in [s for _, s in known] or said not in ("yes", "no"):
                        continue
                    assert (said == "yes") == (known.get((relation, groups["s"])) == groups["v"]), (asked, story)
                    kinds.add("whether")
                    last = groups["s"]
                elif match := re.fullmatch(owner, ask):
                    owners = [s for (of, s), v in known.items() if of == relation and v == match[1]]
                    assert owners == [said], (asked, story)
                    kinds.add("owner")
                    last = said
                elif re.search(value, ask) and (pronoun := re.search(r"\b(?:he|she|his|her)\b", ask)) is not None:
                    assert last is not None, (pronoun, asked)
                    assert known[relation, last] == said, (asked, story)
                    kinds.add("pronoun")
                elif re.search(value, ask) and named:
                    subjects = {subject for subject in named if known.get((relation, subject), UNKNOWN) == said}
                    assert subjects, (asked, said, story)
                    kinds.add("unknown" if said == UNKNOWN else "value")
                    last = named[0]
                else:
                    continue
                num_checked += 1
                break
    assert num_checked > 2500
    assert kinds == {"whether", "owner", "pronoun", "value", "unknown"}


def test_the_documented_prompt_is_trained() -> None:
    draw = Draw(2)
    asked = [messages[0][1] for messages in (facts(draw) for _ in range(2000)) if messages[0][0] == "user"]
    claims = (
        r"\S+ lives in \w+\.",
        r"\S+ is a \w+\.",
        r"\S+ has a \w+ called \S+\.",
        r"\S+ is \d+ years old\.",
        r"\S+ likes \w+\.",
        r"The favorite color of \S+ is \w+\.",
    )
    for claim in claims:
        assert any(re.match(claim, ask) for ask in asked), claim
    for question in (r"What is the \w+ of \S+ called\?", r"Where does \S+ live\?"):
        assert any(re.fullmatch(rf"[^\n]+\.\n{question}", ask) for ask in asked), question


def test_held_wordings_stay_out_of_training() -> None:
    held = r"What age is|Which hobby does|Read these facts|Who does the|For what is"
    known, evaluation = Draw(3), Draw(3, "test")
    assert not [1 for _ in range(2000) if re.search(held, str(facts(known)))]
    assert [1 for _ in range(300) if re.search(held, str(facts(evaluation)))]


def test_the_same_seed_gives_the_same_conversation() -> None:
    first, again = Draw(4), Draw(4)
    assert [facts(first) for _ in range(30)] == [facts(again) for _ in range(30)]
