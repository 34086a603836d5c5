"""`rtlang chat`: what is sent, what is printed, what a command changes, and that nothing half-done stays in the conversation."""

from __future__ import annotations

import json
import signal
from io import StringIO
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rtlang.__main__ import app
from rtlang.console.chat import COMMANDS, Chat, read_constraint
from rtlang.console.source import CommandError
from rtlang.contract.errors import RequestError
from rtlang.contract.request_graph import Generate, RoleEnd, RoleStart, Text
from rtlang.serve.server import running_server
from rtlang.testing import ScriptedRuntime
from tests.support.programs.scripted_target import ScriptedTarget
from tests.support.servers.free_port import free_port


class World:
    """A conversation with a script."""

    def __init__(self, *answers: str | Exception) -> None:
        self.runtime = ScriptedRuntime({"answer": list(answers)})
        self.out = StringIO()
        self.chat = Chat(self.runtime, self.out)

    def feed(self, *lines: str | type[BaseException]) -> str:
        """Handle lines as typed, then Ctrl-D; an exception is what the user's key raises. Returns what was printed."""
        before, remaining = len(self.out.getvalue()), list(lines)

        def read() -> str:
            line = remaining.pop(0) if remaining else EOFError
            if isinstance(line, str):
                return line
            raise line

        self.chat.run(read)
        return self.out.getvalue()[before:]


def prompt_of(world: World) -> list[object]:
    """The parts of the prompt of the message "next", with roles as tuples."""
    prompt = world.chat._graph("next").nodes[0]
    assert isinstance(prompt, Text)
    return [
        (part.role,) if isinstance(part, RoleStart) else part for part in prompt.parts if not isinstance(part, RoleEnd)
    ]


def test_answers_are_printed_and_the_conversation_grows() -> None:
    world = World("Hello!", "Blue.")
    printed = world.feed("Hi", "  ", "Which color?")
    assert printed.startswith("Hello!\n[")
    assert "\nBlue.\n[" in printed
    assert " generated in " in printed
    assert world.chat.messages == [
        ("user", "Hi"),
        ("assistant", "Hello!"),
        ("user", "Which color?"),
        ("assistant", "Blue."),
    ]


def test_the_model_sees_the_whole_conversation() -> None:
    world = World("A1")
    world.feed("/system Be brief.", "Q1")
    assert prompt_of(world) == [
        ("system",), "Be brief.", ("user",), "Q1", ("assistant",), "A1", ("user",), "next", ("assistant",),
    ]  # fmt: skip
    world.feed("/system")
    assert prompt_of(world)[:2] == [("user",), "Q1"]


def test_control_characters_of_an_answer_do_not_reach_the_terminal() -> None:
    printed = World("a\x1b[2Jb\x07").feed("Hi")
    assert printed.startswith("a\\x1b[2Jb\\x07\n")
    assert "\x1b" not in printed


def test_a_failed_answer_leaves_the_conversation_as_it_was() -> None:
    world = World(RequestError("no\x1bpe"), "yes")
    printed = world.feed("first", "second")
    assert "error: RequestError: no\\x1bpe" in printed or "error: no\\x1bpe" in printed
    assert world.chat.messages == [("user", "second"), ("assistant", "yes")]


class InterruptingOut(StringIO):
    """Presses Ctrl-C when the first text of an answer arrives."""

    has_pressed = False

    def write(self, text: str) -> int:
        if text == "piece" and not self.has_pressed:
            self.has_pressed = True
            signal.raise_signal(signal.SIGINT)
        return super().write(text)


def test_ctrl_c_cancels_the_answer_and_the_conversation_goes_on() -> None:
    target, out = ScriptedTarget(), InterruptingOut()
    chat, lines = Chat(target, out), ["question", "/help"]

    def read() -> str:
        return lines.pop(0)

    submit = target.submit

    def submit_and_speak(*args: object, **options: object) -> object:
        run = submit(*args, **options)  # type: ignore[arg-type]
        target.runs[-1].advance("piece")
        return run

    target.submit = submit_and_speak  # type: ignore[method-assign, assignment]
    with pytest.raises(IndexError):  # no more lines
        chat.run(read)
    assert target.runs[0].was_cancelled
    assert chat.messages == []
    assert "(cancelled)" in out.getvalue()
    assert "/quit" in out.getvalue(), "the next line was handled"


def test_ctrl_c_at_the_prompt_only_clears_the_line() -> None:
    world = World("yes")
    printed = world.feed(KeyboardInterrupt, "Hi")
    assert "(Ctrl-D or /quit ends)" in printed
    assert "yes" in printed


def test_a_line_may_go_on_after_a_backslash_and_begin_with_a_slash() -> None:
    world = World("1", "2")
    world.feed("one\\", "two", "//etc is a folder")
    assert [content for role, content in world.chat.messages if role == "user"] == ["one\ntwo", "/etc is a folder"]


