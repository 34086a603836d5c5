"""The seam between the runtime and grammar libraries.

A backend turns constraints into matchers for one vocabulary (`spec.py` has the protocols). Its library is imported when the backend
is made, not before.
"""

from __future__ import annotations

from rtlang_grammars.closing import CompletionSearch
from rtlang_grammars.engine_backend import EngineBackend
from rtlang_grammars.grammar_store import GrammarStore
from rtlang_grammars.llguidance_backend import LLGuidanceBackend
from rtlang_grammars.outlines_backend import OutlinesBackend
from rtlang_grammars.spec import GrammarBackend
from rtlang_grammars.vocabulary import Vocabulary
from rtlang_grammars.xgrammar_backend import XGrammarBackend

BACKENDS = ("rtlang", "llguidance", "xgrammar", "outlines")
"""Our own engine, the default, and adapters to others. xgrammar has to be installed besides; see the extra `bench`."""


def create_backend(
    name: str,
    vocabulary: Vocabulary,
    search: CompletionSearch | None = None,
    *,
    checks_values: bool = False,
    store: GrammarStore | None = None,
) -> GrammarBackend:
    """The backend called `name`, for one vocabulary. Takes up to a second for large vocabularies; make it once.

    Args:
        search: of the same vocabulary, where one is at hand.
        checks_values: finished texts will be checked as the compiled grammar says (`EngineGrammar.value_check`). Else schemas with keywords
            that masks cannot hold in full are refused.
        store: of our own engine: where compiled grammars are kept on disk, if anywhere.
    Raises:
        ValueError: no backend has this name; says which there are.
        ImportError: its library is not installed.
    """
    if name == "llguidance":
        return LLGuidanceBackend.create(vocabulary, search)
    if name == "rtlang":
        return EngineBackend.create(vocabulary, allow_checked=checks_values, store=store)
    if name == "xgrammar":
        return XGrammarBackend.create(vocabulary, search)
    if name == "outlines":
        return OutlinesBackend.create(vocabulary, search)
    raise ValueError(f"no grammar backend is called {name!r}; there are {', '.join(BACKENDS)}")
