"""Bounds the size of one result: the log-probabilities that a generation may report.

A result is one message. n completions of many tokens with many alternatives each are tens of millions of numbers from a request of a
hundred bytes, so the product is bounded where the request arrives.
"""

from __future__ import annotations

from collections.abc import Sequence

from rtlang.contract.errors import GraphError
from rtlang.contract.request_graph import Generate, Node, all_nodes

MAX_LOGPROBS_OF_RESULT = 1 << 18
"""Log-probabilities of several texts: n times tokens times (logprobs + 1)."""
MAX_LOGPROBS_OF_TEXT = 1 << 22
"""The same of one text, which takes as many steps as it has tokens: 20 alternatives for a context of 200,000 tokens."""


def check_result_sizes(nodes: Sequence[Node], max_model_len: int) -> None:
    """Refuse generations whose result may be too large.

    Args:
        nodes: validated nodes.
        max_model_len: no text has more tokens.
    Raises:
        GraphError: names the node and the sizes.
    """
    for node in all_nodes(nodes):
        if not isinstance(node, Generate):
            continue
        params = node.params
        num_texts, num_tokens = max(params.n, params.best_of), min(params.max_tokens, max_model_len)
        num_logprobs = 0 if params.logprobs is None else num_texts * num_tokens * (params.logprobs + 1)
        limit = MAX_LOGPROBS_OF_RESULT if num_texts > 1 else MAX_LOGPROBS_OF_TEXT
        if num_logprobs > limit:
            raise GraphError(
                node.node_id,
                "params",
                f"n = {num_texts} texts of max_tokens = {num_tokens} with logprobs = {params.logprobs} are {num_logprobs} "
                f"log-probabilities; expected at most {limit}",
            )
