"""Which reply a script gives to a conversation."""

from __future__ import annotations

import pytest

from rtlang.contract.errors import ScriptError
from rtlang.model.scripted.script import PromptConversation, PromptMessage, Script
from rtlang.model.scripted.script_file import script_of

SCRIPT = """
rules:
  - when: {user: weather, tools: [get_weather]}
    captures: {city: "in (\\\\w+)", degrees: "[0-9]+ degrees"}
    replies:
      - calls: [{name: get_weather, arguments: {city: "{{city}}", days: [1, "{{ city }}"]}}]
      - "{{degrees}} in {{city}}, {{unknown}}"
  - when: {user: thanks}
    replies: [You are welcome.]
  - when: {system: title, tools: []}
    repeats: true
    replies: [first, last]
"""


def conversation(*messages: tuple[str, str], tools: tuple[str, ...] = ()) -> PromptConversation:
    return PromptConversation(tuple(PromptMessage(*each) for each in messages), tools)


@pytest.fixture(scope="module")
def script() -> Script:
    return script_of(SCRIPT, "script.yaml")


ASKED = ("user", "the weather in Oslo")
CALLED = ("assistant", "a call")
RESULT = ("tool", "9 degrees")
TOOLS = ("get_weather", "other")


def test_the_number_of_replies_after_the_matching_message_chooses_the_reply(script: Script) -> None:
    first = script.reply_to(conversation(("system", "in Bergen"), ASKED, tools=TOOLS))
    (call,) = first.calls
    assert (call.name, call.arguments) == ("get_weather", {"city": "Oslo", "days": [1, "Oslo"]})
    second = "9 degrees in Oslo, {{unknown}}"
    assert script.reply_to(conversation(ASKED, CALLED, RESULT, tools=TOOLS)).content == second
    earlier = (("user", "hello"), ("assistant", "hello"), ("assistant", "how are you?"))
    assert script.reply_to(conversation(*earlier, ASKED, CALLED, RESULT, tools=TOOLS)).content == second
    in_two_messages = conversation(ASKED, ("assistant", "Let me look"), CALLED, RESULT, tools=TOOLS)
    assert script.reply_to(in_two_messages).content == second
    reminded = conversation(ASKED, CALLED, RESULT, ("user", "a reminder of the client"), tools=TOOLS)
    assert script.reply_to(reminded).content == second


def test_the_rule_of_the_newest_message_goes_first(script: Script) -> None:
    told = (ASKED, CALLED, RESULT, ("assistant", "9 degrees"))
    assert script.reply_to(conversation(*told, ("user", "thanks"), tools=TOOLS)).content == "You are welcome."
    again = conversation(*told, ("user", "and the weather in Rome?"), tools=TOOLS)
    assert script.reply_to(again).calls[0].arguments["city"] == "Rome"


def test_tools_and_system_messages_choose_the_rule(script: Script) -> None:
    title = ("developer", "write a title")
    assert script.reply_to(conversation(title, ASKED)).content == "first"
    for num_replies in (1, 2, 5):
        replies = [ASKED, ("assistant", "x")] * num_replies
        assert script.reply_to(conversation(title, *replies, ASKED)).content == "last"


@pytest.mark.parametrize(
    ("messages", "tools", "said"),
    [
        ((ASKED,), (), "no rule matches a conversation with no tools and the last user message 'the weather in Oslo'"),
        ((ASKED,), ("other",), "no rule matches a conversation with other"),
        ((ASKED, CALLED, RESULT, CALLED, RESULT), TOOLS, "script.yaml:3: rules[0]: has 2 replies, but .* reply 3"),
        (
            (ASKED, CALLED, ("tool", "cold")),
            TOOLS,
            r"rules\[0\].replies\[1\]: no message has a match of captures.degrees",
        ),
        ((), (), "no reply to an empty prompt"),
    ],
    ids=["no tools", "other tools", "no reply left", "nothing captured", "no messages"],
)
def test_a_conversation_without_a_reply_is_an_error(
    script: Script, messages: tuple[tuple[str, str], ...], tools: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ScriptError, match=said.replace("rules[0]: ", r"rules\[0\]: ")):
        script.reply_to(conversation(*messages, tools=tools))


def test_calls_of_all_turns_have_ids_of_their_own() -> None:
    script = script_of("rules: [{replies: [{calls: [{name: f}, {name: f}]}, {calls: [{name: f}]}]}]", "s")
    asked = ("user", "x")
    ids = [each.id for each in script.reply_to(conversation(asked)).calls]
    ids += [each.id for each in script.reply_to(conversation(asked, CALLED, RESULT)).calls]
    assert len(set(ids)) == 3
