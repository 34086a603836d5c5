"""Any server with OpenAI's completions as a baseline: a program of a careful user, who sends every request as soon as it can.

Prompts are sent as token ids and answers are streamed. The server has to accept `ignore_eos` and `min_tokens`, as vLLM, SGLang and others
do, so that all engines generate the same number of tokens; constraints are sent as a `response_format`.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from time import perf_counter, sleep
from typing import Any
from urllib.parse import urlsplit

from rtlang.bench.baselines.plain_graphs import measurement, running
from rtlang.bench.baselines.plain_programs import Key, Node
from rtlang.bench.measure import Measurement
from rtlang.bench.workloads.text import Codec
from rtlang.bench.workloads.workload import Workload
from rtlang.contract.errors import RtlangError

MAX_AT_ONCE = 256
TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one request.

    Attributes:
        num_tokens, num_cached_tokens: its tokens, and those of the prompt that were cached, as the server counts them.
        times: of its pieces, on the clock.
    """

    text: str
    num_tokens: int
    num_cached_tokens: int
    times: list[float]


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

    def run(self, workload: Workload, codec: Codec, *, clock: Callable[[], float] = perf_counter) -> Measurement:
        """Run the graphs of a workload.

        Raises:
            RtlangError: the server refuses a request or does not answer.
            ValueError: a graph has other nodes than texts, single generations and tools.
        """
        programs = running(workload, codec)
        asked: dict[Future[Answer], Key] = {}
        num_cached_tokens = 0
        started = clock()
        while not programs.is_done:
            for key in programs.take_due(clock() - started):
                asked[self._pool.submit(self._ask, programs.start(key), programs.node(key), clock)] = key
            wait_s = None if programs.next_s is None else max(0.0, programs.next_s - (clock() - started))
            if not asked:
                sleep(wait_s or 0.0)
                continue
            for future in wait(asked, wait_s, FIRST_COMPLETED).done:
                key, answer = asked.pop(future), future.result()
                # The ids are ours: the server tells only the text, and how many tokens it took.
                token_ids = codec.encode(answer.text, is_start=False)[: answer.num_tokens]
                token_ids += [0] * (answer.num_tokens - len(token_ids))
                for time in answer.times:
                    programs.note_output(key, time - started)
                programs.finish(key, token_ids, clock() - started)
                num_cached_tokens += answer.num_cached_tokens
        results = programs.results(clock() - started)
        return measurement(workload, {**results, "num_cached_tokens": num_cached_tokens})

    def _first_model(self) -> str:
        with self._open("GET", "/models") as response:
            listed = json.loads(response.read()).get("data")
        if not listed:
            raise RtlangError(f"baseline = {self._url}: the server lists no model")
        return str(listed[0]["id"])

    def _ask(self, prompt: list[int], node: Node, clock: Callable[[], float]) -> Answer:
        body: dict[str, Any] = {
            "model": self.model,
            "prompt": prompt,
            "max_tokens": node["max_tokens"],
            "temperature": 0.0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if node["schema"] is None:
            body |= {"min_tokens": node["max_tokens"], "ignore_eos": True}
        else:
            schema = {"name": "answer", "schema": node["schema"], "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        pieces: list[str] = []
        num_tokens = num_cached_tokens = 0
        times: list[float] = []
        with self._open("POST", "/completions", body) as response:
            for line in response:
                data = line.removeprefix(b"data:").strip()
                if not line.startswith(b"data:") or data == b"[DONE]":
                    continue
                chunk = json.loads(data)
                if "error" in chunk:
                    raise RtlangError(f"baseline = {self._url}: {chunk['error']}")
                if chunk.get("choices"):
                    times.append(clock())
                    pieces += [choice.get("text") or "" for choice in chunk["choices"]]
                if usage := chunk.get("usage"):
                    num_tokens = usage["completion_tokens"]
                    num_cached_tokens = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        return Answer("".join(pieces), num_tokens, num_cached_tokens, times)

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
