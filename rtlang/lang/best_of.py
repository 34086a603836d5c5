"""The best of several candidates of a generation, by log-probability or by a score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from rtlang.contract.errors import ParameterError, TraceError
from rtlang.contract.graph.node_paths import segment
from rtlang.contract.params import MAX_MAX_TOKENS, MAX_SEED, normalized_option, sampling_params
from rtlang.contract.request_graph import Block, Const, Ref, Switch
from rtlang.lang.control import best, call
from rtlang.lang.lazy_values.operations import Lazy, Operation, parsed
from rtlang.lang.lazy_values.values import Value, user_location
from rtlang.lang.output_types.kinds import STR
from rtlang.lang.program_state.expr import Expr, Gen, Recorded, described
from rtlang.lang.program_state.lost_expressions import check_kept
from rtlang.lang.program_state.state_record import StateRecord
from rtlang.lang.program_state.variables import TextVariable, generated
from rtlang.lang.recordings.error_places import OptionsOf


def best_of(n: int, expr: Expr, by: Literal["logprob"] | Callable[[Any], Any] = "logprob") -> Expr:
    """A generation with the best of `n` candidates, which share the text before it; the sequence continues with the best.

    Args:
        expr: `rt.gen(...)` with a temperature above 0.
        by: "logprob": the largest sum of log-probabilities. Candidates that cannot win any more are stopped. A program or a function of the
            value: the largest number that it returns; a function runs as with `rt.call`.
    Raises:
        ParameterError: an argument is invalid.
    """
    if not isinstance(expr, Gen) or expr.reasoning or expr.checks is not None:
        raise ParameterError("expr", expr, "expected rt.gen(...) without reasoning=, check= and repair=")
    if by != "logprob" and (not callable(by) or isinstance(by, Value)):
        raise ParameterError("by", by, 'expected "logprob", or a function or program that gives a number for a value')
    with OptionsOf(expr.name):
        options = {**expr.options, "best_of": normalized_option("best_of", n)}
        if expr.params is not None or "temperature" in options:
            sampling_params({"max_tokens": MAX_MAX_TOKENS, **options}, expr.params)
    chosen = replace(expr, options=options)
    if not callable(by) or options["best_of"] == 1:
        check_kept(chosen, described)
        return chosen
    made = Recorded(lambda state: _record(state, chosen, by))
    check_kept(made, lambda _: f"rt.best_of({n}, {described(chosen)})")
    return made


def _record(state: StateRecord, gen: Gen, by: Callable[[Any], Any]) -> None:
    """Record the candidates as generations side by side, their scores, the decision, and a switch that continues with the winner."""
    key = state.new_key(gen.name)
    recording, sequence = state.recording, state.sequence
    if recording.is_in_block:
        raise TraceError(
            "rt.best_of(by=...) with a function or program is not supported inside rt.switch or rt.repeat; use n= and rt.best",
            user_location(),
        )
    params = state.sampling(gen)
    path = state.new_path("gen" if gen.name is None else segment(gen.name))
    what = "the best candidate" if gen.name is None else repr(gen.name)
    node_ids, candidates = list[int](), list[Any]()
    for number in range(params.best_of):
        seed = None if params.seed is None else (params.seed + number) % (MAX_SEED + 1)
        own = replace(params, best_of=1, seed=seed)
        node_id = recording.add_generate(sequence.head, None, own, gen.kind, f"{path}[{number}]")
        node_ids.append(node_id)
        named = f"candidate {number + 1} of {what}"
        candidates.append(generated(recording, node_id, 0, named, gen.kind.constraint, is_text=gen.kind.is_text))
    is_program = hasattr(type(by), "_rt_call")
    scores = [by(each.value) if is_program else call(by, each.value) for each in candidates]
    decision = best([each.text for each in candidates], by=scores)
    assert isinstance(decision, Value)
    (decide_id,) = decision._rt_needs
    index = recording.nodes.add_apply("item", (Ref(decide_id), Const(0)))
    with recording.nodes.control(sequence.head, user_location()) as control:
        blocks = []
        for number, node_id in enumerate(node_ids):
            with recording.nodes.in_block() as nodes:
                end = recording.add_text(node_id, ("",))
            blocks.append((number, Block(tuple(nodes), end)))
        control.node = Switch(control.node_id, sequence.head, index, tuple(blocks), path=path)
    sequence.head = control.node_id

    def winner() -> int:
        index: int = recording.outcomes.plain_value(decide_id)[0]
        return node_ids[index]

    text_term = Operation("item", (Ref(decide_id), Const(1)))
    needs = (decide_id, *node_ids)
    text = Value(
        recording,
        needs,
        None,
        lambda: recording.outcomes.text_of(winner(), 0),
        what,
        is_text=True,
        lazy=Lazy(STR, text_term),
    )
    value = text
    if not gen.kind.is_text:
        reading = recording.reading_of(Ref(node_ids[0]))
        lazy = None if reading is None else parsed(reading, text_term)
        value = Value(recording, needs, None, lambda: recording.outcomes.value_of(winner(), 0), what, lazy=lazy)
    meta = Value(recording, needs, None, lambda: recording.outcomes.meta_of(winner(), 0), f"the meta of {what}")
    state.add_generation(key, TextVariable(value, text, meta))
