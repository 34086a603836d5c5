"""The pipeline of passes over a recorded graph, or over one part of it.

Each pass is a pure function of a graph, in a file of its own, and can be switched off. A program's variables, texts and messages are the
same with any of them; only the amount and the order of the computation differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

from rtlang.compiler.context import Context, Savings
from rtlang.compiler.fold_text import fold_text, is_constant
from rtlang.compiler.merge import merge
from rtlang.compiler.nodes import estimated_tokens, generated_tokens, is_generation
from rtlang.compiler.path import Paths, paths
from rtlang.compiler.prune import ancestors, prune
from rtlang.compiler.reorder import layout, reorder
from rtlang.compiler.retain import lifetimes
from rtlang.compiler.rewriting import with_blocks
from rtlang.contract.errors import ParameterError
from rtlang.contract.graph.frozen_copies import changed
from rtlang.contract.request_graph import Block, Generate, Marks, Node, Repeat, RequestGraph, Switch, Text, all_nodes

PASSES = ("prune", "reorder", "fold", "merge", "retain", "path")
"""The names of the passes, in the order in which they run."""

Passes = bool | str | Iterable[str]
"""True for all passes, False for none, or names; `-name` leaves one out of all."""

_ALL = frozenset(PASSES)


def chosen_passes(passes: Passes) -> frozenset[str]:
    """The names of the chosen passes.

    Raises:
        ParameterError: a name is unknown, or `passes` is of another type.
    """
    if passes is True:
        return _ALL
    if passes is False:
        return frozenset()
    names = (passes,) if isinstance(passes, str) else passes
    if not isinstance(names, Iterable):
        raise ParameterError("passes", passes, f"expected true, false or names of {', '.join(PASSES)}")
    added: set[str] = set()
    removed: set[str] = set()
    for name in names:
        plain = name.removeprefix("-") if isinstance(name, str) else name
        if plain not in PASSES:
            raise ParameterError("passes", name, f"expected names of {', '.join(PASSES)}, or one with - before it")
        (removed if plain != name else added).add(plain)
    return frozenset((_ALL if removed and not added else added) - removed)


def compile_graph(
    graph: RequestGraph, passes: Collection[str], context: Context | None = None
) -> tuple[RequestGraph, Savings]:
    """Run passes over a graph.

    Args:
        graph: valid nodes; with a context that is open, a part of a program's graph.
        passes: names, as `chosen_passes` gives them.
        context: default: the graph is complete and every node is needed.
    """
    context = context or Context()
    savings = Savings()
    if "prune" in passes and context.needed is not None:
        graph = _pruned(graph, context, savings)
    if context.free and "reorder" in passes:
        savings.orders = layout(graph, context.free, context.share_of)
        savings.reordered_texts = len(savings.orders)
        graph = reorder(graph, context.free, context.share_of)
    num_nodes = len(graph.nodes)
    graph = fold_text(graph, context.keep, across_roles="fold" in passes)
    if "fold" in passes:
        savings.folded_nodes = num_nodes - len(graph.nodes)
    if "merge" in passes:
        graph = _merged(graph, context, savings)
    return _marked(graph, passes, context, savings), savings


def _pruned(graph: RequestGraph, context: Context, savings: Savings) -> RequestGraph:
    assert context.needed is not None
    kept = prune(graph, {*context.needed, *context.awaited})
    if kept is not graph:
        ids = {node.node_id for node in all_nodes(kept.nodes)}
        dropped = [node for node in all_nodes(graph.nodes) if node.node_id not in ids]
        savings.left_out = frozenset(node.node_id for node in dropped)
        if not context.is_open:
            savings.pruned_nodes = len(dropped)
            savings.pruned_generations = sum(map(is_generation, dropped))
            savings.pruned_tokens = sum(map(generated_tokens, dropped))
    return kept


def _merged(graph: RequestGraph, context: Context, savings: Savings) -> RequestGraph:
    merged = merge(graph, context.known, keeps_names=context.keeps_names, failed=context.failed, alone=context.alone)
    if merged.aliases:
        savings.aliases = dict(merged.aliases)
        dropped = [node for node in graph.nodes if node.node_id in merged.aliases]
        savings.merged_nodes = len(dropped)
        savings.merged_generations = sum(map(is_generation, dropped))
        savings.merged_tokens = sum(map(generated_tokens, dropped))
    return merged.graph


def _marked(
    graph: RequestGraph, passes: Collection[str], context: Context, savings: Savings, after: int = 0
) -> RequestGraph:
    """The graph with the marks of all passes that mark. `after`: tokens of the longest path that follows it."""
    awaited = context.awaited
    others = [node.node_id for node in graph.nodes if type(node) is not Text]
    is_one = len(others) == 1 and is_generation(graph.nodes[-1])
    if not awaited or "prune" not in passes or (is_one and others[0] in awaited):
        urgent = None
    else:
        urgent = ancestors(graph.nodes, awaited)
    lives = None
    if "retain" in passes:
        lives = lifetimes(graph, is_open=context.is_open, ended=context.ended, keep=context.keep)
        savings.last_uses, savings.kept_sequences = lives.num_last_uses, len(lives.of) - lives.num_last_uses
    found = None
    if "path" in passes:
        found = _path_of_one(graph, others[0]) if is_one else paths(graph)
    marks_constants = "fold" in passes
    kept = context.keep if lives is not None and context.is_open else ()
    if found is not None:
        savings.path_tokens, savings.graph_tokens = found.longest, found.total
    nodes: list[Node] = []
    for node in graph.nodes:
        node_id = node.node_id
        if type(node) is Text:
            marks = node.marks
            if marks_constants and is_constant(node):
                savings.constant_texts += 1
                savings.constant_chars += sum([len(part) for part in node.parts if type(part) is str])
                marks = _CONSTANT
            if node_id in kept:
                marks = _KEPT_CONSTANT if marks is _CONSTANT else _KEPT
            if marks is not node.marks:
                node = Text(node_id, node.parent, node.parts, marks)
        elif is_generation(node):
            is_urgent = urgent is None or node_id in urgent
            savings.deferred_nodes += not is_urgent
            remaining = 0 if found is None else found.remaining[node_id] + after
            lifetime = "unknown" if lives is None else lives.of[node_id]
            marks = Marks(remaining, lifetime, False, is_urgent)
            if type(node) is Generate:
                node = Generate(node_id, node.parent, node.name, node.params, node.constraint, marks, node.path)
            else:
                node = changed(node, marks=marks)
        elif isinstance(node, (Switch, Repeat)):
            change = partial(_marked_block, passes, 0 if found is None else found.remaining[node_id] + after)
            node = with_blocks(node, change)
        nodes.append(node)
    return RequestGraph(tuple(nodes), graph.inputs, graph.outputs)


def _marked_block(passes: Collection[str], after: int, block: Block) -> Block:
    """The block with marks. Only its control node is continued from outside, which the engine knows when it runs the block.

    Args:
        after: estimated tokens of the longest path after the control node.
    """
    graph = _marked(RequestGraph(block.nodes), passes, Context(), Savings(), after)
    return Block(graph.nodes, block.end, block.value)


def _path_of_one(graph: RequestGraph, node_id: int) -> Paths:
    """`paths` of texts and one generation at their end, as most parts between graph breaks are."""
    total = sum(map(estimated_tokens, graph.nodes))
    return Paths({node_id: 0}, total, total)


_CONSTANT = Marks(is_constant=True)
_KEPT, _KEPT_CONSTANT = Marks(lifetime="program"), Marks(lifetime="program", is_constant=True)
"""Of texts that later parts may continue although they already have a child."""
