"""A runtime without a model: graphs run as on `Runtime`, but a function ends the generations.

Sequences, values, branches, failures and deadlines are those of the same code. Text counts one token per character, and chat messages have
the plain framing. It needs no torch.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, NamedTuple, Self

from rtlang.contract.errors import AbortedError, EngineDeadError
from rtlang.contract.events import GraphFailed
from rtlang.contract.process.current_work import CurrentWork
from rtlang.contract.request_graph import Call, Generate, Part, RequestGraph, Select, Text
from rtlang.contract.runs.known import KnownOutcome
from rtlang.contract.runs.principal import LOCAL
from rtlang.contract.runs.run_options import ALL_ABILITIES, DEFAULT_OPTIONS, Ability, RunOptions
from rtlang.contract.service.target import Listener, check_run
from rtlang.engine.requests.credit import Credit
from rtlang.model.text.chat import ChatTemplate
from rtlang.model.text.constant_texts import ConstantTexts
from rtlang.runtime.admission import Admission, Share
from rtlang.runtime.executors.seeds import new_run_seed
from rtlang.runtime.graph_run import GraphRun, LocalGraphRun, RuntimeServices, notify
from rtlang.runtime.process.loop import EngineLoop
from rtlang.runtime.texts.token_sequence import TokenSequence, append_text

MAX_MODEL_LEN = 1 << 30


class CharacterTokenizer:
    """One token per character."""

    vocab_size = num_ids = 0x110000
    longest_token = 1
    tool_format: str | None = None
    special_token_ids: frozenset[int] = frozenset()
    bos_name = ""

    def __init__(self) -> None:
        self.chat = ChatTemplate(self, None, {})
        self.constant_texts = ConstantTexts(self)

    def start_ids(self) -> list[int]:
        """None: sequences have no start token."""
        return []

    def token_bytes(self, token_id: int) -> bytes:
        """None, so no token is ever taken back: tokens of recorded outcomes are those of another tokenizer."""
        return b""

    def special_names(self, text: str) -> Iterator[tuple[int, int]]:
        """None."""
        return iter(())

    def decode(self, token_ids: Iterable[int]) -> str:
        """The characters."""
        return "".join(map(chr, token_ids))

    def encode(self, text: str, *, is_start: bool, allow_special: bool = False) -> list[int]:
        """The code points."""
        return [ord(each) for each in text]


class _NoEngine:
    """The place of the engine; nothing ever runs on it."""

    has_work = False
    retry_at: float | None = None

    def __init__(self) -> None:
        self.work = CurrentWork()

    def retry(self, now: float) -> None:
        """Nothing waits."""

    def grant(self, credit: Credit, num_tokens: int) -> None:
        """Add to the credit of a graph; no request waits for it."""
        credit.num_tokens += num_tokens


class _NoRunner(NamedTuple):
    tokenizer: CharacterTokenizer
    max_model_len: int
    num_states: int = 0


class AskedNode(NamedTuple):
    """A node that starts.

    Attributes:
        graph_id: the graph that it belongs to.
        prompt: the text before it.
        end: ends the node with an outcome; called once, on any thread.
        later: calls a function after so many seconds, on the runtime's thread.
        has_budget: whether the run has a budget, whose rest is `max_tokens` of the node.
    """

    graph_id: int
    node: Text | Generate | Select | Call
    sequence: TokenSequence
    end: Callable[[KnownOutcome], None]
    later: Callable[[float, Callable[[], None]], None]
    has_budget: bool = False

    @property
    def prompt(self) -> str:
        return "".join(map(chr, self.sequence.token_ids))


class ModelFreeRuntime:
    """A `Target` that asks `answer` for each node that starts. Thread-safe; a context manager.

    Args:
        answer: called on the runtime's thread with each text, generation, select and host call that starts. Returns whether it ends the
            node; it may do so later. It must end every generation and select.
    """

    tool_format: str | None = None
    abilities = ALL_ABILITIES - {Ability.CONTINUE}

    def __init__(self, answer: Callable[[AskedNode], bool]) -> None:
        self._answer = answer
        self._graph_ids = itertools.count(1)
        self._graphs: dict[int, GraphRun] = {}  # on the runtime's thread only
        self._admission = Admission(1 << 40)
        self._is_closed = False
        engine: Any = _NoEngine()
        runner: Any = _NoRunner(CharacterTokenizer(), MAX_MODEL_LEN)
        no_checker: Any = None
        self._loop = EngineLoop(lambda wake: engine, lambda: None, self._end)
        self._services = RuntimeServices(self._loop, runner, no_checker, is_broken=lambda: False, on_end=self._forget)
        self._loop.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def is_alive(self) -> bool:
        """See `Target.is_alive`."""
        return not self._is_closed

    def submit(
        self,
        graph: RequestGraph,
        listener: Listener,
        options: RunOptions = DEFAULT_OPTIONS,
        *,
        answer: Callable[[AskedNode], bool] | None = None,
    ) -> LocalGraphRun:
        """See `Target.submit`. Credit is counted, but nothing waits for it, because every text comes in one piece.

        Args:
            answer: asked instead of that of the runtime.
        """
        ask = self._answer if answer is None else answer
        options.check_abilities(self.abilities)
        checks = check_run(graph, options)
        options = replace(options, principal=LOCAL, seed=new_run_seed() if options.seed is None else options.seed)
        if self._is_closed:
            raise EngineDeadError("the runtime was closed")
        share = Share(self._admission)
        share.admit(graph.nodes)
        graph_id = next(self._graph_ids)

        def answered(
            node: Text | Generate | Select | Call, before: TokenSequence, conclude: Callable[[KnownOutcome], None]
        ) -> bool:
            def end(outcome: KnownOutcome) -> None:
                if self._loop.is_current_thread:
                    conclude(outcome)
                else:
                    self._loop.post(lambda: conclude(outcome))

            return ask(AskedNode(graph_id, node, before, end, self._later, options.budget is not None))

        def begin() -> None:
            if self._is_closed:
                share.close()
                notify(listener, GraphFailed(graph_id, AbortedError("the runtime was closed")))
                return
            run = self._graphs[graph_id] = GraphRun(
                graph_id, listener, share, options, self._services, outputs=graph.outputs, answer=answered
            )
            run.add_nodes(graph.nodes)

        self._loop.post(begin)
        return LocalGraphRun(graph_id, checks, share, self._act)

    def count_tokens(self, parts: Sequence[Part]) -> int:
        """See `rtlang.contract.service.text_service.count_tokens`: one token per character."""
        tokenizer: Any = self._services.runner.tokenizer
        return len(append_text(TokenSequence(), parts, tokenizer, {}, lambda ref: "", MAX_MODEL_LEN))

    def close(self) -> None:
        """End all graphs with AbortedError. Idempotent."""
        self._is_closed = True
        self._loop.stop()

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        self._loop.call_at(self._loop.clock() + seconds, act)

    def _act(self, graph_id: int, act: Callable[[GraphRun], None]) -> None:
        def command() -> None:
            run = self._graphs.get(graph_id)
            if run is not None:
                act(run)

        self._loop.post(command)

    def _forget(self, graph_id: int) -> None:
        self._graphs.pop(graph_id, None)

    def _end(self, cause: BaseException | None) -> None:
        for run in list(self._graphs.values()):
            run.fail(AbortedError("the runtime was closed"))
