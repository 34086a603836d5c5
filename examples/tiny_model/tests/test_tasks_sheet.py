"""Character sheets: the answer copies what the prompt tells and makes up the rest to suit the role."""

import json

import pytest
from tiny_model.corpus.phrases import ANY_ROLE, ROLES
from tiny_model.corpus.tasks_sheet import EXTRA_FIELDS, SHEET_FIELDS, sheet
from tiny_model.corpus.words import Draw, Split


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_sheet_copies_what_the_prompt_tells_and_suits_the_role(split: Split) -> None:
    draw, keys = Draw(12, split), set()
    for _ in range(600):
        *_, (_, ask), (_, answer) = sheet(draw)
        record = json.loads(answer)
        keys.update(record)
        for key in ("name", "role"):
            assert key not in record or record[key] in ask
        assert "home" not in record or " from " not in ask or f" from {record['home']}" in ask
        role = next((role for role in ROLES if f" {role}" in ask), None)
        if role is not None and record.get("role", role) == role:
            traits, mottos = ROLES[role]
            assert {*record.get("traits", ())} <= {*traits}
            assert record.get("motto", mottos[0]) in mottos
        elif "motto" in record and "role" in record and record["role"] not in ROLES:
            assert record["motto"] in ANY_ROLE[1]
    assert keys == {*SHEET_FIELDS, *EXTRA_FIELDS}


def test_the_same_seed_gives_the_same_sheets() -> None:
    first, again = Draw(5), Draw(5)
    assert [sheet(first) for _ in range(50)] == [sheet(again) for _ in range(50)]
