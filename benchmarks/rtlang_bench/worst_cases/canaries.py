"""What a bystander notices: a stream of tokens, a schema that nobody has compiled, a tokenization, and eight tokens, again and again.

    python -m rtlang_bench.worst_cases.canaries URL

with the key in RTLANG_BYSTANDER_KEY. It prints a line of JSON for each measurement, with the times of `time.monotonic`, until its standard
input is closed. `stall` is a thread that only sleeps: it tells when the machine kept this process from running.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Subprotocol

KEY_VARIABLE = "RTLANG_BYSTANDER_KEY"
Tell = Callable[[str, float, float, str], None]
"""Called with the kind of a measurement, its beginning and end, and an error or nothing."""

_LEAST_GAP_S = 0.02  # shorter ones are not told
_PAUSE_S = 0.1
_TIMEOUT_S = 120.0
_SLEEP_S = 0.005
_CREDIT = 10_000
_TEXT = "The red fox sleeps under the old tree by the river. " * 20


class Canaries:
    """The probes of one bystander.

    Args:
        tell: may be called from several threads at a time.
    """

    def __init__(self, url: str, key: str, tell: Tell) -> None:
        self._url, self._key, self._tell = url, key, tell
        self._stop = threading.Event()
        self._last = 0.0  # when the last token came
        self._threads = [
            threading.Thread(target=each, daemon=True)
            for each in (self._stream, self._schemas, self._tokenizations, self._tokens, self._stalls)
        ]

    def start(self) -> None:
        """Begin to probe."""
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        """Finish the present probes."""
        self._stop.set()
        for each in self._threads:
            each.join(_TIMEOUT_S)

    def _stream(self) -> None:
        self._last = time.monotonic()
        while not self._stop.is_set():
            try:
                self._stream_once()
            except (ConnectionClosed, OSError) as error:
                self._tell("stream", self._last, time.monotonic(), f"{type(error).__name__}: {error}"[:200])
                self._stop.wait(0.2)

    def _stream_once(self) -> None:
        """Keep streams running on one connection, one after the other."""
        headers = {"Authorization": f"Bearer {self._key}"}
        name = Subprotocol("rtlang.v1.json")
        with connect(
            self._url + "/v1/stream",
            subprotocols=[name],
            additional_headers=headers,
            compression=None,
            ping_interval=None,
            open_timeout=_TIMEOUT_S,
        ) as peer:
            peer.send('{"t": "hello", "v": 1}')
            for stream in itertools.count(1):
                params = {"max_tokens": 400, "ignore_eos": True, "temperature": 1.0}
                body = {"prompt": f"Canary {stream}: ", "params": params}
                opened = {"t": "open", "s": stream, "kind": "generate", "body": body, "credit": _CREDIT}
                peer.send(json.dumps(opened))
                while not self._hear(json.loads(peer.recv(_TIMEOUT_S))):
                    if self._stop.is_set():
                        return

    def _hear(self, found: Any) -> bool:
        """Note the tokens of a message; whether the stream has ended."""
        now, has_ended = time.monotonic(), False
        for message in found if isinstance(found, list) else [found]:
            if message["t"] == "delta":
                if now - self._last > _LEAST_GAP_S:
                    self._tell("stream", self._last, now, "")
                self._last = now
            elif message["t"] in ("end", "error"):
                has_ended = True
                if "code" in message:
                    self._tell("stream", self._last, now, f"{message['code']}: {message.get('message', '')}"[:200])
                    self._stop.wait(0.2)
        return has_ended

    def _schemas(self) -> None:
        start = time.monotonic_ns()

        def body(number: int) -> dict[str, Any]:
            schema = {
                "type": "object",
                "properties": {f"a{start}_{number}": {"type": "string", "maxLength": 9}, "b": {"type": "boolean"}},
                "required": ["b"],
            }
            named = {"name": "canary", "schema": schema}
            messages = [{"role": "user", "content": "Fill it in."}]
            return {
                "model": "canary",
                "messages": messages,
                "max_tokens": 6,
                "response_format": {"type": "json_schema", "json_schema": named},
            }

        self._probe("schema", "/v1/chat/completions", body)

    def _tokenizations(self) -> None:
        self._probe("tokenize", "/tokenize", lambda number: {"prompt": f"{number} {_TEXT}"})

    def _tokens(self) -> None:
        self._probe(
            "tokens",
            "/v1/completions",
            lambda number: {"model": "canary", "prompt": f"Eight {number}: ", "max_tokens": 8},
        )

    def _probe(self, kind: str, path: str, body: Callable[[int], dict[str, Any]]) -> None:
        address = urlsplit(self._url).netloc
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        model = ""
        number = 0
        while not self._stop.is_set():
            number += 1
            started, error = time.monotonic(), ""
            connection = HTTPConnection(address, timeout=_TIMEOUT_S)
            try:
                if not model:
                    connection.request("GET", "/v1/models", headers=headers)
                    model = json.loads(connection.getresponse().read())["data"][0]["id"]
                    started = time.monotonic()
                asked = body(number)
                if "model" in asked:
                    asked["model"] = model
                connection.request("POST", path, json.dumps(asked), headers)
                response = connection.getresponse()
                data = response.read()
                error = "" if response.status == 200 else f"{response.status}: {data[:200]!r}"
            except (OSError, HTTPException, ValueError, LookupError) as raised:
                error = f"{type(raised).__name__}: {raised}"[:200]
            finally:
                connection.close()
            self._tell(kind, started, time.monotonic(), error)
            self._stop.wait(_PAUSE_S)

    def _stalls(self) -> None:
        while not self._stop.is_set():
            started = time.monotonic()
            time.sleep(_SLEEP_S)
            ended = time.monotonic()
            if ended - started > _LEAST_GAP_S + _SLEEP_S:
                self._tell("stall", started + _SLEEP_S, ended, "")


def main(url: str) -> None:
    """Probe until standard input is closed."""
    lock = threading.Lock()

    def tell(kind: str, begun: float, ended: float, error: str) -> None:
        with lock:
            sys.stdout.write(json.dumps({"kind": kind, "begun": begun, "ended": ended, "error": error}) + "\n")
            sys.stdout.flush()

    canaries = Canaries(url, os.environ[KEY_VARIABLE], tell)
    canaries.start()
    sys.stdin.read()
    canaries.stop()


if __name__ == "__main__":
    main(sys.argv[1])
