"""rtlang: programs that make many dependent calls to one language model.

The public names, each loaded from its module on first use, so that `import rtlang` costs nothing and never loads torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rtlang.version import VERSION as __version__

if TYPE_CHECKING:
    from rtlang.config import RuntimeConfig as RuntimeConfig
    from rtlang.config import ServeConfig as ServeConfig
    from rtlang.engine.runtime import Runtime as Runtime
    from rtlang.errors import AbortedError as AbortedError
    from rtlang.errors import BudgetError as BudgetError
    from rtlang.errors import CapacityError as CapacityError
    from rtlang.errors import ConfigError as ConfigError
    from rtlang.errors import ConnectionLostError as ConnectionLostError
    from rtlang.errors import ConstraintError as ConstraintError
    from rtlang.errors import ContextLengthError as ContextLengthError
    from rtlang.errors import DeadlineError as DeadlineError
    from rtlang.errors import DependencyError as DependencyError
    from rtlang.errors import EngineDeadError as EngineDeadError
    from rtlang.errors import GoneError as GoneError
    from rtlang.errors import GraphError as GraphError
    from rtlang.errors import InvalidValueError as InvalidValueError
    from rtlang.errors import ModelLoadError as ModelLoadError
    from rtlang.errors import NumericsError as NumericsError
    from rtlang.errors import OverloadError as OverloadError
    from rtlang.errors import ParameterError as ParameterError
    from rtlang.errors import ProgramError as ProgramError
    from rtlang.errors import ProtocolError as ProtocolError
    from rtlang.errors import RequestError as RequestError
    from rtlang.errors import RtlangError as RtlangError
    from rtlang.errors import SlowConsumerError as SlowConsumerError
    from rtlang.errors import TraceError as TraceError
    from rtlang.errors import ValueParseError as ValueParseError
    from rtlang.lang.explain import Explanation as Explanation
    from rtlang.lang.explain import explain as explain
    from rtlang.lang.expr import Sampling as Sampling
    from rtlang.lang.expr import assistant as assistant
    from rtlang.lang.expr import gen as gen
    from rtlang.lang.expr import select as select
    from rtlang.lang.expr import system as system
    from rtlang.lang.expr import text as text
    from rtlang.lang.expr import tool as tool
    from rtlang.lang.expr import user as user
    from rtlang.lang.forms import ebnf as ebnf
    from rtlang.lang.forms import either as either
    from rtlang.lang.forms import json_text as json_text
    from rtlang.lang.forms import repeated as repeated
    from rtlang.lang.forms import sequence as sequence
    from rtlang.lang.forms import tagged as tagged
    from rtlang.lang.graph import RequestGraph as RequestGraph
    from rtlang.lang.meta import Meta as Meta
    from rtlang.lang.program import Program as Program
    from rtlang.lang.program import program as program
    from rtlang.lang.result import Result as Result
    from rtlang.lang.run import set_default_runtime as set_default_runtime
    from rtlang.lang.state import Forks as Forks
    from rtlang.lang.state import State as State
    from rtlang.lang.stream import EndEvent as EndEvent
    from rtlang.lang.stream import ErrorEvent as ErrorEvent
    from rtlang.lang.stream import Stream as Stream
    from rtlang.lang.stream import TextEvent as TextEvent
    from rtlang.lang.stream import ValueEvent as ValueEvent
    from rtlang.lang.target import Target as Target
    from rtlang.lang.values import Value as Value
    from rtlang.lang.values import arg as arg
    from rtlang.params import FinishReason as FinishReason
    from rtlang.params import SamplingParams as SamplingParams
    from rtlang.params import SelectMethod as SelectMethod
    from rtlang.params import Usage as Usage
    from rtlang.serve.client import connect as connect

_MODULES = {
    "rtlang.config": "RuntimeConfig ServeConfig",
    "rtlang.engine.runtime": "Runtime",
    "rtlang.errors": (
        "AbortedError BudgetError CapacityError ConfigError ConnectionLostError ConstraintError ContextLengthError DeadlineError "
        "DependencyError EngineDeadError GoneError GraphError InvalidValueError ModelLoadError NumericsError OverloadError ParameterError "
        "ProgramError ProtocolError RequestError RtlangError SlowConsumerError TraceError ValueParseError"
    ),
    "rtlang.lang.explain": "Explanation explain",
    "rtlang.lang.expr": "Sampling assistant gen select system text tool user",
    "rtlang.lang.forms": "ebnf either json_text repeated sequence tagged",
    "rtlang.lang.graph": "RequestGraph",
    "rtlang.lang.meta": "Meta",
    "rtlang.lang.program": "Program program",
    "rtlang.lang.result": "Result",
    "rtlang.lang.run": "set_default_runtime",
    "rtlang.lang.state": "Forks State",
    "rtlang.lang.stream": "EndEvent ErrorEvent Stream TextEvent ValueEvent",
    "rtlang.lang.target": "Target",
    "rtlang.lang.values": "Value arg",
    "rtlang.params": "FinishReason SamplingParams SelectMethod Usage",
    "rtlang.serve.client": "connect",
}
_HOMES = {name: (module, name) for module, names in _MODULES.items() for name in names.split()}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'rtlang' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home[0]), home[1])
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
