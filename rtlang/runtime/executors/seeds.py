"""The seeds of a run.

A generation samples from a noise that its seed determines. Without a seed of its own, a node has one that follows from the seed of the run
and from its id, so that the time at which it starts changes nothing, and a run that is repeated with the same seed gives the same texts.
"""

from __future__ import annotations

import hashlib
import secrets


def new_run_seed() -> int:
    """A random seed for a run, of 64 bits."""
    return secrets.randbits(64)


def node_seed(run_seed: int, node_id: int) -> int:
    """The seed of a node, of 64 bits: the first bytes of the SHA-256 hash of both numbers."""
    return int.from_bytes(hashlib.sha256(b"%d:%d" % (run_seed, node_id)).digest()[:8], "big")
