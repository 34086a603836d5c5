"""The exceptions of rtlang.

Mistakes of users and failures while serving raise one of these classes. Each stores its facts as attributes, so that programs can act on
them, and has a stable `code` that identifies it on the wire; `rebuild` recreates the exception from its code and facts. This module
imports the standard library only.
"""

from __future__ import annotations

import logging
import reprlib
import secrets
from typing import Any, ClassVar

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 200
_REPR.maxlist = _REPR.maxtuple = _REPR.maxset = _REPR.maxfrozenset = _REPR.maxdict = 20


def _shown(value: object) -> str:
    """The repr of a value for a message; large or deep values are abbreviated."""
    return _REPR.repr(value)


class RtlangError(Exception):
    """Base class of all errors. `code` is stable and public; `facts` are plain data.

    Attributes:
        generation: the name of the generation that failed, that had an invalid option, or that was waited for; None if it has no name.
        node_path: its path within the run (`result.at(path)`); None if it is not known.
        recorded_at: `file:line` of the call that recorded this generation; None if the error belongs to none.
    """

    code: ClassVar[str] = "internal"
    generation: str | None = None
    node_path: str | None = None
    recorded_at: str | None = None

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def facts(self) -> dict[str, Any]:
        """The attributes of the error without its message, as plain data."""
        return {name: value for name, value in vars(self).items() if name != "message"}

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, (
            self.code,
            self.message,
            self.facts,
        )  # by default, copying and pickling call __init__ with the message


class ConfigError(RtlangError):
    """A setting is invalid, or this machine does not support it. Names the field, its value and the allowed values."""

    code = "config"

    def __init__(self, field: str, value: object, allowed: str) -> None:
        shown = _shown(value)
        super().__init__(f"{field} = {shown}: {allowed}")
        self.field, self.allowed = field, allowed
        self.value = value if isinstance(value, str) and len(value) <= _REPR.maxstring else shown


class ModelLoadError(RtlangError):
    """A model cannot be loaded; names the missing or unsupported part."""

    code = "model_load"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"cannot load the model at {path!r}: {reason}")
        self.path, self.reason = path, reason


class ProgramError(RtlangError):
    """A program is invalid."""

    code = "program"


class ParameterError(ProgramError):
    """An option of a generation or a run is invalid. Names the option, its value and the allowed values."""

    code = "parameter"

    def __init__(self, field: str, value: object, allowed: str) -> None:
        shown = _shown(value)
        super().__init__(f"{field} = {shown}: {allowed}")
        self.field, self.allowed = field, allowed
        self.value = value if isinstance(value, str) and len(value) <= _REPR.maxstring else shown


class TraceError(ProgramError):
    """The body of a program cannot be recorded; names the line."""

    code = "trace"

    def __init__(self, message: str, location: str | None = None) -> None:
        super().__init__(f"{location}: {message}" if location else message)
        self.location = location


class GraphError(ProgramError):
    """A request graph is malformed; names the node and the field."""

    code = "graph"

    def __init__(self, node_id: int | None, field: str, reason: str) -> None:
        where = "graph" if node_id is None else f"node {node_id}"
        super().__init__(f"{where}, {field}: {reason}")
        self.node_id, self.field, self.reason = node_id, field, reason


class RequestError(RtlangError):
    """One request failed, without effect on other requests."""

    code = "request"


class ConstraintError(RequestError):
    """A constraint cannot be compiled or satisfied. `location` is a JSON pointer or `line:column`, if known."""

    code = "constraint"

    def __init__(self, message: str, location: str | None = None) -> None:
        super().__init__(f"{message} (at {location})" if location else message)
        self.location = location


class DeadEndError(ConstraintError):
    """No token may follow the text under its constraint, and the text is not complete. Only this generation fails.

    Attributes:
        text: the end of the text so far.
    """

    code = "dead_end"

    def __init__(self, text: str) -> None:
        place = f"after {text!r}" if text else "at the beginning of the text"
        super().__init__(
            f"the constraint is at a dead end: no token is allowed {place}, and the text is not complete there; "
            "change the grammar, for example by a priority of its terminals or another lexer"
        )
        self.text = text


class BudgetError(ConstraintError):
    """`max_tokens` is too small for the shortest output that the constraint allows."""

    code = "budget"

    def __init__(self, max_tokens: int, needed: int | None) -> None:
        need = (
            f"at least {needed} tokens are needed" if needed is not None else "no completion of that length was found"
        )
        super().__init__(f"max_tokens = {max_tokens} is too small for the constraint: {need}")
        self.max_tokens, self.needed = max_tokens, needed


class SpentError(RequestError):
    """The budget of the run has nothing left for this generation. Names the limit (tokens, seconds or computed) and its value."""

    code = "spent"

    def __init__(self, limit: str, value: float) -> None:
        super().__init__(f"the budget of the run is spent: {limit} = {value:g}")
        self.limit, self.value = limit, value


