"""The seeds of a run.

A generation samples from a noise that its seed determines. Without a seed of its own, a node has one that follows from the seed of the run
and from its path, or from its id if it has no path. So the time at which it starts and nodes in other places change nothing, and a run that
is repeated with the same seed gives the same texts.
"""

from __future__ import annotations

import secrets

from rtlang.contract.graph.node_paths import mixed_seed
from rtlang.contract.request_graph import Generate

_GREEDY_SEED = 0


def new_run_seed() -> int:
    """A random seed for a run, of 64 bits."""
    return secrets.randbits(64)


def node_seed(run_seed: int, node: Generate) -> int:
    """The seed of a generation, of 64 bits: its own, or a hash of the seed of the run and of its path.

    A greedy generation whose grammar sets no temperature samples only to replace an invalid value. Its seed does not depend on the run, so
    that its text follows from its prompt.
    """
    params = node.params
    if params.depends_on_run_seed(node.constraint):
        return mixed_seed(run_seed, node.node_id if node.path is None else node.path)
    return _GREEDY_SEED if params.seed is None else params.seed
