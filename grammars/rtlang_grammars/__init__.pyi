"""Types of the exported names; `__init__.py` loads them when first used."""

from rtlang_grammars.api.rtlang_backend import RtlangBackend as RtlangBackend
from rtlang_grammars.completion.completion_path import CompletionPath as CompletionPath
from rtlang_grammars.completion.search import CompletionSearch as CompletionSearch
from rtlang_grammars.completion.token_budget import TokenBudget as TokenBudget
from rtlang_grammars.context_free.lark_library import library_constraint as library_constraint
from rtlang_grammars.lowering.compilation import check_constraint as check_constraint
from rtlang_grammars.machine.batch import fill_batch as fill_batch
from rtlang_grammars.machine.batch import fill_tree as fill_tree
from rtlang_grammars.schema.reading.report import KeywordStatus as KeywordStatus
from rtlang_grammars.schema.reading.report import Report as Report
from rtlang_grammars.schema.value_checks import ValueCheck as ValueCheck
from rtlang_grammars.spec.constraint import (
    ANY_STYLE as ANY_STYLE,
)
from rtlang_grammars.spec.constraint import (
    Constraint as Constraint,
)
from rtlang_grammars.spec.constraint import (
    ConstraintKind as ConstraintKind,
)
from rtlang_grammars.spec.constraint import (
    Indentation as Indentation,
)
from rtlang_grammars.spec.constraint import (
    JsonLayout as JsonLayout,
)
from rtlang_grammars.spec.constraint import (
    JsonStyle as JsonStyle,
)
from rtlang_grammars.spec.constraint import (
    Lexer as Lexer,
)
from rtlang_grammars.spec.constraint import (
    Numbers as Numbers,
)
from rtlang_grammars.spec.constraint import (
    PropertyOrder as PropertyOrder,
)
from rtlang_grammars.spec.constraint import (
    Whitespace as Whitespace,
)
from rtlang_grammars.spec.errors import EmptyMaskError as EmptyMaskError
from rtlang_grammars.spec.errors import GrammarError as GrammarError
from rtlang_grammars.spec.limits import Limits as Limits
from rtlang_grammars.spec.protocols import (
    CompiledGrammar as CompiledGrammar,
)
from rtlang_grammars.spec.protocols import (
    GrammarMatcher as GrammarMatcher,
)
from rtlang_grammars.spec.protocols import (
    TextCheck as TextCheck,
)
from rtlang_grammars.spec.vocabulary import Vocabulary as Vocabulary
from rtlang_grammars.storage.grammar_store import GrammarStore as GrammarStore
