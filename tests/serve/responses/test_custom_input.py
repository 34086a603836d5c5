"""The input of a custom tool is decoded piece by piece to what the whole arguments say."""

from __future__ import annotations

import json
from random import Random

from rtlang.serve.responses.custom_input import CustomInput

TEXTS = ["", "plain", 'say "hi"\\ \n\t', "é😀\u2028", "\ud83d lone", "a\\u0041", "*** Begin Patch\n+x\n*** End Patch"]


def test_pieces_add_up_to_the_input() -> None:
    random = Random(1)
    for text in TEXTS:
        for whole in (json.dumps({"input": text}), json.dumps({"input": text}, ensure_ascii=False, indent=1)):
            for _ in range(20):
                reader, found, at = CustomInput(), "", 0
                while at < len(whole):
                    to = at + random.randint(1, 9)
                    found += reader.push(whole[at:to])
                    at = to
                    assert text.startswith(found)
                found += reader.finish()
                assert found == reader.text == text


def test_most_of_a_text_is_there_before_the_end() -> None:
    reader = CustomInput()
    assert reader.push('{"input": "ab') == "ab"
    assert reader.push("c\\") == "c"
    assert reader.push("n\\ud83d") == "\n"
    assert reader.push("\\ude00") == "😀"
    assert reader.finish() == ""  # it was cut


def test_arguments_of_another_form_are_the_input() -> None:
    for whole in ('{"text": "a"}', "[1]", "no JSON", '{"input": 3}'):
        reader = CustomInput()
        reader.push(whole)
        reader.finish()
        assert reader.text == whole
