"""The server: the WebSocket protocol `rtlang.v1`, WebSocket mode of the Responses API and the HTTP routes on one port, for one target.

uvicorn serves HTTP and hands upgraded sockets to websocket.py and websocket_mode. The server runs in the engine's process, on its own event
loop: `run` blocks until SIGINT or SIGTERM, `serve` is the same as a coroutine, and `running_server` runs a server in a thread. Shutdown is
graceful: nothing new is accepted, running graphs get `drain_timeout_s` seconds to finish, the rest are cancelled, and sockets are closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import logging
import secrets
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

import uvicorn

from rtlang.contract.config import ServeConfig
from rtlang.contract.errors import ConfigError
from rtlang.contract.process.log_limit import limited_logs
from rtlang.contract.process.thread_watch import WatchedLoop, watch_of
from rtlang.contract.runs.run_options import Ability, abilities_of
from rtlang.contract.service.cache_service import cache_service_of
from rtlang.contract.service.metrics import Metrics
from rtlang.contract.service.target import Target
from rtlang.protocol.limits import wire_limits
from rtlang.protocol.messages import CloseCode
from rtlang.serve.connection import ServerInfo
from rtlang.serve.http.app import create_app
from rtlang.serve.http.errors import error_body
from rtlang.serve.http.inner_requests import InnerRequests
from rtlang.serve.http.middleware.request_middleware import record_of
from rtlang.serve.json_parts import json_bytes
from rtlang.serve.network.http_connection import HttpConnection
from rtlang.serve.network.key_table import KeyTable
from rtlang.serve.network.socket_counts import SocketCounts
from rtlang.serve.network.tls import tls_context
from rtlang.serve.records.request_record import RequestRecords
from rtlang.serve.responses.mcp_servers import listed_servers
from rtlang.serve.service import StreamService
from rtlang.serve.websocket import StreamSocket
from rtlang.serve.websocket_mode import handshake
from rtlang.serve.websocket_mode.socket import ModeSocket

logger = logging.getLogger(__name__)

CAPS = (Ability.CREDIT, Ability.PROGRESS, Ability.CONTINUE, Ability.BUDGET, Ability.CACHE_SALT)
"""Abilities in `welcome`, each with the option of the target's `submit` that it needs."""
KEYS_INTERVAL_S = 2.0  # between two looks at the file of keys
_TURN_ACCEPTS = 16  # in one turn of the event loop, about 2 ms; also the log lines of failed ones
_BACKLOG = 4096  # connections that wait for `accept`; a client whose connection finds no place there tries again after 1, 3 and 7 s
_NOISY_LOGGERS = ("asyncio", "uvicorn.error")
_HTTP_TIMEOUT_S = 5  # for HTTP responses and closing handshakes in progress at shutdown


@dataclass(frozen=True, slots=True)
class TokenizerInfo:
    """The model as described to clients: name, vocabulary size, maximum sequence length in tokens, format of tool calls, and
    identity (see `Target.abilities`).
    """

    model: str
    vocab_size: int | None = None
    max_model_len: int | None = None
    tool_format: str | None = None
    identity: str | None = None


def check_settings(config: ServeConfig) -> None:
    """Check the settings that a server reads as it starts (keys, certificates, MCP servers, address), before a model is loaded for it.

    Raises:
        ConfigError: a server cannot start with them; names the field.
    """
    KeyTable(config)
    tls_context(config)
    listed_servers(config.mcp_servers)
    _listening_socket(config).close()


