"""Questions about facts, answered again by a reader of the wordings, which knows nothing of what was drawn."""

import re

import pytest
from spoken import ways
from tiny_model.corpus.lexicon import FIRST_NAMES
from tiny_model.corpus.relations import PEOPLE, PLACES, THINGS, Relation
from tiny_model.corpus.tasks_facts import CHECKS, HELD_CHECKS, MALE, UNKNOWN, Fact, facts
from tiny_model.corpus.words import Draw, Messages, Split

FIELDS = {"{s}": r"(?P<s>[^.,?]+?)", "{v}": r"(?P<v>[^.,?]+?)", "{a}": r"an? (?P<v>[^.,?]+?)", "{k}": r"an? [a-z]+", "{n}": "[a-z]+",
          "{he}": r"(?:he|she|it)", "{his}": r"(?:his|her|its)"}  # fmt: skip
RELATIONS = (*PEOPLE, *THINGS, *PLACES)


def patterns(templates: tuple[str, ...]) -> list[re.Pattern[str]]:
    """What every way of every template matches; a sentence may begin with a capital that the field does not have."""
    found = []
    for template in (text for each in templates for text in ways(each)):
        made = re.escape(template).replace(r"\\{", "{").replace(r"\\}", "}").replace(r"\{", "{").replace(r"\}", "}")
        for field, pattern in FIELDS.items():
            made = made.replace(field, pattern)
        found.append(re.compile(made))
    return found


TOLD = {index: patterns(relation.told) for index, relation in enumerate(RELATIONS)}
VALUE = {index: patterns((*relation.ask, *relation.held_ask)) for index, relation in enumerate(RELATIONS)}
PRONOUN = {index: patterns(relation.ask_pronoun) for index, relation in enumerate(RELATIONS)}
OWNER = {index: patterns(relation.ask_owner) for index, relation in enumerate(RELATIONS)}
WHETHER = {index: patterns(relation.ask_whether) for index, relation in enumerate(RELATIONS)}


def read(text: str, table: dict[int, list[re.Pattern[str]]]) -> list[tuple[int, dict[str, str]]]:
    """The relations that the text may be about, with what stands in the fields."""
    found = []
    for index, of_relation in table.items():
        for pattern in of_relation:
            if match := pattern.fullmatch(text):
                found.append((index, match.groupdict()))
    return found


def parts(messages: Messages) -> tuple[str, list[tuple[str, str]]]:
    """The story and the turns."""
    if messages[0][0] == "system":
        turns = messages[1:]
        return messages[0][1], list(zip((c for _, c in turns[::2]), (c for _, c in turns[1::2]), strict=True))
    whole = messages[0][1]
    story = whole[: whole.rindex(". ") + 1] if "\n" not in whole else whole.rsplit("\n", 1)[0]
    asked = [whole[len(story) :].strip(), *(c for _, c in messages[2::2])]
    return story, list(zip(asked, (c for _, c in messages[1::2]), strict=True))


def known_facts(story: str) -> dict[tuple[int, str], set[str]]:
    """(relation, subject) to the values that the story may give; sentences of an opening are not of any relation."""
    found: dict[tuple[int, str], set[str]] = {}
    for sentence in re.split(r"(?<=\.) ?", re.sub(r"^[^.]*?: |^Answer from these facts\. ", "", story)):
        for index, groups in read(sentence, TOLD):
            if RELATIONS[index] not in PLACES and re.match(r"in the ", groups["v"]):
                continue  # where it is, read as what it is
            found.setdefault((index, groups["s"]), set()).add(groups["v"])
    return found


