"""rtlang: programs that make many dependent calls to one language model.

The public names, each loaded from its module on first use, so that `import rtlang` costs nothing and never loads torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rtlang.contract.version import VERSION as __version__

if TYPE_CHECKING:
    from rtlang.cassette.surface import journal as journal
    from rtlang.cassette.surface import record as record
    from rtlang.cassette.surface import replay as replay
    from rtlang.client.async_runtime import connect_async as connect_async
    from rtlang.contract.config import RuntimeConfig as RuntimeConfig
    from rtlang.contract.config import ServeConfig as ServeConfig
    from rtlang.contract.errors import AbortedError as AbortedError
    from rtlang.contract.errors import ApplyError as ApplyError
    from rtlang.contract.errors import BudgetError as BudgetError
    from rtlang.contract.errors import CallError as CallError
    from rtlang.contract.errors import CapacityError as CapacityError
    from rtlang.contract.errors import CassetteError as CassetteError
    from rtlang.contract.errors import CheckError as CheckError
    from rtlang.contract.errors import ConfigError as ConfigError
    from rtlang.contract.errors import ConnectionLostError as ConnectionLostError
    from rtlang.contract.errors import ConstraintError as ConstraintError
    from rtlang.contract.errors import ContextLengthError as ContextLengthError
    from rtlang.contract.errors import DeadEndError as DeadEndError
    from rtlang.contract.errors import DeadlineError as DeadlineError
    from rtlang.contract.errors import DependencyError as DependencyError
    from rtlang.contract.errors import EngineDeadError as EngineDeadError
    from rtlang.contract.errors import GoneError as GoneError
    from rtlang.contract.errors import GraphError as GraphError
    from rtlang.contract.errors import InternalError as InternalError
    from rtlang.contract.errors import InvalidValueError as InvalidValueError
    from rtlang.contract.errors import JournalError as JournalError
    from rtlang.contract.errors import McpError as McpError
    from rtlang.contract.errors import ModelLoadError as ModelLoadError
    from rtlang.contract.errors import NumericsError as NumericsError
    from rtlang.contract.errors import OverloadError as OverloadError
    from rtlang.contract.errors import ParameterError as ParameterError
    from rtlang.contract.errors import ProgramError as ProgramError
    from rtlang.contract.errors import ProtocolError as ProtocolError
    from rtlang.contract.errors import QuestionError as QuestionError
    from rtlang.contract.errors import RequestError as RequestError
    from rtlang.contract.errors import RtlangError as RtlangError
    from rtlang.contract.errors import ScriptError as ScriptError
    from rtlang.contract.errors import SlowConsumerError as SlowConsumerError
    from rtlang.contract.errors import SpentError as SpentError
    from rtlang.contract.errors import SwitchError as SwitchError
    from rtlang.contract.errors import ToolError as ToolError
    from rtlang.contract.errors import TraceError as TraceError
    from rtlang.contract.errors import UnansweredError as UnansweredError
    from rtlang.contract.errors import UnknownOutcomeError as UnknownOutcomeError
    from rtlang.contract.errors import ValueMemoryError as ValueMemoryError
    from rtlang.contract.errors import ValueParseError as ValueParseError
    from rtlang.contract.graph.template_options import TemplateOptions as TemplateOptions
    from rtlang.contract.params import FinishReason as FinishReason
    from rtlang.contract.params import SamplingParams as SamplingParams
    from rtlang.contract.params import SelectMethod as SelectMethod
    from rtlang.contract.params import Usage as Usage
    from rtlang.contract.pictures.run_diff import RunDiff as RunDiff
    from rtlang.contract.process.call_context import Question as Question
    from rtlang.contract.process.call_context import idempotency_key as idempotency_key
    from rtlang.contract.request_graph import RequestGraph as RequestGraph
    from rtlang.contract.runs.budget import Budget as Budget
    from rtlang.contract.runs.principal import Principal as Principal
    from rtlang.contract.runs.principal import PrincipalLimits as PrincipalLimits
    from rtlang.contract.runs.run_options import RunOptions as RunOptions
    from rtlang.contract.service.cache_report import CacheExplanation as CacheExplanation
    from rtlang.contract.service.generation import Generation as Generation
    from rtlang.contract.service.generation import generation_graph as generation_graph
    from rtlang.contract.service.snapshot import EngineSnapshot as EngineSnapshot
    from rtlang.contract.service.target import Target as Target
    from rtlang.fleet.connect import connect as connect
    from rtlang.fleet.ray_data import map_batches as map_batches
    from rtlang.lang.best_of import best_of as best_of
    from rtlang.lang.control import best as best
    from rtlang.lang.control import call as call
    from rtlang.lang.control import first as first
    from rtlang.lang.control import repeat as repeat
    from rtlang.lang.control import switch as switch
    from rtlang.lang.control import vote as vote
    from rtlang.lang.decorator import program as program
    from rtlang.lang.diff import diff as diff
    from rtlang.lang.effect_marks import effect as effect
    from rtlang.lang.effect_marks import pure as pure
    from rtlang.lang.effects.questions import ask as ask
    from rtlang.lang.effects.sources import now as now
    from rtlang.lang.effects.sources import random as random
    from rtlang.lang.execution.node_view import NodeView as NodeView
    from rtlang.lang.execution.result import Result as Result
    from rtlang.lang.execution.result import RowResult as RowResult
    from rtlang.lang.execution.result import StateResult as StateResult
    from rtlang.lang.execution.run import set_default_runtime as set_default_runtime
    from rtlang.lang.execution.stream import AttemptEvent as AttemptEvent
    from rtlang.lang.execution.stream import EmitEvent as EmitEvent
    from rtlang.lang.execution.stream import EndEvent as EndEvent
    from rtlang.lang.execution.stream import ErrorEvent as ErrorEvent
    from rtlang.lang.execution.stream import PartialEvent as PartialEvent
    from rtlang.lang.execution.stream import ReasoningEvent as ReasoningEvent
    from rtlang.lang.execution.stream import Stream as Stream
    from rtlang.lang.execution.stream import TextEvent as TextEvent
    from rtlang.lang.execution.stream import ValueEvent as ValueEvent
    from rtlang.lang.explain import Explanation as Explanation
    from rtlang.lang.explain import explain as explain
    from rtlang.lang.fitting import fit as fit
    from rtlang.lang.lazy_values.composing import format as format
    from rtlang.lang.lazy_values.composing import join as join
    from rtlang.lang.lazy_values.composing import length as length
    from rtlang.lang.lazy_values.values import Value as Value
    from rtlang.lang.lazy_values.values import arg as arg
    from rtlang.lang.mcp_client import McpTools as McpTools
    from rtlang.lang.mcp_client import mcp as mcp
    from rtlang.lang.output_types.form_values import Tag as Tag
    from rtlang.lang.output_types.forms import Indentation as Indentation
    from rtlang.lang.output_types.forms import ebnf as ebnf
    from rtlang.lang.output_types.forms import either as either
    from rtlang.lang.output_types.forms import json_text as json_text
    from rtlang.lang.output_types.forms import lark as lark
    from rtlang.lang.output_types.forms import repeated as repeated
    from rtlang.lang.output_types.forms import sequence as sequence
    from rtlang.lang.output_types.forms import tagged as tagged
    from rtlang.lang.output_types.forms import token as token
    from rtlang.lang.output_types.tool_calls import ToolCall as ToolCall
    from rtlang.lang.output_types.tool_calls import ToolReply as ToolReply
    from rtlang.lang.output_types.tools import thoughts as thoughts
    from rtlang.lang.output_types.tools import tools as tools
    from rtlang.lang.partials.distortion import Distortion as Distortion
    from rtlang.lang.pinning import pin as pin
    from rtlang.lang.program import Program as Program
    from rtlang.lang.program_state.expr import Sampling as Sampling
    from rtlang.lang.program_state.expr import assistant as assistant
    from rtlang.lang.program_state.expr import gen as gen
    from rtlang.lang.program_state.expr import select as select
    from rtlang.lang.program_state.expr import system as system
    from rtlang.lang.program_state.expr import text as text
    from rtlang.lang.program_state.expr import tokens as tokens
    from rtlang.lang.program_state.expr import tool as tool
    from rtlang.lang.program_state.expr import user as user
    from rtlang.lang.program_state.forcing import value as value
    from rtlang.lang.program_state.messages import messages as messages
    from rtlang.lang.program_state.state import Forks as Forks
    from rtlang.lang.program_state.state import State as State
    from rtlang.lang.recordings.meta import AttemptMeta as AttemptMeta
    from rtlang.lang.recordings.meta import Meta as Meta
    from rtlang.lang.rows.completed_rows import CompletedRows as CompletedRows
    from rtlang.lang.rows.jsonl import JsonlSummary as JsonlSummary
    from rtlang.runtime.runtime import Runtime as Runtime

_MODULES = {
    "rtlang.cassette.surface": "journal record replay",
    "rtlang.contract.runs.budget": "Budget",
    "rtlang.contract.service.cache_report": "CacheExplanation",
    "rtlang.contract.config": "RuntimeConfig ServeConfig",
    "rtlang.runtime.runtime": "Runtime",
    "rtlang.contract.errors": (
        "AbortedError ApplyError BudgetError CallError CapacityError CassetteError CheckError ConfigError ConnectionLostError "
        "ConstraintError ContextLengthError DeadEndError DeadlineError DependencyError EngineDeadError GoneError GraphError InternalError "
        "InvalidValueError JournalError McpError ModelLoadError NumericsError OverloadError ParameterError ProgramError ProtocolError "
        "QuestionError RequestError RtlangError ScriptError SlowConsumerError SpentError SwitchError ToolError TraceError UnansweredError "
        "UnknownOutcomeError ValueMemoryError ValueParseError"
    ),
    "rtlang.contract.pictures.run_diff": "RunDiff",
    "rtlang.contract.process.call_context": "Question idempotency_key",
    "rtlang.lang.control": "best call first repeat switch vote",
    "rtlang.lang.effect_marks": "effect pure",
    "rtlang.lang.effects.questions": "ask",
    "rtlang.lang.effects.sources": "now random",
    "rtlang.lang.explain": "Explanation explain",
    "rtlang.lang.best_of": "best_of",
    "rtlang.lang.fitting": "fit",
    "rtlang.lang.mcp_client": "McpTools mcp",
    "rtlang.lang.program_state.expr": "Sampling assistant gen select system text tokens tool user",
    "rtlang.lang.output_types.form_values": "Tag",
    "rtlang.lang.output_types.forms": "Indentation ebnf either json_text lark repeated sequence tagged token",
    "rtlang.lang.output_types.tool_calls": "ToolCall ToolReply",
    "rtlang.lang.output_types.tools": "thoughts tools",
    "rtlang.contract.service.generation": "Generation generation_graph",
    "rtlang.contract.request_graph": "RequestGraph",
    "rtlang.lang.lazy_values.composing": "format join length",
    "rtlang.lang.program_state.forcing": "value",
    "rtlang.lang.program_state.messages": "messages",
    "rtlang.lang.recordings.meta": "AttemptMeta Meta",
    "rtlang.lang.partials.distortion": "Distortion",
    "rtlang.lang.decorator": "program",
    "rtlang.lang.pinning": "pin",
    "rtlang.lang.program": "Program",
    "rtlang.lang.diff": "diff",
    "rtlang.lang.execution.node_view": "NodeView",
    "rtlang.lang.rows.completed_rows": "CompletedRows",
    "rtlang.lang.rows.jsonl": "JsonlSummary",
    "rtlang.lang.execution.result": "Result RowResult StateResult",
    "rtlang.lang.execution.run": "set_default_runtime",
    "rtlang.lang.program_state.state": "Forks State",
    "rtlang.lang.execution.stream": (
        "AttemptEvent EmitEvent EndEvent ErrorEvent PartialEvent ReasoningEvent Stream TextEvent ValueEvent"
    ),
    "rtlang.contract.service.target": "Target",
    "rtlang.lang.lazy_values.values": "Value arg",
    "rtlang.contract.params": "FinishReason SamplingParams SelectMethod Usage",
    "rtlang.contract.graph.template_options": "TemplateOptions",
    "rtlang.contract.runs.principal": "Principal PrincipalLimits",
    "rtlang.contract.runs.run_options": "RunOptions",
    "rtlang.contract.service.snapshot": "EngineSnapshot",
    "rtlang.client.async_runtime": "connect_async",
    "rtlang.fleet.connect": "connect",
    "rtlang.fleet.ray_data": "map_batches",
}
_HOMES = {name: (module, name) for module, names in _MODULES.items() for name in names.split()}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if name == "compat":  # not listed: of use to few programs
        return import_module("rtlang.compat.sglang") and import_module("rtlang.compat")
    if home is None:
        raise AttributeError(f"module 'rtlang' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home[0]), home[1])
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
