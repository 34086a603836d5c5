"""The variables with which a chat template controls the thought, found in its source.

Templates agree on nothing: `enable_thinking`, `thinking`, `reasoning` or an effort named `none` or `no_think` ends the thought; efforts
are named `reasoning_effort` or `thinking_effort`, and many templates refuse a value that they do not know. The syntax tree of a template
shows the names that it reads and the texts with which it compares them, so a request gets the nearest value that the template knows.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jinja2
import jinja2.meta
from jinja2 import nodes

from rtlang.model.text.chat_template import TemplateEnvironment

_EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
_USUAL_EFFORTS = ("low", "medium", "high")
"""The efforts for templates that write the given value into the prompt."""
_OFF = ("none", "no_think", "nothink", "off", "disabled", "disable", "chat", "false")
_ON = ("enabled", "enable", "on", "thinking", "think", "true")
_SWITCHES = frozenset(("enable_thinking", "thinking", "reasoning", "enable_reasoning", "use_thinking"))
_INVERSE_SWITCHES = frozenset(("skip_thinking", "disable_thinking"))
_SOFT_SWITCHES = ("/no_think", "/nothink")
"""Texts in a message of the user that turn the thought off, in templates that look for them."""


@dataclass(frozen=True, slots=True)
class TemplateReading:
    """The variables that a template reads.

    Attributes:
        names: variables that the template does not set before it reads them.
        compared: for each of them, the texts with which it is compared.
        listed: the variables that must be one of several texts.
        sought: texts that the template looks for in other texts.
    """

    names: frozenset[str] = frozenset()
    compared: Mapping[str, frozenset[str]] = field(default_factory=dict)
    listed: frozenset[str] = frozenset()
    sought: frozenset[str] = frozenset()

    def known(self, name: str) -> frozenset[str]:
        """The texts with which a variable is compared."""
        return self.compared.get(name, frozenset())

    @property
    def efforts(self) -> list[str]:
        """The variables that name an effort."""
        return sorted(name for name in self.names if name.endswith(("effort", "reasoning_strength")))

    @property
    def text_switches(self) -> list[str]:
        """The variables with a text that turns the thought on, and one that turns it off."""
        found = (name for name in self.names if "think" in name or "reason" in name)
        return sorted(name for name in found if _first(_ON, self.known(name)) and _first(_OFF, self.known(name)))


@functools.lru_cache(maxsize=64)
def read_template(environment: TemplateEnvironment, source: str) -> TemplateReading:
    """Read the source of a template; an invalid one reads nothing."""
    try:
        tree = environment.parse(source)
        compared, listed = _compared(tree)
        sought = frozenset(text for each in tree.find_all(nodes.Compare) for text in _sought(each))
        names = frozenset(jinja2.meta.find_undeclared_variables(tree))  # last: it folds constants in the tree
    except (jinja2.TemplateError, RecursionError):
        return TemplateReading()
    values = {name: frozenset(compared.get(name, ())) for name in names}
    return TemplateReading(names, values, frozenset(names & listed), sought)


def _compared(tree: nodes.Template) -> tuple[dict[str, set[str]], set[str]]:
    """For each name the texts with which it is compared, also under another name; and the names that must be in a list of texts."""
    texts: dict[str, set[str]] = {}
    listed: set[str] = set()
    for comparison in tree.find_all(nodes.Compare):
        found, names = _texts(comparison), _names(comparison)
        for name in names:
            texts.setdefault(name, set()).update(found)
        if any(each.op == "notin" for each in comparison.ops):
            listed |= names
    for item in tree.find_all(nodes.Getitem):
        keys = _texts(pair.key for each in _nodes(item.node) if isinstance(each, nodes.Dict) for pair in each.items)
        for name in _names(item.arg) if keys else ():
            texts.setdefault(name, set()).update(keys)
            listed.add(name)
    for assignment in tree.find_all(nodes.Assign):
        if isinstance(assignment.target, nodes.Name):
            for name in _names(assignment.node) - {assignment.target.name}:
                texts.setdefault(name, set()).update(texts.get(assignment.target.name, ()))
    return texts, listed


def _sought(comparison: nodes.Compare) -> set[str]:
    is_search = isinstance(comparison.expr, nodes.Const) and any(each.op in ("in", "notin") for each in comparison.ops)
    return _texts(comparison.expr) if is_search else set()


def _nodes(found: nodes.Node | Iterable[nodes.Node]) -> Iterator[nodes.Node]:
    for each in (found,) if isinstance(found, nodes.Node) else found:
        yield each
        yield from each.find_all(nodes.Node)


def _names(found: nodes.Node) -> set[str]:
    return {each.name for each in _nodes(found) if isinstance(each, nodes.Name)}


def _texts(found: nodes.Node | Iterable[nodes.Node]) -> set[str]:
    return {each.value for each in _nodes(found) if isinstance(each, nodes.Const) and isinstance(each.value, str)}


def control_variables(reading: TemplateReading, controls: Mapping[str, Any]) -> dict[str, Any]:
    """The variables of the template for the controls of a request; see `TemplateOptions.controls`."""
    found: dict[str, Any] = {}
    thinks = controls.get("thinks")
    if thinks is not None:
        found |= dict.fromkeys(reading.names & _SWITCHES, thinks)
        found |= {name: _first(_ON if thinks else _OFF, reading.known(name)) for name in reading.text_switches}
        found |= dict.fromkeys(reading.names & _INVERSE_SWITCHES, not thinks)
    for name in reading.efforts:
        effort = (
            _first(_OFF, reading.known(name)) if thinks is False else _effort(reading, name, controls.get("effort"))
        )
        found |= {} if effort is None else {name: effort}
    if controls.get("budget") is not None:
        found |= {name: controls["budget"] for name in reading.names if name.endswith("budget")}
    if "verbosity" in reading.names and controls.get("verbosity") is not None:
        found["verbosity"] = controls["verbosity"]
    return found


def soft_switch(reading: TemplateReading, controls: Mapping[str, Any]) -> str:
    """The text in the last message of the user that turns the thought off, as the request asks; empty if a variable does, or nothing."""
    if controls.get("thinks") is not False or control_variables(reading, {"thinks": False}):
        return ""
    return _first(_SOFT_SWITCHES, reading.sought) or ""


def _first(texts: Sequence[str], known: frozenset[str]) -> str | None:
    return next((text for text in texts if text in known), None)


def _effort(reading: TemplateReading, name: str, asked: str | None) -> str | None:
    """The requested effort, or the nearest one that the template takes; of two, the higher."""
    known = [effort for effort in _EFFORTS if effort in reading.known(name)]
    if asked not in _EFFORTS:
        return None
    if name not in reading.listed or not known:  # the template takes others, too: it writes them, or has a default
        known = [effort for effort in _EFFORTS if effort in known or effort in _USUAL_EFFORTS]
    place = _EFFORTS.index(asked)
    return min(known, key=lambda each: (abs(_EFFORTS.index(each) - place), -_EFFORTS.index(each)), default=None)