class InvalidValueError(RequestError):
    """A generated value violates a keyword that masks cannot enforce, in all `num_attempts` attempts. Stores the text of the last one."""

    code = "invalid_value"

    def __init__(self, text: str, reason: str, num_attempts: int) -> None:
        attempts = "1 attempt" if num_attempts == 1 else f"{num_attempts} attempts"
        super().__init__(f"no valid value was generated in {attempts}: {reason}")
        self.text, self.reason, self.num_attempts = text, reason, num_attempts


class ValueParseError(RequestError):
    """The generated text cannot be parsed as the declared type; stores the text."""

    code = "value"

    def __init__(self, name: str, text: str, reason: str) -> None:
        super().__init__(f"the text of {name!r} is not a valid value: {reason}")
        self.name, self.text, self.reason = name, text, reason


class CheckError(RequestError):
    """A generated value was refused by its checks, in all `num_attempts` attempts.

    Attributes:
        name: of the generation.
        value: the value of the last attempt as plain data, or its text if it is no value of the type.
        reason: the message of the check that refused it.
    """

    code = "check"

    def __init__(self, name: str, value: Any, reason: str, num_attempts: int) -> None:
        attempts = "1 attempt" if num_attempts == 1 else f"{num_attempts} attempts"
        super().__init__(f"the value of {name!r} was refused in {attempts}: {reason}")
        self.name, self.value, self.reason, self.num_attempts = name, value, reason, num_attempts


class ToolError(RequestError):
    """The function of a tool raised an exception. Names the tool and the `file:line` where it failed."""

    code = "tool"

    def __init__(self, tool: str, reason: str, location: str) -> None:
        super().__init__(f"the tool {tool!r} failed at {location}: {reason}")
        self.tool, self.reason, self.location = tool, reason, location


class McpError(RequestError):
    """An MCP server cannot be reached, or one of its tools failed. Names the server."""

    code = "mcp"

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(f"MCP server {server!r}: {reason}")
        self.server, self.reason = server, reason


class ContextLengthError(RequestError):
    """The prompt and the requested tokens exceed the context length of the model.

    Attributes:
        max_tokens: the requested number of tokens; 0 if the prompt alone is too long. `num_prompt_tokens` is a lower
            bound then, since the end of the prompt was not tokenized.
    """

    code = "context_length"

    def __init__(self, num_prompt_tokens: int, max_tokens: int, max_model_len: int) -> None:
        requested = f"{num_prompt_tokens} tokens and max_tokens = {max_tokens}"
        has = requested if max_tokens else f"at least {num_prompt_tokens} tokens"
        super().__init__(f"the prompt has {has}; the context length is {max_model_len}")
        self.num_prompt_tokens, self.max_tokens, self.max_model_len = (
            num_prompt_tokens,
            max_tokens,
            max_model_len,
        )


class CapacityError(RequestError):
    """A request needs more KV pages than the pool has."""

    code = "capacity"

    def __init__(self, num_pages_needed: int, num_pages: int) -> None:
        super().__init__(f"the request needs {num_pages_needed} KV pages, but the pool has only {num_pages}")
        self.num_pages_needed, self.num_pages = num_pages_needed, num_pages


class DeadlineError(RequestError):
    """The deadline passed before the request or graph finished."""

    code = "deadline"


class AbortedError(RequestError):
    """The request or graph was cancelled."""

    code = "aborted"


class DependencyError(RequestError):
    """A node did not run because a node that it depends on failed with the code `cause_code`."""

    code = "dependency"

    def __init__(self, node_id: int, cause_code: str, cause_message: str) -> None:
        super().__init__(f"node {node_id} failed: {cause_message}")
        self.node_id, self.cause_code, self.cause_message = node_id, cause_code, cause_message


class ApplyError(RequestError):
    """A pure function of values failed; names the function and its operands."""

    code = "apply"

    def __init__(self, function: str, operands: list[str], reason: str) -> None:
        super().__init__(f"{function}({', '.join(operands)}): {reason}")
        self.function, self.operands, self.reason = function, operands, reason


class ValueMemoryError(RequestError):
    """The values of a graph, or of all graphs of a principal, would take more memory than they may. Names the limit.

    Attributes:
        limit: the name of the limit, and `value` its value in bytes.
        num_bytes: bytes that are in use; `num_needed` more were needed.
    """

    code = "value_memory"

    def __init__(self, what: str, limit: str, value: int, num_bytes: int, num_needed: int) -> None:
        super().__init__(
            f"the values of {what} take {num_bytes} bytes, and {num_needed} more are needed; at most {limit} = {value} are allowed"
        )
        self.limit, self.value, self.num_bytes, self.num_needed = limit, value, num_bytes, num_needed


class CallError(RequestError):
    """A host call failed on the client; names the function."""

    code = "call"

    def __init__(self, function: str, reason: str) -> None:
        super().__init__(f"the call of {function}() failed: {reason}")
        self.function, self.reason = function, reason


class EffectError(RequestError):
    """An effect of a program needs a person."""

    code = "effect"