class Server:
    """Serves `target`.

    Args:
        target: runs the graphs. The server does not close it.
        tokenizer_info: describes the target's model; None if unknown.
        config: address, access control and limits.
        metrics: the target's registry; None creates one.
    """

    def __init__(
        self,
        target: Target,
        tokenizer_info: TokenizerInfo | None = None,
        config: ServeConfig | None = None,
        *,
        metrics: Metrics | None = None,
    ) -> None:
        self.config = config or ServeConfig()
        self.metrics = metrics or Metrics()
        self._target, self._tokenizer_info = target, tokenizer_info
        self._port = self.config.port
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._hurry: asyncio.Event | None = None

    @property
    def url(self) -> str:
        """The URL for clients. The port is final once the server is listening."""
        host = f"[{self.config.host}]" if ":" in self.config.host else self.config.host
        return f"{'ws' if self.config.tls_certificate is None else 'wss'}://{host}:{self._port}"

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM, then drain; a second signal cancels running graphs.

        Raises:
            ConfigError: the server cannot listen on the address; names host or port.
        """
        asyncio.run(self.serve(handle_signals=True))

    async def serve(self, *, handle_signals: bool = False, on_listening: Callable[[], None] = lambda: None) -> None:
        """Serve until `stop`. `on_listening` is called once connections are accepted.

        Raises:
            ConfigError: the server cannot listen on the address; names host or port.
        """
        tls = tls_context(self.config)
        listener = _listening_socket(self.config)
        self._port = listener.getsockname()[1]
        loop = self._loop = asyncio.get_running_loop()
        stop = self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        service = self.new_service(loop)
        counts = SocketCounts(self.config.max_sockets, self.config.max_sockets_per_address, self.metrics)
        http = _HttpServer(
            tls,
            self.config.tls_handshake_timeout_s,
            uvicorn.Config(
                create_app(service),
                # uvicorn types these two as classes; it calls them.
                http=cast(
                    Any,
                    functools.partial(
                        HttpConnection, self.config, counts, functools.partial(_refusal, service.records)
                    ),
                ),
                ws=cast(Any, functools.partial(_websocket, service)),
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,  # anyone on this machine could name another address as theirs
                server_header=False,
                date_header=False,
                timeout_graceful_shutdown=_HTTP_TIMEOUT_S,
                timeout_keep_alive=cast(int, self.config.keep_alive_s),  # passed to call_later, which takes any number
                backlog=_TURN_ACCEPTS,
            ),
        )
        signals = _signals(loop, self._signalled, lambda: service.reload_keys(only_if_changed=False))
        watch = watch_of("event loop")
        watched = contextlib.nullcontext() if watch is None else contextlib.closing(WatchedLoop(loop, watch))
        with watched, limited_logs(*_NOISY_LOGGERS), signals if handle_signals else contextlib.nullcontext():
            watching = asyncio.create_task(_watch_keys(service))
            serving = asyncio.create_task(http.serve(sockets=[listener]))
            try:
                await _until(http.listening, serving)
                listener.listen(_BACKLOG)  # asyncio has one number for both
                logger.info("serving at %s with %s", self.url, {**service.server_info.limits})
                for start in service.at_start:
                    start()
                on_listening()
                await _until(stop, serving)
                await self._drain(service)
            finally:
                watching.cancel()
                service.close_all(CloseCode.DRAINED, "the server is shutting down")
                http.ending.set()
                await serving
                listener.close()
                for end in service.at_end:
                    end()
                service.work.close()

    def new_service(self, loop: asyncio.AbstractEventLoop) -> StreamService:
        """The state of the server, without its sockets and routes."""
        server_info = ServerInfo(
            epoch=secrets.token_hex(8),
            models=self._models(),
            limits=self._limits(),
            caps=(
                *(ability.value for ability in CAPS if ability in abilities_of(self._target)),
                *(["cache"] if cache_service_of(self._target) is not None else []),
            ),
            max_streams=self.config.max_streams,
        )
        return StreamService(self._target, self.config, server_info, self.metrics, loop)

    @contextlib.contextmanager
    def inner_requests(self, loop: asyncio.AbstractEventLoop) -> Iterator[InnerRequests]:
        """The routes of the server without a socket, for requests of this process."""
        service = self.new_service(loop)
        create_app(service)
        try:
            yield InnerRequests(service.records, service.routes)
        finally:
            service.close_all(CloseCode.DRAINED, "the process ends")
            service.work.close()
            for end in service.at_end:
                end()

    def stop(self) -> None:
        """Start a graceful shutdown: drain, then return from `serve` and `run`. Callable from any thread; idempotent."""
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the server has stopped
                loop.call_soon_threadsafe(stop.set)

    def _models(self) -> tuple[dict[str, Any], ...]:
        if self._tokenizer_info is None:
            return ()
        name = next(iter(self.config.served_model_name), self._tokenizer_info.model)
        return (asdict(self._tokenizer_info) | {"model": name},)

    def _limits(self) -> dict[str, int]:
        config = self.config
        return wire_limits(
            max_frame_bytes=config.max_frame_bytes,
            max_streams=config.max_streams,
            max_connections=config.max_connections,
            hello_timeout_ms=round(config.hello_timeout_s * 1000),
            slow_timeout_ms=round(config.slow_timeout_s * 1000),
            send_buffer_bytes=config.send_buffer_bytes,
            resume_buffer_bytes=config.resume_buffer_bytes,
        )

    def _signalled(self) -> None:
        assert self._stop is not None
        assert self._hurry is not None
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    async def _drain(self, service: StreamService) -> None:
        timeout_s = self.config.drain_timeout_s
        logger.info("draining for at most %g s", timeout_s)
        assert self._hurry is not None
        service.drain(timeout_s)
        waiting = {asyncio.create_task(service.idle.wait()), asyncio.create_task(self._hurry.wait())}
        await asyncio.wait(waiting, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        if not service.idle.is_set():
            logger.warning("cancelling graphs still running after drain_timeout_s = %g s", timeout_s)


def _listening_socket(config: ServeConfig) -> socket.socket:
    host, port = config.host, config.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm (40 ms on every second small write) only if the protocol number is TCP.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            reason = "in use" if error.errno == errno.EADDRINUSE else "not permitted for this user"
            raise ConfigError(
                "port", port, f"{host}:{port} is {reason}; use another port, or 0 for any free one"
            ) from None
        raise ConfigError("host", host, f"not an address of this machine ({error})") from None
    listener.setblocking(False)
    return listener


def _websocket(service: StreamService, *, path: str, **of_uvicorn: Any) -> asyncio.Protocol:
    """The protocol of a socket that is upgraded at a path. Refuses unknown paths, too."""
    protocol = ModeSocket if path == handshake.PATH else StreamSocket
    return protocol(service, **of_uvicorn)


def _refusal(
    records: RequestRecords, scope: Mapping[str, Any] | None, status: int, message: str, code: str
) -> tuple[bytes, str]:
    """The body of the answer to a request that is late or not valid HTTP, and its id; see `http_connection.Refusal`."""
    request_id = records.refuse_unread(None if scope is None else record_of(scope), status, code)
    return json_bytes(error_body(status, message, code=code, request_id=request_id)), request_id


class _HttpServer(uvicorn.Server):
    """uvicorn without its signal handlers, which would end the process, and without its polling loop."""

    def __init__(self, tls: ssl.SSLContext | None, handshake_timeout_s: float, config: uvicorn.Config) -> None:
        config.load()
        config.ssl = tls  # uvicorn would make one from files, without our checks
        super().__init__(config)
        self._handshake_timeout_s = None if tls is None else handshake_timeout_s
        self.listening, self.ending = asyncio.Event(), asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """uvicorn's, with a limit on the time of TLS handshakes, for which it has no setting; asyncio's is a minute."""
        loop = asyncio.get_running_loop()
        create_server = functools.partial(loop.create_server, ssl_handshake_timeout=self._handshake_timeout_s)
        setattr(loop, "create_server", create_server)  # noqa: B010  # methods cannot be assigned
        try:
            await super().startup(sockets)
        finally:
            delattr(loop, "create_server")

    async def main_loop(self) -> None:
        self.listening.set()
        await self.ending.wait()


async def _watch_keys(service: StreamService) -> None:
    """Read the file of keys again when it changes."""
    while True:
        await asyncio.sleep(KEYS_INTERVAL_S)
        try:
            service.reload_keys()
        except Exception:
            logger.exception("the keys could not be read again")


async def _until(event: asyncio.Event, serving: asyncio.Task[None]) -> None:
    """Wait for `event`, or for `serving` to end on its own; its error is raised where it is awaited."""
    waiting = asyncio.create_task(event.wait())
    await asyncio.wait((waiting, serving), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()


@contextlib.contextmanager
def _signals(loop: asyncio.AbstractEventLoop, stop: Callable[[], None], reload: Callable[[], None]) -> Iterator[None]:
    handled = {signal.SIGINT: stop, signal.SIGTERM: stop, signal.SIGHUP: reload}
    for number, handler in handled.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


@contextlib.contextmanager
def running_server(
    target: Target,
    config: ServeConfig | None = None,
    tokenizer_info: TokenizerInfo | None = None,
    *,
    metrics: Metrics | None = None,
) -> Iterator[str]:
    """Run a server in a thread of this process; yields its URL. On exit the server drains and the thread ends.

    Raises:
        ConfigError: the server cannot listen on the address; names host or port.
    """
    server = Server(target, tokenizer_info, config or ServeConfig(port=0), metrics=metrics)
    listening = threading.Event()
    failures: list[BaseException] = []

    def serve() -> None:
        try:
            asyncio.run(server.serve(on_listening=listening.set))
        except BaseException as error:
            failures.append(error)
        finally:
            listening.set()

    thread = threading.Thread(target=serve, name="rtlang-server", daemon=True)
    thread.start()
    listening.wait()
    try:
        if not failures:
            yield server.url
    finally:
        server.stop()
        thread.join()
        if failures:
            raise failures[0]
