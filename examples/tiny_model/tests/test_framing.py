"""Framing: the request and the text both stand in the message, whole; what is held out is in no training message."""

import re

import pytest
from tiny_model.corpus import framing
from tiny_model.corpus.framing import framed
from tiny_model.corpus.words import Draw

ASK, TEXT = "Return name as JSON.", "Ada moved to Oslo"


@pytest.mark.parametrize("split", ["train", "test"])
def test_request_and_text_stand_in_the_message_once_and_whole(split: str) -> None:
    draw = Draw(1, split)  # type: ignore[arg-type]
    for _ in range(3000):
        message = framed(draw, ASK, TEXT)
        assert message.count(ASK) == 1
        assert message.count(TEXT) == 1
        assert "{" not in re.sub(r"{(?=Ada)", "", message), message  # no field is left open
        assert not re.search(r"\[[^\]]*/[^\]]*\]", message), message  # nor a choice


def test_a_message_comes_in_very_many_frames() -> None:
    draw = Draw(2)
    assert len({framed(draw, ASK, TEXT) for _ in range(4000)}) > 2000


def test_no_value_at_the_end_of_a_text_runs_on_into_the_request() -> None:
    draw = Draw(4)
    messages = {framed(draw, ASK, TEXT) for _ in range(10_000)}
    assert not [message for message in messages if re.search(rf"{TEXT} [A-Z]", message)]


def test_no_held_out_label_or_frame_is_in_a_training_message() -> None:
    draw = Draw(3)
    marks = (r"(?<!=)== [\w ]+ ==(?!=)\n", "###", rf"\n---\n{TEXT}", "Here it comes:", rf"\({TEXT}\) {ASK}")
    held = re.compile("|".join((*marks, *framing.HELD_LABELS)), re.IGNORECASE)
    for frame in framing.HELD_FRAMES:
        assert held.search(frame.format(ask=ASK, text=TEXT, Label="Note")), frame
    for _ in range(20_000):
        message = framed(draw, ASK, TEXT)
        assert not held.search(message), message
