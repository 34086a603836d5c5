"""A sandboxed, bounded Jinja environment for chat templates.

A template is untrusted code, from the checkpoint or from a request. It runs in Jinja's immutable sandbox, with limits on the number of loop
iterations and macro calls per rendering, on its CPU time, and on the size of values that it makes. Its operators, methods and filters keep
the sources of `TrackedText`.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox
import jinja2.utils
import jinja2.visitor

from rtlang.model.text import template_bounds, tracked_text
from rtlang.model.text.template_bounds import MAX_BITS, LimitExceeded, check_scalar, check_size
from rtlang.model.text.tracked_text import TrackedText

MAX_SOURCE_CHARS = 1 << 20
MAX_ROUNDS = 1_000_000
"""Maximum loop iterations plus macro calls per rendering. Published templates need a few per message."""
MAX_WORK_CHARS = 1 << 28
"""Maximum characters that the operators, methods and filters of one rendering read; about a second of work."""
MAX_RENDER_CPU_S = 4.0
"""Maximum CPU time of one rendering: others wait for the thread that renders."""
_MAX_NUMBER = 100_000
_MAX_TIME_FORMAT_CHARS = 1_000
_FOLLOWED_METHODS = frozenset(name for name in vars(TrackedText) if not name.startswith("_") and name != "runs")
_FOLLOWED_FILTERS = frozenset(("trim", "replace", "join", "lower", "upper", "capitalize", "string", "safe"))
"""Filters that call methods of `TrackedText` on their arguments."""
_CHOOSING_FILTERS = frozenset(("default", "d", "first", "last", "random", "min", "max", "attr"))
"""Filters that return a part of an argument."""
_JINJA_ARGUMENTS = ("_loop_vars", "_block_vars")
"""Arguments that compiled templates pass with every call in a loop or a block."""
_CONTAINERS = (list, tuple, dict)
_MAX_NESTING = 200


class _Counts(threading.local):
    """What is left of the limits of a rendering, on the thread that renders.

    Attributes:
        sizes: characters and elements of values that were counted, by id, with the value.
    """

    def __init__(self) -> None:
        self.sizes: dict[int, tuple[object, int]] = {}
        self.reset()

    def reset(self) -> None:
        """Start a rendering."""
        self.rounds_left, self.chars_left = MAX_ROUNDS, MAX_WORK_CHARS
        self.sizes.clear()
        self.end_of_time = time.thread_time() + MAX_RENDER_CPU_S


class TemplateEnvironment(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """The Jinja environment of one model's chat template. Used by one thread at a time.

    Args:
        now: the current time as seen by the template.
    """

    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "**", "%"))
    concat = staticmethod(tracked_text.joined)  # of the output of blocks and macros

    def __init__(self, now: datetime.datetime) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_Generation, jinja2.ext.loopcontrols],
            finalize=self._written,
        )
        self._counts = _Counts()
        self.globals.pop("lipsum")
        self.globals["namespace"] = _Namespace
        self.globals["raise_exception"] = _raise_exception
        self.globals["strftime_now"] = functools.partial(_time_text, now)
        self.filters |= {"tojson": _tojson, "join": _join, "sum": _sum, "string": self._written, "safe": self._written}
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
        """Reset the counts for a new rendering on this thread; others may render at the same time."""
        self._counts.reset()

    def count_iteration(self) -> None:
        """Count a loop iteration or macro call; called by the template.

        Raises:
            LimitExceeded: the limit is exceeded, or the time is over.
        """
        self._counts.rounds_left -= 1
        self._check_time()
        if self._counts.rounds_left < 0:
            raise LimitExceeded(f"the template exceeds {MAX_ROUNDS} loop iterations and macro calls")

    def count_work(self, *values: object) -> None:
        """Count the texts and lists among the arguments of an operation.

        Raises:
            LimitExceeded: the limit is exceeded, or the time is over.
        """
        self._check_time()
        self._counts.chars_left -= sum(len(value) for value in values if isinstance(value, str | list | tuple | dict))
        if self._counts.chars_left < 0:
            raise LimitExceeded(f"the template's operations read more than {MAX_WORK_CHARS} characters")

    def built(self, value: Any) -> Any:
        """A list, tuple or map that the template makes, or a result that may be one.

        Raises:
            LimitExceeded: its texts and elements are too many, counted as often as they would be written; or it is bytes or a huge number.
        """
        if isinstance(value, _CONTAINERS):
            check_size(self._size(value))
        else:
            check_scalar(value)
        return value

    def _result(self, value: Any) -> Any:
        """A result, which counts as work: lazy filters could make more texts than memory holds."""
        self.count_work(value)
        if isinstance(value, str) and len(value) > template_bounds.MAX_BOUND_CHARS:
            raise LimitExceeded(
                f"the template creates a text of more than {template_bounds.MAX_BOUND_CHARS} characters"
            )
        return self.built(value)

    def _size(self, value: object, depth: int = 0) -> int:
        """The characters and elements in a value. Values do not change while a template runs, so each is counted once."""
        if isinstance(value, str):
            return len(value) + 1
        if not isinstance(value, _CONTAINERS):
            return 1
        known = self._counts.sizes.get(id(value))
        if known is not None:
            return known[1]
        if depth > _MAX_NESTING:
            raise LimitExceeded(f"the template nests values more than {_MAX_NESTING} deep")
        inner = itertools.chain(value, value.values()) if isinstance(value, dict) else value
        size = 1 + sum(self._size(each, depth + 1) for each in inner)
        self._counts.sizes[id(value)] = value, size
        return size

    def _written(self, value: Any) -> str:
        """The text of a value."""
        return tracked_text.text_of(self.built(value))

    def _check_time(self) -> None:
        if time.thread_time() > self._counts.end_of_time:
            raise LimitExceeded(f"the template runs for more than {MAX_RENDER_CPU_S:g} s")

    def concatenate(self, *values: object) -> str:
        """The result of the `~` operator."""
        texts = [self._written(value) for value in values]
        check_size(sum(map(len, texts)))
        self.count_work(*texts)
        return tracked_text.joined(texts)

    def call(self, context: Any, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        _check_numbers(args, kwargs)
        method = getattr(obj, "__wrapped__", obj)  # the sandbox wraps `format`
        text = getattr(method, "__self__", None)
        self.count_work(text, *args)
        for value in (*args, *kwargs.values()):
            self.built(value)
        if not isinstance(text, str):
            return self._result(super().call(context, obj, *args, **kwargs))
        name = method.__name__
        if name == "join" and len(args) == 1:
            return self._result(_join(self, args[0], text))
        template_bounds.check_method(name, text, args, kwargs)
        return self._result(self._call_of_text(context, obj, method, text, args, kwargs))

    def _call_of_text(
        self, context: Any, obj: Any, method: Any, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The result of a method of text, with the sources of texts of messages."""
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
            template_bounds.check_percent(left, self.built(right))
            return self._result(_remainder(left, right))
        return self._result(super().call_binop(context, operator, left, right))

    def _bounded(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Wrap a filter to refuse huge numbers as arguments, and to keep sources of texts if the filter itself does not."""

        at = int(hasattr(function, "jinja_pass_arg"))  # of the filtered value

        @functools.wraps(function)
        def bounded(*args: Any, **kwargs: Any) -> Any:
            _check_numbers(args[1:], kwargs)
            self.count_work(*args)
            for value in (*args, *kwargs.values()):
                self.built(value)
            template_bounds.check_filter(name, args[at], args[at + 1 :], kwargs, self._size(args[at]))
            if name in _FOLLOWED_FILTERS:
                args = tuple(TrackedText.whole(each, None) if type(each) is str else each for each in args)
            result = self._result(function(*args, **kwargs))
            is_followed = name in _FOLLOWED_FILTERS or name in _CHOOSING_FILTERS
            return result if is_followed else tracked_text.covered(result, *args, kwargs)

        return bounded

    def _parse(self, source: str, name: str | None, filename: str | None) -> jinja2.nodes.Template:
        tree: jinja2.nodes.Template = _Counted().visit(super()._parse(source, name, filename))
        return tree


class _Namespace(jinja2.utils.Namespace):
    """`namespace()` of Jinja, whose values may change: its text does not show them."""

    def __repr__(self) -> str:
        return "<Namespace>"


class _Counted(jinja2.visitor.NodeTransformer):
    """Inserts a call of `count_iteration` into each loop and macro, and calls of `built` and `concatenate` where values are made."""

    def visit_List(self, node: jinja2.nodes.List) -> jinja2.nodes.Node:
        return self._building(node)

    def visit_Tuple(self, node: jinja2.nodes.Tuple) -> jinja2.nodes.Node:
        return self._building(node) if node.ctx == "load" else node

    def visit_Dict(self, node: jinja2.nodes.Dict) -> jinja2.nodes.Node:
        return self._building(node)

    def visit_For(self, node: jinja2.nodes.For) -> jinja2.nodes.Node:
        return self._counting(node)

    def visit_Macro(self, node: jinja2.nodes.Macro) -> jinja2.nodes.Node:
        return self._counting(node)

    def visit_CallBlock(self, node: jinja2.nodes.CallBlock) -> jinja2.nodes.Node:
        return self._counting(node)

    def visit_Concat(self, node: jinja2.nodes.Concat) -> jinja2.nodes.Node:
        self.generic_visit(node)
        return _method_call("concatenate", node.nodes, node.lineno)

    def _building(self, node: Any) -> jinja2.nodes.Node:
        self.generic_visit(node)
        return _method_call("built", [node], node.lineno)

    def _counting(self, node: Any) -> jinja2.nodes.Node:
        self.generic_visit(node)
        count = jinja2.nodes.ExprStmt(_method_call("count_iteration", [], node.lineno), lineno=node.lineno)
        node.body.insert(0, count)
        return node  # type: ignore[no-any-return]


def _method_call(name: str, arguments: list[Any], line: int) -> jinja2.nodes.Call:
    method = jinja2.nodes.EnvironmentAttribute(name, lineno=line)  # template variables cannot shadow it
    return jinja2.nodes.Call(method, arguments, [], None, None, lineno=line)


def _check_numbers(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    for value in (*args, *kwargs.values()):
        if isinstance(value, int) and abs(value) > _MAX_NUMBER:
            raise LimitExceeded(f"the template passes a number above {_MAX_NUMBER} to a function")


def _check_operands(name: str, left: object, right: object) -> None:
    """Raise LimitExceeded for an operation whose result could be huge."""
    check_scalar(left)
    check_scalar(right)
    if isinstance(left, int) and isinstance(right, int):
        bits = {"*": left.bit_length() + right.bit_length(), "**": left.bit_length() * abs(right)}.get(name, 0)
        if bits > MAX_BITS:
            raise LimitExceeded(f"the template computes a number of more than {MAX_BITS} bits")
    elif name == "*":
        for many, times in ((left, right), (right, left)):
            if isinstance(many, (str, list, tuple)) and isinstance(times, int):
                check_size(len(many) * times)
    elif name == "+" and isinstance(left, (str, list, tuple)) and isinstance(right, (str, list, tuple)):
        check_size(len(left) + len(right))


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
    separator = environment._written(separator)
    return tracked_text.joined(template_bounds.bounded_pieces(values, separator, environment._written), separator)


@jinja2.pass_environment
def _sum(environment: TemplateEnvironment, values: Any, attribute: str | int | None = None, start: Any = 0) -> Any:
    """`sum` of Jinja, by the operator of the template."""
    if attribute is not None:
        values = map(jinja2.filters.make_attrgetter(environment, attribute), values)
    for value in values:
        start = environment.call_binop(None, "+", start, value)
    return start


def _time_text(now: datetime.datetime, form: str) -> str:
    if len(form) > _MAX_TIME_FORMAT_CHARS or template_bounds.has_wide_directive(form):
        raise LimitExceeded("the template uses too long a format of the time")
    return now.strftime(form)


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
