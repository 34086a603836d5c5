"""Creates grammar backends by name.

A backend compiles constraints to matchers for one vocabulary; `spec.protocols` defines the interface. The library of an adapter is imported
when its backend is created.
"""

from __future__ import annotations

from importlib.util import find_spec

from rtlang_grammars.adapters.llguidance_backend import LLGuidanceBackend
from rtlang_grammars.adapters.outlines_backend import OutlinesBackend
from rtlang_grammars.adapters.xgrammar_backend import XGrammarBackend
from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.completion.search import CompletionSearch
from rtlang_grammars.spec.protocols import GrammarBackend
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars.storage.grammar_store import GrammarStore

BACKENDS = ("rtlang", "llguidance", "xgrammar", "outlines")
"""The library's own backend, which is the default, and the adapters. Each adapter needs the extra of the same name."""

_LIBRARIES = {"llguidance": "llguidance", "xgrammar": "xgrammar", "outlines": "outlines_core"}


def missing_library(name: str) -> str | None:
    """The library that backend `name` requires but that is not installed; None if nothing is missing."""
    library = _LIBRARIES.get(name)
    return library if library is not None and find_spec(library) is None else None


def create_backend(
    name: str,
    vocabulary: Vocabulary,
    search: CompletionSearch | None = None,
    *,
    checks_values: bool = False,
    store: GrammarStore | None = None,
) -> GrammarBackend:
    """Create the backend called `name` for one vocabulary. Takes up to a second for large vocabularies.

    Args:
        search: a search over the same vocabulary, whose tables are shared.
        checks_values: True: the caller runs the check of each compiled grammar (`RtlangGrammar.value_check`) on finished texts. False:
            schemas with keywords that masks cannot enforce in full are refused.
        store: where compiled grammars are kept on disk, for the backend `rtlang`; None: nowhere.
    Raises:
        ValueError: unknown name; lists the known ones.
        ImportError: the library of the backend is not installed.
    """
    if name == "llguidance":
        return LLGuidanceBackend.create(vocabulary, search)
    if name == "rtlang":
        return RtlangBackend.create(vocabulary, allow_checked=checks_values, store=store)
    if name == "xgrammar":
        return XGrammarBackend.create(vocabulary, search)
    if name == "outlines":
        return OutlinesBackend.create(vocabulary, search)
    raise ValueError(f"grammar backend = {name!r}: expected one of {', '.join(BACKENDS)}")
