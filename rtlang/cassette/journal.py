"""A runtime that keeps a journal of one run of a program, so that the run continues after the death of its process."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from rtlang.cassette.answers import JournalDesk
from rtlang.cassette.journal_file import JournalFile
from rtlang.cassette.journaled_run import JournaledRun
from rtlang.cassette.places import Places
from rtlang.cassette.recorder import DefaultWithin, identity_of, takes_known
from rtlang.contract.errors import ParameterError
from rtlang.contract.request_graph import Call, Part, RequestGraph, Text
from rtlang.contract.runs.known import KnownOutcome
from rtlang.contract.runs.node_keys import Keys
from rtlang.contract.runs.run_options import ALL_ABILITIES, DEFAULT_OPTIONS, Ability, RunOptions, abilities_of
from rtlang.contract.service.target import GraphRun, Listener, Target
from rtlang.contract.service.text_service import count_tokens
from rtlang.contract.version import VERSION
from rtlang.runtime.scripted_runtime import AskedNode, ModelFreeRuntime

OnChange = Literal["error", "recompute"]

MAX_CALL_WAIT_S = 10.0
"""How long `Journal.close` waits for calls that have begun, so that their outcomes are recorded."""


class Journal(DefaultWithin):
    """A `Target` that runs one graph on another one and records its events. Outcomes in the file are not computed again.

    A context manager: within it, it is the default runtime. The wrapped runtime stays open.

    Attributes:
        runtime: where the graph runs; not needed if the journal is finished.

    Args:
        file: the open journal, which `close` closes.
        set_default: sets the default runtime, and returns the one before.
        program, arguments: texts that identify the run; the file must have the same.
        seed: the seed of the run; the file must have the same. None: the seed of the file, or a random one.
        on_change: what happens where the program differs from the recorded one: "error", or "recompute", which keeps the outcomes of nodes
            that are equal with everything they build on, and computes the others.
        wait_s: seconds that an open question is waited for; None for any time.
    Raises:
        JournalError: the journal was recorded with another program or other arguments.
        ParameterError: an option is invalid.
    """

    def __init__(
        self,
        file: JournalFile,
        set_default: Callable[[Any], Any],
        *,
        program: str | None = None,
        arguments: str | None = None,
        seed: int | None = None,
        on_change: OnChange = "error",
        wait_s: float | None = None,
    ) -> None:
        super().__init__(set_default)
        if on_change not in ("error", "recompute"):
            raise ParameterError("on_change", on_change, 'expected "error" or "recompute"')
        if wait_s is not None and (isinstance(wait_s, bool) or not isinstance(wait_s, (int, float)) or not wait_s >= 0):
            raise ParameterError("wait_s", wait_s, "expected seconds from 0 on, or None")
        self._recomputes, self._desk = on_change == "recompute", JournalDesk(file.path, wait_s)
        self._run: JournaledRun | None = None
        self._file = file
        self.runtime: Target | None = None
        self._of = {"program": program, "arguments": arguments}
        self._seed = seed
        self._lock = threading.Lock()
        self._has_run = False
        self._without_model: ModelFreeRuntime | None = None
        for name, value in self._of.items():
            before = file.head.get(name)
            may_differ = self._recomputes and name == "arguments"
            if before is not None and value is not None and before != value and not may_differ:
                raise file.error(
                    f"{name}: {before} in the journal, {value} now; use another journal", None, before, value
                )

    @property
    def is_finished(self) -> bool:
        """Whether the graph has ended; the journal is read without the runtime then, unless it recomputes."""
        return self._file.is_finished

    @property
    def needs_runtime(self) -> bool:
        """Whether a run needs the runtime."""
        return self._recomputes or not self._file.is_finished

    @property
    def is_alive(self) -> bool:
        """See `Target.is_alive`."""
        return self.runtime is None or self.runtime.is_alive

    @property
    def tool_format(self) -> str | None:
        """See `Target.tool_format`."""
        if self._file.head:
            found = self._file.head.get("tool_format")
            return found if isinstance(found, str) else None
        return None if self.runtime is None else self.runtime.tool_format

    @property
    def abilities(self) -> frozenset[Ability]:
        """See `Target.abilities`. The results of an earlier run are those of the file."""
        others = ALL_ABILITIES if self.runtime is None else abilities_of(self.runtime)
        return others - {Ability.KNOWN, Ability.CONTINUE}

    @property
    def model_identity(self) -> str | None:
        """Of the model of the run, by which a sequence of an earlier run knows its tokens; None if it is not known yet."""
        found = self._file.head.get("model") or (None if self.runtime is None else identity_of(self.runtime))
        return found if isinstance(found, str) else None

    def count_tokens(self, parts: Sequence[Part]) -> int:
        """See `rtlang.contract.service.text_service.count_tokens`."""
        return count_tokens(self.runtime, parts)

    def submit(self, graph: RequestGraph, listener: Listener, options: RunOptions = DEFAULT_OPTIONS) -> GraphRun:
        """See `Target.submit`.

        Raises:
            JournalError: a graph was submitted before; the journal has another model, seed or graph; or it cannot be
                written.
        """
        with self._lock:  # rows of a batch come from several threads
            if self._has_run:
                raise self._file.error(
                    "a journal holds one run of one program; use one journal per run, or rt.record for many runs"
                )
            self._has_run = True
        try:
            return self._submitted(graph, listener, options)
        except BaseException:
            self._has_run = False
            raise

    def _submitted(self, graph: RequestGraph, listener: Listener, options: RunOptions) -> JournaledRun:
        file = self._file
        options.check_abilities(self.abilities)
        graph.validate()
        target = self._prepared(dict(options.inputs), self._seed if options.seed is None else options.seed)
        seed = file.head["seed"]
        run = JournaledRun(
            file,
            Places(Keys(options.inputs, seed)),
            listener,
            self._desk,
            has_budget=options.budget is not None,
            recomputes=self._recomputes,
            continues=Ability.CONTINUE in abilities_of(target),
        )
        results = run.prepare(graph.nodes)
        if not options.is_open:
            run.check_complete()
        try:
            run.run = target.submit(graph, run.listen, options=replace(options, seed=seed, **results))
        except BaseException:
            run.take_back()
            raise
        self._run = run
        run.is_submitted.set()
        return run

    def close(self) -> None:
        """Wait a short time for calls that have begun, store the journal on the disk, and release the file. Idempotent."""
        self._desk.close()
        if self._run is not None:
            self._run.wait_for_calls(MAX_CALL_WAIT_S)
        if self._without_model is not None:
            self._without_model.close()
        self._file.close()

    def _prepared(self, inputs: Mapping[str, str], seed: int | None) -> Any:
        """The runtime for the graph, after the head of the journal was written or compared."""
        file = self._file
        head = {"inputs": inputs, "seed": seed}
        for name, value in head.items():
            before = file.head.get(name)
            may_differ = self._recomputes and name == "inputs"  # they are parts of keys
            if file.head and value is not None and before != value and not may_differ:
                raise file.error(f"{name}: {before!r:.80} in the journal, {value!r:.80} now; use another journal")
        if not self.needs_runtime:
            if self._without_model is None:
                self._without_model = ModelFreeRuntime(self._lacks)
            return self._without_model
        target = self.runtime
        if target is None:
            raise file.error("the run is not finished, and there is no runtime to continue it")
        if not takes_known(target):
            raise file.error(
                "the runtime cannot continue a run; use an rt.Runtime(...), or a server with the ability continue"
            )
        model = identity_of(target)
        if not file.head:
            seed = secrets.randbits(63) if seed is None else seed
            file.begin(
                {
                    "model": model,
                    "tool_format": target.tool_format,
                    "version": VERSION,
                    **self._of,
                    **head,
                    "seed": seed,
                    "run": secrets.token_hex(16),
                }
            )
        elif file.head["model"] != model:
            before = str(file.head["model"])
            raise file.error(
                f"this journal was recorded with model {before}, the runtime serves {model}; use one journal per model",
                None,
                before,
                model,
            )
        return target

    def _lacks(self, asked: AskedNode) -> bool:
        if isinstance(asked.node, (Text, Call)):  # calls are answered from the file
            return False
        asked.end(
            KnownOutcome(self._file.error(f"the run is finished and has no outcome of node {asked.node.node_id}"))
        )
        return True
