"""`rtlang chat`: a conversation in the terminal, with a model in this process or on a server.

Answers stream as they are generated. Ctrl-C cancels the answer that is being generated, and at the prompt clears the line; the
conversation then goes on. A line that begins with a slash is a command (`COMMANDS`); two slashes send a message that begins with one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from time import perf_counter
from typing import Annotated, Any, TextIO

import typer

from rtlang.console.loading import connected, started
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.options import with_settings
from rtlang.console.show import usage_line
from rtlang.console.source import CommandError
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import AbortedError, RtlangError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished, TextDelta
from rtlang.contract.params import Constraint, SamplingParams, Usage
from rtlang.contract.process.terminal_text import terminal_text
from rtlang.contract.request_graph import Generate, Part, RequestGraph, RoleEnd, RoleStart, Text
from rtlang.contract.service.target import GraphRun, Target
from rtlang_grammars import GrammarError

COMMANDS = {
    "/system TEXT": "set the system message; without TEXT remove it",
    "/schema FILE": "constrain answers to a schema, regex or grammar (.json, .regex, .lark, .gbnf, ...); without FILE remove it",
    "/tokens N": "generate at most N tokens an answer",
    "/temperature X": "sample with this temperature; 0 takes the likeliest token",
    "/undo": "forget the last message and its answer",
    "/reset": "forget all messages, but not the system message",
    "/save FILE": "write the conversation as JSON",
    "/load FILE": "go on with a conversation that was saved",
    "/help": "show the commands",
    "/quit": "end, like Ctrl-D",
}
PROMPT = "> "
_MAX_FILE_BYTES = 10_000_000
_ROLES = ("system", "user", "assistant")


@dataclass(slots=True)
class Chat:
    """A conversation with `target`.

    Attributes:
        out: where answers and replies to commands are written.
        messages: pairs of role and content, without the system message.
        system: the system message; "" for none.
        constraint: what answers must follow, or None.
    """

    target: Target
    out: TextIO
    system: str = ""
    params: SamplingParams = field(default_factory=lambda: SamplingParams(max_tokens=256))
    constraint: Constraint | None = None
    messages: list[tuple[str, str]] = field(default_factory=list)
    _saved: set[Path] = field(default_factory=set)

    def run(self, read: Callable[[], str]) -> None:
        """Handle lines until `read` raises EOFError or a line ends the conversation."""
        while True:
            try:
                line = read()
                while line.endswith("\\"):
                    line = f"{line[:-1]}\n{read()}"
            except EOFError:
                self._print("")
                return
            except KeyboardInterrupt:
                self._print("\n(Ctrl-D or /quit ends)")
                continue
            try:
                if not self.handle(line):
                    return
            except (CommandError, RtlangError) as error:
                self._print(f"error: {error}")
            except KeyboardInterrupt:
                self._print("\n(cancelled)")

    def handle(self, line: str) -> bool:
        """Handle a message or a command; False ends the conversation.

        Raises:
            CommandError: the command is unknown or cannot be carried out. The conversation is unchanged.
            RtlangError: the answer failed. The conversation is unchanged.
        """
        if not line.strip():
            return True
        if line.startswith("/") and not line.startswith("//"):
            return self._command(*_split(line))
        self.answer(line[1:] if line.startswith("//") else line)
        return True

    def answer(self, message: str) -> str:
        """Send a message; prints the answer as it comes, then what it cost. The conversation gets both, or neither if it fails.

        Raises:
            RtlangError: the answer failed.
            KeyboardInterrupt: it was cancelled.
        """
        started = perf_counter()
        events: SimpleQueue[Event] = SimpleQueue()
        run: GraphRun | None = None
        text, usage, error = "", Usage(), None
        try:
            run = self.target.submit(self._graph(message), events.put)
            while not isinstance(event := events.get(), (GraphFinished, GraphFailed)):
                if isinstance(event, TextDelta):
                    self.out.write(terminal_text(event.text))
                    self.out.flush()
                elif isinstance(event, NodeFinished):
                    text, usage = event.completions[0].text, event.usage
                elif isinstance(event, NodeFailed):
                    error = event.error
        except BaseException:
            if run is not None:
                run.cancel()
            raise
        self._print("")
        if isinstance(event, GraphFailed):
            error = event.error
        if isinstance(error, AbortedError):
            raise KeyboardInterrupt from error
        if error is not None:
            raise error
        self.messages += [("user", message), ("assistant", text)]
        self._print(f"[{usage_line(usage, perf_counter() - started)}]")
        return text

    def _graph(self, message: str) -> RequestGraph:
        parts: list[Part] = []
        system = [("system", self.system)] if self.system else []
        for role, content in (*system, *self.messages, ("user", message)):
            parts += [RoleStart(role), content, RoleEnd()]
        prompt = Text(0, None, (*parts, RoleStart("assistant")))
        return RequestGraph((prompt, Generate(1, 0, "answer", self.params, self.constraint)))

    # -- commands

    def _command(self, name: str, rest: str) -> bool:
        match name:
            case "/quit" | "/exit":
                return False
            case "/help":
                width = max(map(len, COMMANDS))
                self._print("\n".join(f"{each:<{width}}  {meaning}" for each, meaning in COMMANDS.items()))
            case "/system":
                self.system = rest
                self._print("system message set" if rest else "no system message")
            case "/schema":
                self.constraint = read_constraint(Path(rest)) if rest else None
                self._print(f"answers follow {rest}" if rest else "answers are free")
            case "/tokens":
                self.params = replace(self.params, max_tokens=_number(name, rest, int))
            case "/temperature":
                self.params = replace(self.params, temperature=_number(name, rest, float))
            case "/undo":
                if not self.messages:
                    raise CommandError("/undo: no message to remove")
                del self.messages[-2:]
            case "/reset":
                self.messages.clear()
            case "/save":
                self._save(Path(rest) if rest else None)
            case "/load":
                self._load(Path(rest) if rest else None)
            case _:
                raise CommandError(
                    f"{name}: unknown command; /help shows them, and // sends a message that begins with /"
                )
        return True

    def _save(self, path: Path | None) -> None:
        if path is None:
            raise CommandError("/save: expected a file name")
        system = [("system", self.system)] if self.system else []
        messages = [{"role": role, "content": content} for role, content in (*system, *self.messages)]
        try:
            with path.open("w" if path in self._saved else "x", encoding="utf-8") as file:
                json.dump({"messages": messages}, file, ensure_ascii=True, indent=1)
                file.write("\n")
        except OSError as error:
            raise CommandError(f"/save {path}: {error.strerror}") from None
        self._saved.add(path)
        self._print(f"{len(messages)} messages saved in {path}")

    def _load(self, path: Path | None) -> None:
        if path is None:
            raise CommandError("/load: expected a file name")
        found = _read_json(path)
        messages = found.get("messages") if isinstance(found, dict) else None
        wrong = f"{path}: expected the JSON that /save writes"
        if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
            raise CommandError(wrong)
        pairs = [(each.get("role"), each.get("content")) for each in messages]
        if not all(role in _ROLES and isinstance(content, str) for role, content in pairs):
            raise CommandError(wrong)
        system = pairs[0][1] if pairs and pairs[0][0] == "system" else ""
        rest = pairs[1:] if system else pairs
        if [role for role, _ in rest] != ["user", "assistant"] * (len(rest) // 2):
            raise CommandError(f"{wrong}: user and assistant messages must alternate")
        self.system, self.messages = system, rest
        self._print(f"{len(pairs)} messages loaded")

    def _print(self, text: str) -> None:
        self.out.write(terminal_text(text) + "\n")
        self.out.flush()


def read_constraint(path: Path) -> Constraint:
    """The constraint in a file; its suffix says what it is.

    Raises:
        CommandError: the file cannot be read, or is no valid constraint; names the file.
    """
    from rtlang_grammars.api import inspection  # the compiler of grammars, for conversations with a schema only

    try:
        constraint = inspection.read_constraint(path)
        inspection.check(constraint)
    except GrammarError as error:
        place = "" if str(error).startswith(str(path)) else f"{path}: "
        raise CommandError(f"{place}{error}") from None
    return constraint


@with_settings(RuntimeConfig, "settings")
def chat(
    settings: dict[str, Any],
    url: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL", help="Talk to the model of the server at this URL; repeat to name fallback servers."
        ),
    ] = None,
    api_key: Annotated[str | None, typer.Option(help="API key for that server.", envvar="RTLANG_API_KEY")] = None,
    system: Annotated[str, typer.Option(metavar="TEXT", help="The system message.")] = "",
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Schema, regex or grammar that answers must follow.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(help="Maximum number of tokens of an answer.")] = 256,
    temperature: Annotated[float, typer.Option(help="Temperature of sampling; 0 takes the likeliest token.")] = 0.0,
) -> None:
    """Talk to a model: the one in the package, a checkpoint (--model), or a server's model (--url).

    Answers stream; Ctrl-C cancels an answer, Ctrl-D ends. /help lists the commands.
    """
    with one_line_errors():
        params = SamplingParams(max_tokens=max_tokens, temperature=temperature)
        constraint = None if schema is None else read_constraint(schema)
        target = _target(url, api_key, settings)
        try:
            chat = Chat(target, sys.stdout, system, params, constraint)
            if sys.stdin.isatty():
                import readline  # noqa: F401  # editing and history of lines; it changes `input`

                typer.echo("Ctrl-C cancels an answer, Ctrl-D ends, /help lists the commands.")
            chat.run(_read_line)
        finally:
            target.close()


def _target(url: list[str] | None, api_key: str | None, settings: dict[str, Any]) -> Target:
    target: Target
    if not url:
        target = started(RuntimeConfig(**settings))
    elif settings:
        raise CommandError(f"runtime options cannot be combined with --url; the server at {url[0]} has its own")
    else:
        target = connected(url, api_key)
    return target


def _read_line() -> str:
    return input(PROMPT) if sys.stdin.isatty() else input()


def _split(line: str) -> tuple[str, str]:
    name, _, rest = line.partition(" ")
    return name.strip(), rest.strip()


def _number(name: str, text: str, kind: Callable[[str], Any]) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise CommandError(f"{name} {text}: expected a number") from None


def _read_json(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_FILE_BYTES + 1)
        if len(data) > _MAX_FILE_BYTES:
            raise CommandError(f"{path}: more than {_MAX_FILE_BYTES} bytes")
        return json.loads(data)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path}: not JSON: {error}") from None