class UnknownOutcomeError(EffectError):
    """It is unknown whether a call took place: a run died after the call had begun and before its outcome was recorded.

    Attributes:
        function, arguments: the call, its arguments as text.
        path: the path of its node, under which `rtlang answer` takes what is known of it.
    """

    code = "unknown_outcome"

    def __init__(self, function: str, arguments: str, path: str, how: str) -> None:
        super().__init__(
            f"the outcome of {function}({arguments}) at {path!r} is unknown: the process ended after the call had begun; {how}"
        )
        self.function, self.arguments, self.path = function, arguments, path


class QuestionError(EffectError):
    """A question has no answer: none came in time, or one that does not fit. Names the question and the path of its node."""

    code = "question"

    def __init__(self, path: str, question: str, reason: str) -> None:
        super().__init__(f"the question {question!r:.300} at {path!r}: {reason}")
        self.path, self.question, self.reason = path, question, reason


class UnansweredError(QuestionError):
    """Nobody has answered a question yet. With a journal, the program goes on from it when it is run again after the answer."""

    code = "unanswered"


class SwitchError(RequestError):
    """The value of a switch equals none of its cases, and it has no default."""

    code = "switch"

    def __init__(self, value: str, cases: list[str]) -> None:
        super().__init__(f"the value {value} of a switch without default: expected one of {', '.join(cases)}")
        self.value, self.cases = value, cases


class ScriptError(RequestError):
    """The script of a scripted model has no reply for this conversation, or one that the request does not allow; names its place."""

    code = "script"


class NumericsError(RequestError):
    """The model computed non-finite logits for this request."""

    code = "numerics"


class SlowConsumerError(RequestError):
    """The client did not read its output in time."""

    code = "slow_consumer"


class OverloadError(RtlangError):
    """The queue is full. Retry after `retry_after_s` seconds."""

    code = "overload"

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(f"{message}; retry after {retry_after_s:g} s")
        self.retry_after_s = retry_after_s


class ProtocolError(RtlangError):
    """The peer violated the wire protocol. `close_code` is the WebSocket close code that follows, if any."""

    code = "protocol"

    def __init__(self, message: str, close_code: int | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.close_code, self.param = close_code, param


class ConnectionLostError(RtlangError):
    """The connection to a remote runtime failed or was lost."""

    code = "connection"


class GoneError(ConnectionLostError):
    """A stream cannot be resumed because the server no longer has it. `param` names the offending field of the message."""

    code = "gone"

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class CassetteError(RtlangError):
    """A recording cannot be used: it is in use, damaged, of another model, or lacks an outcome that a replay needs. Names the file."""

    code = "cassette"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"the recording {path!r}: {reason}")
        self.path, self.reason = path, reason


class JournalError(RtlangError):
    """A journal cannot be continued: it is in use, damaged, of another program or model, or the program does something else now.

    Attributes:
        path: the file.
        place: the path of the node that differs, if one does; `before` and `now` are the values that differ, as text.
    """

    code = "journal"

    def __init__(
        self, path: str, reason: str, place: str | None = None, before: str | None = None, now: str | None = None
    ) -> None:
        super().__init__(f"the journal {path!r}: {reason}")
        self.path, self.reason, self.place, self.before, self.now = path, reason, place, before, now


class EngineDeadError(RtlangError):
    """The engine has stopped; the message contains the cause, which a server keeps to its log, under `fault_id` if that is known."""

    code = "engine_dead"
    fault_id: str | None = None


class InternalError(RtlangError):
    """A fault of rtlang itself. The log has the details under the `id`; the message has no internal text, but may say what happened."""

    code = "fault"

    def __init__(self, fault_id: str, event: str = "") -> None:
        super().__init__(f"internal error {fault_id}{event and ': '}{event}; the log has its cause")
        self.id = fault_id

    @classmethod
    def made(cls, event: str) -> InternalError:
        """An error with a new id."""
        return cls(secrets.token_hex(6), event)


def internal_error(logger: logging.Logger, subject: str, error: BaseException) -> InternalError:
    """Log an unexpected exception under a new id, and return the error for the client: its message has the id, and no internal text."""
    fault = InternalError(secrets.token_hex(6))
    logger.error("internal error %s: %s", fault.id, subject, exc_info=error)
    fault.__cause__ = error
    return fault


def _subclasses(cls: type[RtlangError]) -> list[type[RtlangError]]:
    return [cls, *(found for child in cls.__subclasses__() for found in _subclasses(child))]


ERRORS_BY_CODE: dict[str, type[RtlangError]] = {cls.code: cls for cls in _subclasses(RtlangError)}


def rebuild(code: str, message: str, facts: dict[str, Any] | None = None) -> RtlangError:
    """Recreate an error from its code, message and facts; an unknown code gives the base class."""
    cls = ERRORS_BY_CODE.get(code, RtlangError)
    error = cls.__new__(cls)
    Exception.__init__(error, message)
    error.message = message
    for name, value in (facts or {}).items():
        setattr(error, name, value)
    return error


def described(error: BaseException) -> str:
    """`Name: message` of an exception of a user's function; its name alone if the exception cannot say its message."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__
