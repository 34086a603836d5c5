"""The seam between the runtime and grammar libraries.

A backend turns constraints into matchers for one vocabulary (`spec.py` has the protocols). Its library is imported when the backend
is made, not before.
"""

from __future__ import annotations

from rtlang_grammars.adapters.llguidance_backend import LLGuidanceBackend
from rtlang_grammars.adapters.outlines_backend import OutlinesBackend
from rtlang_grammars.adapters.xgrammar_backend import XGrammarBackend
from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.completion.search import CompletionSearch
from rtlang_grammars.spec.protocols import GrammarBackend
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars.storage.grammar_store import GrammarStore

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
        checks_values: finished texts will be checked as the compiled grammar says (`RtlangGrammar.value_check`). Else schemas with keywords
            that masks cannot hold in full are refused.
        store: of our own engine: where compiled grammars are kept on disk, if anywhere.
    Raises:
        ValueError: no backend has this name; says which there are.
        ImportError: its library is not installed.
    """
    if name == "llguidance":
        return LLGuidanceBackend.create(vocabulary, search)
    if name == "rtlang":
        return RtlangBackend.create(vocabulary, allow_checked=checks_values, store=store)
    if name == "xgrammar":
        return XGrammarBackend.create(vocabulary, search)
    if name == "outlines":
        return OutlinesBackend.create(vocabulary, search)
    raise ValueError(f"no grammar backend is called {name!r}; there are {', '.join(BACKENDS)}")
