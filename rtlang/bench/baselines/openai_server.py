"""Any server with OpenAI's completions as a baseline: a program of a careful user, who sends every request as soon as it can.

Prompts are sent as token ids and answers are streamed. The server has to accept `ignore_eos` and `min_tokens`, as vLLM, SGLang and others
do, so that all engines generate the same number of tokens; constraints are sent as a `response_format`.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from rtlang.bench.baselines.graph_progress import GraphProgress
from rtlang.bench.measure import Measurement, OutputKey
from rtlang.bench.workloads import Encoder
from rtlang.contract.errors import RtlangError
from rtlang.contract.graph import Generate, RequestGraph, parent_of

MAX_AT_ONCE = 256
TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The text of one request, its tokens as the server counts them, and the clock time of its first piece."""

    text: str
    num_tokens: int
    first_at: float


class OpenAiServer:
    """Runs workloads on a server.

    Args:
        url: up to and including `/v1`.
        model: its name there; default: the first that the server lists.

    Raises:
        RtlangError: the server does not answer, or lists no model.
    """

    def __init__(self, url: str, model: str | None = None, *, timeout_s: float = TIMEOUT_S) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise RtlangError(f"baseline = {url}: expected http://HOST:PORT/v1")
        self._url, self._path, self._timeout_s = url, parts.path.rstrip("/"), timeout_s
        self._host, self._port, self._is_tls = parts.hostname, parts.port, parts.scheme == "https"
        self._local, self._connections = threading.local(), list[http.client.HTTPConnection]()
        self._pool = ThreadPoolExecutor(MAX_AT_ONCE, thread_name_prefix="baseline")
        try:
            self.model = model or self._first_model()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop the threads and close the connections. Idempotent."""
        self._pool.shutdown()
        for connection in self._connections:
            connection.close()

    def run(
        self, graphs: Sequence[RequestGraph], encoder: Encoder, *, clock: Callable[[], float] = perf_counter
    ) -> Measurement:
        """Run graphs of text and single generations; all are submitted at the start.

        Raises:
            RtlangError: the server refuses a request or does not answer.
            ValueError: a graph has other nodes.
        """
        started = clock()
        progress = [GraphProgress(graph, encoder) for graph in graphs]
        asked: dict[Future[Answer], tuple[int, Generate]] = {}
        sent: set[OutputKey] = set()
        outputs: dict[OutputKey, tuple[int, ...]] = {}
        latencies, first_tokens = [0.0] * len(graphs), dict[int, float]()
        num_prompt_tokens = 0

        def send(index: int) -> int:
            num_tokens = 0
            for node in progress[index].ready():
                if (index, node.node_id) not in sent:
                    sent.add((index, node.node_id))
                    prompt = progress[index].sequence(parent_of(node))
                    num_tokens += len(prompt)
                    asked[self._pool.submit(self._ask, prompt, node, clock)] = index, node
            return num_tokens

        for index in range(len(graphs)):
            num_prompt_tokens += send(index)
        while asked:
            for future in wait(asked, return_when=FIRST_COMPLETED).done:
                index, node = asked.pop(future)
                answer = future.result()
                # The ids are ours: the server tells only the text, and how many tokens it took.
                token_ids = encoder.encode(answer.text, is_start=False)[: answer.num_tokens]
                token_ids += [0] * (answer.num_tokens - len(token_ids))
                progress[index].finish(node, token_ids)
                outputs[index, node.node_id] = tuple(token_ids)
                first_tokens.setdefault(index, answer.first_at - started)
                latencies[index] = clock() - started
                num_prompt_tokens += send(index)
        return Measurement(
            total_s=clock() - started,
            latencies_s=tuple(latencies),
            first_token_s=tuple(first_tokens[index] for index in range(len(graphs))),
            outputs=outputs,
            prompt_tokens=num_prompt_tokens,
        )

    def _first_model(self) -> str:
        with self._open("GET", "/models") as response:
            listed = json.loads(response.read()).get("data")
        if not listed:
            raise RtlangError(f"baseline = {self._url}: the server lists no model")
        return str(listed[0]["id"])

    def _ask(self, prompt: list[int], node: Generate, clock: Callable[[], float]) -> Answer:
        body: dict[str, Any] = {
            "model": self.model,
            "prompt": prompt,
            "max_tokens": node.params.max_tokens,
            "temperature": 0.0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if node.constraint is None:
            body |= {"min_tokens": node.params.max_tokens, "ignore_eos": True}
        else:
            schema = {"name": "answer", "schema": json.loads(node.constraint.source), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        pieces: list[str] = []
        num_tokens, first_at = 0, 0.0
        with self._open("POST", "/completions", body) as response:
            for line in response:
                data = line.removeprefix(b"data:").strip()
                if not line.startswith(b"data:") or data == b"[DONE]":
                    continue
                chunk = json.loads(data)
                if "error" in chunk:
                    raise RtlangError(f"baseline = {self._url}: {chunk['error']}")
                first_at = first_at or clock()
                pieces += [choice.get("text") or "" for choice in chunk.get("choices", ())]
                if chunk.get("usage"):
                    num_tokens = chunk["usage"]["completion_tokens"]
        return Answer("".join(pieces), num_tokens, first_at)

    def _open(self, method: str, path: str, body: object = None) -> http.client.HTTPResponse:
        """Send a request on this thread's connection; returns the response.

        Raises:
            RtlangError: the server does not answer, or answers with an error.
        """
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        try:
            if connection is None:
                kind = http.client.HTTPSConnection if self._is_tls else http.client.HTTPConnection
                connection = self._local.connection = kind(self._host, self._port, timeout=self._timeout_s)
                self._connections.append(connection)
            data = None if body is None else json.dumps(body)
            connection.request(method, self._path + path, data, {"Content-Type": "application/json"})
            response = connection.getresponse()
            if response.status == 200:
                return response
            message = response.read().decode("utf-8", "replace")[:500]
        except OSError as error:
            raise RtlangError(f"baseline = {self._url}: {error}") from error
        raise RtlangError(f"baseline = {self._url}: {response.status} {message}")
