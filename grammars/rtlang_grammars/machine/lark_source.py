"""Lark grammars: read with `lark`, turned into rules and terminals of our own.

`lark` parses the grammar, resolves imports and puts terminals into each other. From its trees, which still have EBNF's operators, rules are
made directly: the library's own way to plain rules multiplies out what is optional.
"""

from __future__ import annotations

import re
from importlib import resources
from typing import Any

from rtlang_grammars.limits import Budget
from rtlang_grammars.machine.cfg import Grammar, Rule
from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.spec import GrammarError

MAX_LARK_BYTES = 128 << 10
"""The library reads some 200 kB a second and cannot be stopped."""
_MAX_REPEATS = 1000
_MAX_TEMPLATES = 1000


def read_lark(source: str, budget: Budget) -> Grammar:
    """The rules and terminals of a grammar with a rule `start`.

    Raises:
        GrammarError: not a grammar, or it uses what is not supported, with `line:column` where it is known.
    """
    if len(source) > MAX_LARK_BYTES:
        raise GrammarError(f"too long: a Lark grammar may have {MAX_LARK_BYTES} bytes")
    try:
        return _Reader(_parsed(source), budget).read()
    except RecursionError:
        raise GrammarError("nested too deeply") from None


def _parsed(source: str) -> Any:
    from lark.exceptions import LarkError, UnexpectedInput
    from lark.load_grammar import load_grammar

    try:
        paths = [str(resources.files("rtlang_grammars") / "library")]
        return load_grammar(source, "<grammar>", paths, False)[0]
    except UnexpectedInput as error:
        raise GrammarError(_first_line(error), f"{error.line}:{error.column}") from error
    except (LarkError, OSError, ValueError) as error:
        place = re.search(r"line (\d+),? column (\d+)", str(error))
        raise GrammarError(_first_line(error), f"{place[1]}:{place[2]}" if place else None) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:300]


