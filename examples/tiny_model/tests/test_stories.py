"""Stories: whole, of the length promised, about who the prompt names."""

import re

from tiny_model.corpus.stories import PLOTS, story
from tiny_model.corpus.words import Draw


def test_a_story_has_eight_to_thirteen_whole_sentences_and_no_open_field() -> None:
    draw = Draw(5)
    for _ in range(300):
        text = story(draw)[-1][1]
        assert 8 <= len(re.findall(r"[^.?!]+[.?!]+\"?", text)) <= 13
        assert not re.search(r"[{}|]", text)


def test_a_name_in_the_prompt_is_in_the_story() -> None:
    draw, num_named = Draw(6), 0
    for _ in range(300):
        messages = story(draw)
        named = re.search(r"(?:named|called) (\w+)\.$", messages[-2][1]) if len(messages) > 1 else None
        if named:
            num_named += 1
            assert named[1] in messages[-1][1]
    assert num_named > 30


def test_there_are_several_plots_of_different_sentences() -> None:
    assert len(PLOTS) >= 5
    assert all(8 <= len(plot) <= 10 for plot in PLOTS)
    assert len({plot[2] for plot in PLOTS}) == len(PLOTS)
