"""A sandboxed, bounded Jinja environment for chat templates.

A template is untrusted code from the checkpoint that runs on the engine thread. It runs in Jinja's immutable sandbox, with limits on the
number of loop iterations and macro calls per rendering, and on the size of values that its operators produce. Its operators, methods and
filters keep the sources of `TrackedText`.
"""

from __future__ import annotations

import datetime
import functools
import json
import re
from collections.abc import Callable
from typing import Any

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox
import jinja2.visitor
from jinja2.exceptions import SecurityError

from rtlang.model.text import tracked_text
from rtlang.model.text.tracked_text import TrackedText

MAX_RENDERED_CHARS = 4 << 20
MAX_SOURCE_CHARS = 1 << 20
MAX_ROUNDS = 1_000_000
"""Maximum loop iterations plus macro calls per rendering. Published templates need a few per message."""
MAX_WORK_CHARS = 1 << 28
"""Maximum characters that the operators, methods and filters of one rendering read; about a second of work."""
_MAX_NUMBER = 100_000
_MAX_BITS = 4096
_FOLLOWED_METHODS = frozenset(name for name in vars(TrackedText) if not name.startswith("_") and name != "runs")
_FOLLOWED_FILTERS = frozenset(("trim", "replace", "join", "lower", "upper", "capitalize", "string", "safe"))
"""Filters that call methods of `TrackedText` on their arguments."""
_CHOOSING_FILTERS = frozenset(("default", "d", "first", "last", "random", "min", "max", "attr"))
"""Filters that return a part of an argument."""
_JINJA_ARGUMENTS = ("_loop_vars", "_block_vars")
"""Arguments that compiled templates pass with every call in a loop or a block."""
_WIDE_FORMAT = re.compile(r"%[^%a-zA-Z]*(\*|\d{5})")


