"""Token masks for JSON Schema, regular expressions and context-free grammars, and completions that fit a token budget.

The names below are loaded when first used, so that describing a constraint loads neither numpy nor numba. `__init__.pyi` types them.
"""

from importlib import import_module as _import_module

_API, _SPEC, _COMPLETION = "rtlang_grammars.api", "rtlang_grammars.spec", "rtlang_grammars.completion"
_MODULES = {
    "ANY_STYLE": f"{_SPEC}.constraint",
    "CompiledGrammar": f"{_SPEC}.protocols",
    "CompletionPath": f"{_COMPLETION}.completion_path",
    "CompletionSearch": f"{_COMPLETION}.search",
    "Constraint": f"{_SPEC}.constraint",
    "ConstraintKind": f"{_SPEC}.constraint",
    "EmptyMaskError": f"{_SPEC}.errors",
    "GrammarError": f"{_SPEC}.errors",
    "GrammarMatcher": f"{_SPEC}.protocols",
    "GrammarStore": "rtlang_grammars.storage.grammar_store",
    "Indentation": f"{_SPEC}.constraint",
    "JsonLayout": f"{_SPEC}.constraint",
    "JsonStyle": f"{_SPEC}.constraint",
    "Lexer": f"{_SPEC}.constraint",
    "KeywordStatus": "rtlang_grammars.schema.reading.report",
    "Limits": f"{_SPEC}.limits",
    "Numbers": f"{_SPEC}.constraint",
    "PropertyOrder": f"{_SPEC}.constraint",
    "RtlangBackend": f"{_API}.rtlang_backend",
    "Report": "rtlang_grammars.schema.reading.report",
    "TextCheck": f"{_SPEC}.protocols",
    "TokenBudget": f"{_COMPLETION}.token_budget",
    "ValueCheck": "rtlang_grammars.schema.value_checks",
    "Vocabulary": f"{_SPEC}.vocabulary",
    "Whitespace": f"{_SPEC}.constraint",
    "check_constraint": "rtlang_grammars.lowering.compilation",
    "fill_batch": "rtlang_grammars.machine.batch",
    "fill_tree": "rtlang_grammars.machine.batch",
    "library_constraint": "rtlang_grammars.context_free.lark_library",
}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'rtlang_grammars' has no attribute {name!r}")
    return getattr(_import_module(_MODULES[name]), name)