class _Reader:
    """Turns the trees of one grammar into rules. Owned by one compile."""

    def __init__(self, parsed: Any, budget: Budget) -> None:
        self._budget = budget
        self._trees: dict[str, tuple[tuple[str, ...], Any]] = {
            str(name): (tuple(map(str, parameters)), tree) for name, parameters, tree, _ in parsed.rule_defs
        }
        self._terms: dict[str, Any] = {str(name): tree for name, (tree, _) in parsed.term_defs}
        self._ignored = [str(name) for name in parsed.ignore]
        self._rules: list[Rule] = []
        self._numbers: dict[str, int] = {}
        self._waiting: list[tuple[int, Any, dict[str, Any]]] = []
        self._terminals: list[Language] = []
        self._by_key: dict[str, int] = {}
        self._languages: dict[int, Language] = {}
        self._num_templates = 0

    def read(self) -> Grammar:
        """All rules that `start` reaches."""
        if "start" not in self._trees:
            raise GrammarError("a Lark grammar needs a rule called start")
        start = self._rule("start")
        while self._waiting:
            number, tree, arguments = self._waiting.pop()
            self._expression(self._rules[number], tree, 0, 1, arguments)
        ignored = [self._named_terminal(name) for name in self._ignored]
        return Grammar(self._rules, self._terminals, ignored, start)

    def _rule(self, name: str) -> int:
        found = self._numbers.get(name)
        if found is None:
            if name not in self._trees:
                raise GrammarError(f"the rule {name} is used and not defined")
            parameters, tree = self._trees[name]
            if parameters:
                raise GrammarError(f"the template {name} is used without arguments")
            found = self._add_rule(name, tree, {})
            self._numbers[name] = found
        return found

    def _add_rule(self, name: str, tree: Any, arguments: dict[str, Any]) -> int:
        self._budget.spend(states=1)
        self._rules.append(Rule(name))
        self._waiting.append((len(self._rules) - 1, tree, arguments))
        return len(self._rules) - 1

    def _expression(self, rule: Rule, tree: Any, start: int, end: int, arguments: dict[str, Any]) -> None:
        """Add what `tree` says between two positions of a rule."""
        self._budget.spend(states=1)
        match tree.data:
            case "expansions":
                for each in tree.children:
                    self._expression(rule, each, start, end, arguments)
            case "alias":
                self._expression(rule, tree.children[0], start, end, arguments)
            case "expansion":
                at = start
                for i, each in enumerate(tree.children):
                    to = end if i == len(tree.children) - 1 else rule.position()
                    self._expression(rule, each, at, to, arguments)
                    at = to
                if not tree.children:
                    rule.empty[start].append(end)
            case "maybe":
                rule.empty[start].append(end)
                self._expression(rule, tree.children[0], start, end, arguments)
            case "expr":
                self._repetition(rule, tree, start, end, arguments)
            case "value":
                self._value(rule, tree.children[0], start, end, arguments)
            case "template_usage" | "literal" | "range":
                self._value(rule, tree, start, end, arguments)
            case other:
                raise GrammarError(f"{other} is not supported in a rule")

    def _repetition(self, rule: Rule, tree: Any, start: int, end: int, arguments: dict[str, Any]) -> None:
        inner = tree.children[0]
        low, high = _bounds(tree)
        at = start
        for _ in range(low):
            to = rule.position()
            self._expression(rule, inner, at, to, arguments)
            at = to
        if high is None:
            loop = rule.position()
            rule.empty[at].append(loop)
            again = rule.position()
            self._expression(rule, inner, loop, again, arguments)
            rule.empty[again].append(loop)
            at = loop
        else:
            for _ in range(high - low):
                rule.empty[at].append(end)
                to = rule.position()
                self._expression(rule, inner, at, to, arguments)
                at = to
        rule.empty[at].append(end)

    def _value(self, rule: Rule, item: Any, start: int, end: int, arguments: dict[str, Any]) -> None:
        from lark.grammar import NonTerminal, Terminal

        if isinstance(item, NonTerminal):
            name = str(item.name)
            if name in arguments:
                kept = arguments[name]
                self._value(rule, kept[0], start, end, kept[1])
            else:
                rule.moves[start].append((-1 - self._rule(name), end))
        elif isinstance(item, Terminal):
            rule.moves[start].append((self._named_terminal(str(item.name)), end))
        elif item.data in ("literal", "range"):
            rule.moves[start].append((self._terminal(str(item), self._language(item)), end))
        elif item.data == "template_usage":
            rule.moves[start].append((-1 - self._template(item, arguments), end))
        else:
            self._expression(rule, item, start, end, arguments)

    def _template(self, usage: Any, arguments: dict[str, Any]) -> int:
        name, given = str(usage.children[0].name), usage.children[1:]
        if name not in self._trees:
            raise GrammarError(f"the template {name} is used and not defined")
        parameters, tree = self._trees[name]
        if len(parameters) != len(given):
            raise GrammarError(f"the template {name} takes {len(parameters)} arguments")
        bound = {}
        for parameter, each in zip(parameters, given, strict=True):
            item = each.children[0] if getattr(each, "data", None) == "value" else each
            known = arguments.get(str(getattr(item, "name", "")))
            bound[parameter] = known if known is not None else (item, arguments)
        key = f"{name}{{{', '.join(str(bound[p][0]) for p in parameters)}}}"
        found = self._numbers.get(key)
        if found is None:
            self._num_templates += 1
            if self._num_templates > _MAX_TEMPLATES:
                raise GrammarError(f"the template {name} is used in more than {_MAX_TEMPLATES} ways")
            found = self._numbers[key] = self._add_rule(name, tree, bound)
        return found

    # Terminals

    def _named_terminal(self, name: str) -> int:
        found = self._by_key.get(name)
        if found is None:
            if self._terms.get(name) is None:
                raise GrammarError(f"the terminal {name} is used and not defined, or declared without a pattern")
            found = self._by_key[name] = self._terminal(f"terminal {name}", self._language(self._terms[name]))
        return found

    def _terminal(self, key: str, language: Language) -> int:
        found = self._by_key.get(key)
        if found is None:
            if language.accepts("", self._budget):
                raise GrammarError(f"a terminal matches the empty text: {key[:80]}")
            found = self._by_key[key] = len(self._terminals)
            self._terminals.append(language)
        return found

    def _language(self, tree: Any) -> Language:
        """The texts of a tree of terminals, which may share parts."""
        found = self._languages.get(id(tree))
        if found is None:
            self._budget.spend(states=1)
            found = self._languages[id(tree)] = self._made_language(tree)
        return found

    def _made_language(self, tree: Any) -> Language:
        match tree.data:
            case "expansions":
                first, *others = map(self._language, tree.children)
                return first.union(*others) if others else first
            case "expansion":
                parts = list(map(self._language, tree.children))
                if not parts:
                    return Language.literal("")
                return parts[0].concat(*parts[1:]) if len(parts) > 1 else parts[0]
            case "value" | "alias":
                return self._language(tree.children[0])
            case "maybe":
                return self._language(tree.children[0]).starred(0, 1)
            case "expr":
                low, high = _bounds(tree)
                return self._language(tree.children[0]).starred(low, high)
            case "literal":
                return self._literal(tree.children[0])
            case "range":
                first_text, last_text = (_unquoted(token) for token in tree.children)
                if len(first_text) != 1 or len(last_text) != 1 or first_text > last_text:
                    raise GrammarError("a range needs two characters in order", _place(tree.children[0]))
                return Language.code_points([(ord(first_text), ord(last_text))])
            case other:
                raise GrammarError(f"{other} is not supported in a terminal")

    def _literal(self, token: Any) -> Language:
        text = str(token)
        body, _, flags = text.rpartition("/" if token.type == "REGEXP" else '"')
        if token.type == "REGEXP":
            pattern = _evaluated(body[1:], token)
        else:
            pattern = re.escape(_unquoted(token))
        if flags:
            pattern = f"(?{flags}:{pattern})"
        try:
            return compile_regex(pattern, dialect="lark", budget=self._budget)
        except GrammarError as error:
            raise GrammarError(error.reason, _place(token)) from error


def _place(token: Any) -> str | None:
    return f"{token.line}:{token.column}" if getattr(token, "line", None) is not None else None


def _evaluated(body: str, token: Any) -> str:
    """A body with Python's escapes of characters replaced; a backslash is still doubled."""
    from lark.exceptions import LarkError
    from lark.load_grammar import eval_escaping

    try:
        return str(eval_escaping(body))
    except (LarkError, ValueError) as error:
        raise GrammarError(f"bad escapes: {body[:60]}", _place(token)) from error


def _unquoted(token: Any) -> str:
    """The text of a quoted string."""
    body = str(token)
    return _evaluated(body[1 : body.rindex('"')], token).replace("\\\\", "\\")


def _bounds(tree: Any) -> tuple[int, int | None]:
    """How often the operator of an `expr` repeats."""
    operator = str(tree.children[1])
    if operator != "~":
        return {"?": (0, 1), "*": (0, None), "+": (1, None)}[operator]
    low = int(tree.children[2])
    high = int(tree.children[3]) if len(tree.children) > 3 else low
    if low > high or high > _MAX_REPEATS:
        raise GrammarError(f"a repetition needs bounds in order, up to {_MAX_REPEATS}", _place(tree.children[2]))
    return low, high