class TemplateEnvironment(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """The Jinja environment of one model's chat template. Used by one thread at a time.

    Args:
        now: the current time as seen by the template.
    """

    intercepted_binops = frozenset(("+", "*", "**", "%"))
    concat = staticmethod(tracked_text.joined)  # of the output of blocks and macros

    def __init__(self, now: datetime.datetime) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_Generation, jinja2.ext.loopcontrols],
            finalize=tracked_text.text_of,
        )
        self._rounds_left, self._chars_left = MAX_ROUNDS, MAX_WORK_CHARS
        self.globals.pop("lipsum")
        self.globals["raise_exception"] = _raise_exception
        self.globals["strftime_now"] = now.strftime
        self.filters |= {"tojson": _tojson, "join": _join, "string": tracked_text.text_of, "safe": tracked_text.text_of}
        self.filters = {name: self._bounded(function, name) for name, function in self.filters.items()}

    def compiled(self, source: str) -> jinja2.Template:
        """Compile a template.

        Raises:
            jinja2.TemplateError: the source is too long or invalid.
        """
        if len(source) > MAX_SOURCE_CHARS:
            raise jinja2.TemplateError(f"the template is longer than {MAX_SOURCE_CHARS} characters")
        return self.from_string(source)

    def begin(self) -> None:
        """Reset the counts for a new rendering."""
        self._rounds_left, self._chars_left = MAX_ROUNDS, MAX_WORK_CHARS

    def count_iteration(self) -> None:
        """Count a loop iteration or macro call; called by the template.

        Raises:
            SecurityError: the limit is exceeded.
        """
        self._rounds_left -= 1
        if self._rounds_left < 0:
            raise SecurityError(f"the template exceeds {MAX_ROUNDS} loop iterations and macro calls")

    def count_work(self, *values: object) -> None:
        """Count the texts and lists among the arguments of an operation.

        Raises:
            SecurityError: the limit is exceeded.
        """
        self._chars_left -= sum(len(value) for value in values if isinstance(value, str | list | tuple | dict))
        if self._chars_left < 0:
            raise SecurityError(f"the template's operations read more than {MAX_WORK_CHARS} characters")

    def concatenate(self, *values: object) -> str:
        """The result of the `~` operator."""
        texts = [tracked_text.text_of(value) for value in values]
        _check_size(sum(map(len, texts)))
        self.count_work(*texts)
        return tracked_text.joined(texts)

    def call(self, context: Any, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        _check_numbers(args, kwargs)
        method = getattr(obj, "__wrapped__", obj)  # the sandbox wraps `format`
        text = getattr(method, "__self__", None)
        self.count_work(text, *args)
        if not isinstance(text, str):
            return super().call(context, obj, *args, **kwargs)
        kwargs = {key: value for key, value in kwargs.items() if key not in _JINJA_ARGUMENTS}
        if tracked_text.first_source((text, args, kwargs)) is None:
            return super().call(context, obj, *args, **kwargs)
        name = method.__name__
        if name in _FOLLOWED_METHODS:
            return getattr(TrackedText.made(text, tracked_text.runs_of(text)), name)(*args, **kwargs)
        plain_method = self.getattr(tracked_text.plain(text), name)
        call = functools.partial(super().call, context, plain_method)
        if name == "format" and not isinstance(text, TrackedText):
            return tracked_text.formatted(lambda args, named: call(*args, **named), args, kwargs)
        return tracked_text.covered(call(*args, **kwargs), text, args, kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        _check_operands(operator, left, right)
        self.count_work(left, right)
        if operator == "%" and isinstance(left, str):
            return _remainder(left, right)
        return super().call_binop(context, operator, left, right)

    def _bounded(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Wrap a filter to refuse huge numbers as arguments, and to keep sources of texts if the filter itself does not."""

        @functools.wraps(function)
        def bounded(*args: Any, **kwargs: Any) -> Any:
            _check_numbers(args[1:], kwargs)
            self.count_work(*args)
            if name in _FOLLOWED_FILTERS:
                args = tuple(TrackedText.whole(each, None) if type(each) is str else each for each in args)
            result = function(*args, **kwargs)
            is_followed = name in _FOLLOWED_FILTERS or name in _CHOOSING_FILTERS
            return result if is_followed else tracked_text.covered(result, *args, kwargs)

        return bounded

    def _parse(self, source: str, name: str | None, filename: str | None) -> jinja2.nodes.Template:
        tree: jinja2.nodes.Template = _Counted().visit(super()._parse(source, name, filename))
        return tree


class _Counted(jinja2.visitor.NodeTransformer):
    """Inserts a call of `count_iteration` into each loop and macro, and replaces each `~` by a call of `concatenate`."""

    def visit_For(self, node: jinja2.nodes.For) -> jinja2.nodes.Node:
        return self._counting(node)

    def visit_Macro(self, node: jinja2.nodes.Macro) -> jinja2.nodes.Node:
        return self._counting(node)

    def visit_CallBlock(self, node: jinja2.nodes.CallBlock) -> jinja2.nodes.Node:
        return self._counting(node)

    def visit_Concat(self, node: jinja2.nodes.Concat) -> jinja2.nodes.Node:
        self.generic_visit(node)
        return _method_call("concatenate", node.nodes, node.lineno)

    def _counting(self, node: Any) -> jinja2.nodes.Node:
        self.generic_visit(node)
        count = jinja2.nodes.ExprStmt(_method_call("count_iteration", [], node.lineno), lineno=node.lineno)
        node.body.insert(0, count)
        return node  # type: ignore[no-any-return]


def _method_call(name: str, arguments: list[Any], line: int) -> jinja2.nodes.Call:
    method = jinja2.nodes.EnvironmentAttribute(name, lineno=line)  # template variables cannot shadow it
    return jinja2.nodes.Call(method, arguments, [], None, None, lineno=line)


def _check_size(size: int) -> None:
    if size > MAX_RENDERED_CHARS:
        raise SecurityError(f"the template creates a value of more than {MAX_RENDERED_CHARS} elements")


def _check_numbers(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    for value in (*args, *kwargs.values()):
        if isinstance(value, int) and abs(value) > _MAX_NUMBER:
            raise SecurityError(f"the template passes a number above {_MAX_NUMBER} to a function")


def _check_operands(name: str, left: object, right: object) -> None:
    """Raise SecurityError for an operation whose result could be huge."""
    if isinstance(left, int) and isinstance(right, int):
        bits = {"*": left.bit_length() + right.bit_length(), "**": left.bit_length() * abs(right)}.get(name, 0)
        if bits > _MAX_BITS:
            raise SecurityError(f"the template computes a number of more than {_MAX_BITS} bits")
    elif name == "*":
        for many, times in ((left, right), (right, left)):
            if isinstance(many, (str, list, tuple)) and isinstance(times, int):
                _check_size(len(many) * times)
    elif name == "+" and isinstance(left, (str, list, tuple)) and isinstance(right, (str, list, tuple)):
        _check_size(len(left) + len(right))
    elif name == "%" and isinstance(left, str) and _WIDE_FORMAT.search(left):
        raise SecurityError("the template uses too large a format width")


def _remainder(template: str, values: Any) -> Any:
    """`template % values`."""
    if isinstance(template, TrackedText):
        return tracked_text.covered(tracked_text.plain(template) % values, template)
    if isinstance(values, dict):
        return tracked_text.formatted(lambda args, named: template % named, (), values)
    values = values if isinstance(values, tuple) else (values,)
    return tracked_text.formatted(lambda args, named: template % args, values, {})


@jinja2.pass_environment
def _join(
    environment: TemplateEnvironment, values: Any, separator: str = "", attribute: str | int | None = None
) -> str:
    if attribute is not None:
        values = map(jinja2.filters.make_attrgetter(environment, attribute), values)
    return tracked_text.joined(map(tracked_text.text_of, values), str(separator))


class _Generation(jinja2.ext.Extension):
    """`{% generation %}` marks assistant text for training; its body is printed unchanged."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Any) -> Any:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