@pytest.mark.parametrize("split", ["train", "test"])
def test_answers_follow_from_the_facts(split: Split) -> None:
    draw, kinds = Draw(1, split), dict.fromkeys(("whether", "owner", "pronoun", "value", "unknown"), 0)
    for _ in range(400):
        messages = facts(draw)
        explained = any(role == "assistant" and re.search(r"\. (?:yes|no)$", content) for role, content in messages)
        if messages[0][0] == "text" or explained:
            continue
        story, turns = parts(messages)
        known, last = known_facts(story), None
        for asked, said in turns:
            ask = asked.split(": ")[-1] if ": " in asked else asked
            if hits := [hit for hit in read(ask, WHETHER) if (hit[0], hit[1]["s"]) in known]:
                assert said in [
                    ("yes" if groups["v"] in known[index, groups["s"]] else "no") for index, groups in hits
                ], (ask, story)
                kinds["whether"] += 1
                last = hits[0][1]["s"]
            elif owners := {
                s
                for (of, s), values in known.items()
                for at, groups in read(ask, OWNER)
                if of == at and groups["v"] in values
            }:
                assert said in owners, (ask, story)
                kinds["owner"] += 1
                last = said
            elif (hits := read(ask, PRONOUN)) and last is not None:
                assert any(said in known.get((index, last), ()) for index, _ in hits), (ask, last, story)
                kinds["pronoun"] += 1
            else:
                hits = read(ask, VALUE)
                assert hits, ask
                if said == UNKNOWN:
                    assert any((index, groups["s"]) not in known for index, groups in hits), (ask, story)
                else:
                    assert any(said in known.get((index, groups["s"]), ()) for index, groups in hits), (
                        ask,
                        said,
                        story,
                    )
                kinds["unknown" if said == UNKNOWN else "value"] += 1
                subjects = {subject for _, subject in known}
                last = next(groups["s"] for _, groups in hits if groups["s"] in subjects)
    assert min(kinds.values()) > 30, kinds


def test_an_explained_answer_quotes_the_story_and_is_no_for_half() -> None:
    draw, said = Draw(5), []
    checks = patterns((*CHECKS, *HELD_CHECKS))
    assert len(checks) > 4
    for _ in range(1500):
        messages = facts(draw)
        for role, content in messages:
            if role == "assistant" and (match := re.fullmatch(r"(.+\.) (yes|no)", content)):
                assert match[1] in messages[0][1]
                said.append(match[2])
    assert len(said) > 300
    assert 0.4 < said.count("no") / len(said) < 0.6


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.told[0])
def test_a_relation_is_told_and_asked_for_in_many_ways(relation: Relation) -> None:
    assert len({text for each in relation.told for text in ways(each)}) >= 5
    assert len({text for each in relation.ask for text in ways(each)}) >= 4
    assert len(relation.held_ask) == 2
    slots = {"s": "Ada", "v": "blue", "a": "a blue", "k": "a cat", "n": "cat", "he": "she", "his": "her"}
    every = (*relation.told, *relation.ask, *relation.ask_pronoun, *relation.ask_owner, *relation.ask_whether)
    assert all("{" not in Fact(relation, slots).fill(text) for each in every for text in ways(each))


def test_no_told_sentence_is_of_two_relations() -> None:
    draw = Draw(7)
    for _ in range(2000):
        index = draw.number(0, len(RELATIONS) - 1)
        relation, value = RELATIONS[index], RELATIONS[index].value(draw)
        slots = {
            "s": draw.first_name(),
            "v": value,
            "a": f"a {value}",
            "k": "a cat",
            "n": "cat",
            "he": "he",
            "his": "his",
        }
        told = Fact(relation, slots).fill(draw.spoken(draw.pick(relation.told)))
        family = next(kind for kind in (PEOPLE, THINGS, PLACES) if relation in kind)
        hits = [(RELATIONS[of], groups["v"]) for of, groups in read(told, TOLD) if groups["s"] == slots["s"]]
        assert {of for of, said in hits if of in family and said == value} == {relation}, told


def test_the_names_of_men_are_names_and_some_are_not_theirs() -> None:
    assert len(MALE & set(FIRST_NAMES)) > 100
    assert not MALE & {"Ada", "Andrea", "Mina", "Sofia", "Wei", "Mei"}


def test_the_documented_prompt_is_trained() -> None:
    draw = Draw(2)
    asked = [messages[0][1] for messages in (facts(draw) for _ in range(4000)) if messages[0][0] == "user"]
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