def test_commands_change_how_answers_are_made(tmp_path: Path) -> None:
    schema = tmp_path / "s.json"
    schema.write_text('{"type": "integer"}')
    world = World()
    world.feed("/tokens 7", "/temperature 0.5", f"/schema {schema}")
    generate = world.chat._graph("x").nodes[1]
    assert isinstance(generate, Generate)
    assert (generate.params.max_tokens, generate.params.temperature) == (7, 0.5)
    assert generate.constraint is not None
    assert (generate.constraint.kind, generate.constraint.source) == ("json_schema", '{"type": "integer"}')
    world.feed("/schema")
    assert world.chat.constraint is None


def test_undo_and_reset() -> None:
    world = World("1", "2")
    world.feed("/system S", "a", "b", "/undo")
    assert world.chat.messages == [("user", "a"), ("assistant", "1")]
    world.feed("/reset")
    assert (world.chat.messages, world.chat.system) == ([], "S")
    assert "error: /undo: no message to remove" in world.feed("/undo")


def test_help_shows_every_command_and_quit_ends() -> None:
    world = World()
    printed = world.feed("/help", "/quit", "never sent")
    for command in COMMANDS:
        assert command in printed
    assert world.chat.messages == []


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("/nonsense", "/nonsense: unknown command"),
        ("/tokens many", "/tokens many: expected a number"),
        ("/tokens -1", "max_tokens"),
        ("/temperature -1", "temperature"),
        ("/schema nowhere.json", "nowhere.json"),
        ("/schema nowhere.txt", "unknown suffix"),
        ("/save", "/save: expected a file name"),
        ("/load", "/load: expected a file name"),
        ("/load nowhere.json", "nowhere.json"),
    ],
)
def test_a_wrong_command_says_what_is_wrong_and_changes_nothing(line: str, told: str) -> None:
    world = World()
    before = (world.chat.system, world.chat.params, world.chat.constraint)
    printed = world.feed(line)
    assert printed.startswith("error: ")
    assert told in printed
    assert (world.chat.system, world.chat.params, world.chat.constraint) == before


def test_a_saved_conversation_goes_on_in_another_chat(tmp_path: Path) -> None:
    first, path = World("Grüße \x1b"), tmp_path / "c.json"
    first.feed("/system S", "Hi", f"/save {path}", f"/save {path}")
    assert json.loads(path.read_text()) == {
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Grüße \x1b"},
        ]
    }
    second = World()
    second.feed(f"/load {path}")
    assert (second.chat.system, second.chat.messages) == (first.chat.system, first.chat.messages)
    assert "File exists" in second.feed(f"/save {path}")


@pytest.mark.parametrize(
    "text",
    [
        "nonsense", "[]", "{}", '{"messages": 3}', '{"messages": [1]}', '{"messages": [{"role": "user"}]}',
        '{"messages": [{"role": "wizard", "content": "x"}]}', '{"messages": [{"role": "user", "content": "x"}]}',
        '{"messages": [{"role": "assistant", "content": "x"}, {"role": "user", "content": "x"}]}', "[" * 100_000,
    ],
)  # fmt: skip
def test_a_file_that_is_no_conversation_is_refused(tmp_path: Path, text: str) -> None:
    path, world = tmp_path / "c.json", World("1")
    path.write_text(text)
    world.feed("a")
    printed = world.feed(f"/load {path}")
    assert printed.startswith(f"error: {path}")
    assert world.chat.messages == [("user", "a"), ("assistant", "1")]


def test_a_wrong_constraint_is_refused_by_file(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text('{"type": "nonsense"}')
    with pytest.raises(CommandError, match=str(path)):
        read_constraint(path)


def test_the_command_talks_to_a_server_and_reads_lines_from_a_pipe() -> None:
    with ScriptedRuntime({"answer": ["one", "two"]}) as runtime, running_server(runtime) as url:
        urls = ["--url", f"ws://127.0.0.1:{free_port()}", "--url", url]
        result = CliRunner().invoke(app, ["chat", *urls, "--system", "S"], input="a\nb\n")
        assert result.exit_code == 0, result.output
        assert [line for line in result.stdout.splitlines() if not line.startswith("[")] == ["one", "two", ""]
        assert runtime.prompts("answer")[1] == "System: S\nUser: a\nAssistant: one\nUser: b\nAssistant: "


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--url", "ftp://x"], "url = 'ftp://x'"),
        (["--url", "ws://x", "--dtype", "auto"], "runtime options cannot be combined with --url"),
        (["--max-tokens", "-1"], "max_tokens"),
        (["--schema", "nowhere.json"], "nowhere.json"),
    ],
)
def test_a_mistake_ends_in_one_line(arguments: list[str], told: str) -> None:
    result = CliRunner().invoke(app, ["chat", *arguments], input="")
    assert result.exit_code == 1
    [line] = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert told in line
