"""Records written down key by key: every entry is there in order, and the held-out joints are not."""

import re

from tiny_model.corpus.listings import ENDS, HELD, KNOWN, MARKS, VERBS, has_held_joint, listing_of
from tiny_model.corpus.words import Draw

ENTRIES = {"city": "Bontal", "size": 4711, "loof": "Ada Pell", "day": "March 3", "price": 27.5}


def test_every_key_and_value_is_written_once() -> None:
    draw = Draw(3)
    for _ in range(3000):
        text = listing_of(draw, ENTRIES)
        for key, value in ENTRIES.items():
            assert text.count(str(value)) == 1, text
            assert re.search(rf"(?<![a-zA-Z]){key}(?![a-zA-Z])", text), text


def test_a_known_listing_has_no_held_joint() -> None:
    draw, joints = Draw(4), [joint for joint, _ in HELD]
    assert has_held_joint("city -> Bontal")
    texts = [listing_of(draw, ENTRIES) for _ in range(3000)]
    assert not [text for text in texts if any(joint.strip() in text for joint in joints)]
    assert len({re.sub(r"[A-Za-z0-9]+", "", text) for text in texts}) > 400


def test_held_joints_are_those_of_the_test_split_only() -> None:
    draw = Draw(5, "test")
    for _ in range(100):
        text = listing_of(draw, ENTRIES)
        assert any(f"city{joint}Bontal{end}size" in text for joint, end in HELD)
    known = {joint.strip() for joint, _ in KNOWN} | {joint.strip() for joint in (*MARKS, *VERBS)}
    assert not known & {joint.strip() for joint, _ in HELD}
    assert not any(has_held_joint(end) for end in ENDS)
