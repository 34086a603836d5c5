"""Claims about people: what the sentences say, and nothing else, is judged true."""

import pytest
from tiny_model.corpus.tasks_claims import claimed, claims, claims_in_a_row, people
from tiny_model.corpus.words import Draw, Split


@pytest.mark.parametrize("kind", range(5))
def test_two_claims_of_a_kind_differ_and_begin_alike(kind: int) -> None:
    draw = Draw(1)
    for _ in range(300):
        true, wrong = claims(draw, "Ada", kind)
        assert true != wrong
        assert true.split()[:2] == wrong.split()[:2]


def test_half_of_the_claims_hold_and_wrong_ones_are_near_misses() -> None:
    draw, held, borrowed = Draw(2), 0, 0
    for _ in range(2000):
        given = people(draw, (2, 3))
        claim, fact, is_right = claimed(draw, given)
        told = [text for _, (text, _) in given]
        assert fact in told
        assert is_right == (claim in told)
        held += is_right
        borrowed += not is_right and any(claim.split(" ", 1)[1] == text.split(" ", 1)[1] for text in told)
    assert 900 < held < 1150
    assert borrowed > 350


@pytest.mark.parametrize("split", ["train", "test"])
def test_claims_in_a_row_are_answered_by_the_sentences(split: Split) -> None:
    draw, kinds = Draw(3, split), set()
    for _ in range(600):
        messages = claims_in_a_row(draw)
        first, *others = [content for role, content in messages if role != "assistant"]
        answers = [content for role, content in messages if role == "assistant"]
        if "\n" in answers[0]:
            lines = [line for line in first.split("\n") if line.endswith(".") and "yes or no" not in line]
            said = answers[0].split("\n")
            asked = lines[-len(said) :]
            assert [line in first.replace("\n".join(asked), "") for line in asked] == [word == "yes" for word in said]
            kinds.add("list")
            continue
        if messages[0][0] == "system":
            facts, asks = first, others
        else:
            facts, asks = first.rsplit("\n", 1)[0], [first.rsplit("\n", 1)[1], *others]
        for ask, answer in zip(asks, answers, strict=True):
            *fact, word = answer.rsplit(". ", 1)
            told = [
                text.removesuffix(".").split(". ")[-1]
                for text in facts.replace("Explain, then answer. ", "").split(". ")
            ]
            assert (word == "yes") == any(text in ask or text[:1].upper() + text[1:] in ask for text in told), (
                ask,
                facts,
            )
            assert not fact or fact[0] in facts
            kinds.add("explained" if fact else "plain")
    assert kinds == {"list", "plain", "explained"}
