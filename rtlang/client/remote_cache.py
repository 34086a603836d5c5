"""The prefix cache of a server, for the client's own namespace: explanations of prompts, pins, and the tree.

    with rt.connect("ws://127.0.0.1:8420") as remote:
        print(remote.cache.explain("You are a helpful assistant. ..."))
        pinned = remote.cache.pin("You are a helpful assistant. ...", ttl_s=600)

Calls go over HTTP, not over the connection that carries the graphs, so a long one delays none of them.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from rtlang.client.address import PATH, server_address
from rtlang.contract.errors import ConnectionLostError, RtlangError, rebuild
from rtlang.contract.graph.template_options import TemplateOptions
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Part, RoleEnd, RoleStart, TokenIds
from rtlang.contract.runs.principal import check_cache_salt
from rtlang.contract.service.cache_report import CacheExplanation
from rtlang.contract.service.cache_service import PinGrant, checked_max_nodes, checked_ttl_s
from rtlang.contract.service.generation import Prompt, generation_graph, token_ids_part

MAX_ANSWER_BYTES = 64 << 20
COMPUTE_TIMEOUT_S = 600.0
"""Seconds that a pin may take, which waits for its prompt to be computed."""
_MOST_TEXTS = 1024
"""Texts that one request asks for."""
_SCHEMES = {"ws": "http", "wss": "https"}
_CODES = {"context_length_exceeded": "context_length"}


class CacheRequests:
    """The HTTP requests about the cache and the tokens of one server.

    Args:
        url: as for `rtlang.connect`.
        timeout_s: of each request, in seconds.
    """

    def __init__(self, url: str, api_key: str | None, timeout_s: float) -> None:
        self.url, self._timeout_s = "", timeout_s
        self.move_to(url)
        self._headers = {"content-type": "application/json"}
        if api_key is not None:
            self._headers["authorization"] = f"Bearer {api_key}"
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def move_to(self, url: str) -> None:
        """Ask another server from now on."""
        parts = urlsplit(server_address(url))
        path = parts.path.removesuffix(PATH)
        self.url = urlunsplit((_SCHEMES[parts.scheme], parts.netloc, path, "", ""))

    def explain(
        self, prompt: Prompt | None, token_ids: Iterable[int] | None, cache_salt: str | None
    ) -> CacheExplanation:
        """See `RemoteCache.explain`."""
        return CacheExplanation.from_plain(
            self._send("POST", "/v1/cache/explain", _prompt(prompt, token_ids, cache_salt))
        )

    def pin(
        self,
        prompt: Prompt | None,
        token_ids: Iterable[int] | None,
        ttl_s: float | None,
        computes: bool,
        cache_salt: str | None,
    ) -> PinGrant:
        """See `RemoteCache.pin`."""
        body = _prompt(prompt, token_ids, cache_salt) | {"computes": computes}
        if ttl_s is not None:
            body["ttl_s"] = checked_ttl_s(ttl_s)
        timeout_s = max(COMPUTE_TIMEOUT_S, self._timeout_s) if computes else self._timeout_s
        return PinGrant.from_plain(self._send("POST", "/v1/cache/pins", body, timeout_s))

    def pins(self) -> list[PinGrant]:
        """The pins of this principal."""
        return [PinGrant.from_plain(each) for each in self._send("GET", "/v1/cache/pins")["pins"]]

    def unpin(self, pin_id: str) -> bool:
        """End a pin; False if there is no such pin."""
        return self._send("DELETE", f"/v1/cache/pins/{quote(pin_id, safe='')}", is_optional=True) is not None

    def is_kept(self, pin_id: str) -> bool:
        """Whether the pages of a pin are still kept."""
        found = self._send("GET", f"/v1/cache/pins/{quote(pin_id, safe='')}", is_optional=True)
        return found is not None and bool(found["is_kept"])

    def tree(self, max_nodes: int) -> list[dict[str, Any]]:
        """See `RemoteCache.tree`."""
        return list(self._send("GET", f"/v1/cache/tree?max_nodes={checked_max_nodes(max_nodes)}")["nodes"])

    def count_tokens(self, parts: Sequence[Part]) -> int:
        """See `RemoteRuntime.count_tokens`."""
        text, messages, start = _texts(parts)
        num_tokens = sum(len(part.ids) for part in parts if isinstance(part, TokenIds) and not part.text)
        if text:
            num_tokens += self._num_tokens({"prompt": text, "add_special_tokens": not messages})
        if messages:
            asks = isinstance(parts[-1], RoleStart) and parts[-1].role == "assistant"
            body: dict[str, Any] = {"messages": messages[:-1] if asks else messages, "add_generation_prompt": asks}
            if start is not None and start.tools is not None:
                body["tools"] = json.loads(start.tools)
            if start is not None and start.template_options is not None:
                options = TemplateOptions.from_text(start.template_options)
                body["chat_template_kwargs"] = dict(options.variables)
                body |= {} if options.chat_template is None else {"chat_template": options.chat_template}
            num_tokens += self._num_tokens(body)
        return num_tokens

    def token_texts(self, token_ids: Sequence[int]) -> list[str]:
        """See `RemoteRuntime.token_texts`."""
        found: list[str] = []
        for start in range(0, len(token_ids), _MOST_TEXTS):
            tokens = [[token_id] for token_id in token_ids[start : start + _MOST_TEXTS]]
            found += self._send("POST", "/v1/detokenize", {"tokens": tokens})["prompt"]
        return found

    def _num_tokens(self, body: Mapping[str, Any]) -> int:
        return int(self._send("POST", "/v1/tokenize", body)["count"])

    def _send(
        self, method: str, path: str, body: object = None, timeout_s: float | None = None, *, is_optional: bool = False
    ) -> Any:
        """The JSON of an answer; an empty map for one without content, and None for 404 if `is_optional`.

        Raises:
            RtlangError: the server refuses the request. ConnectionLostError: it is not reachable, or gives no such answer.
        """
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, self._headers, method=method)
        try:
            with self._opener.open(request, timeout=timeout_s or self._timeout_s) as response:
                content = response.read(MAX_ANSWER_BYTES)
                return json.loads(content) if content else {}
        except urllib.error.HTTPError as error:
            if is_optional and error.code == 404:
                return None
            raise self._refusal(error.code, error.read(MAX_ANSWER_BYTES)) from None
        except (OSError, http.client.HTTPException) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            raise ConnectionLostError(f"{self.url}: {reason or type(error).__name__}") from error
        except (ValueError, RecursionError):
            raise ConnectionLostError(f"{self.url}{path}: the answer is not JSON") from None

    def _refusal(self, status: int, content: bytes) -> RtlangError:
        try:
            fields = json.loads(content)["error"]
            code, message = str(fields["code"]), str(fields["message"])
            facts = dict(fields.get("facts") or {})
        except (ValueError, KeyError, TypeError, RecursionError):
            return ConnectionLostError(f"{self.url}: refused with HTTP status {status}")
        if status in (401, 403):
            return ConnectionLostError(f"{self.url}: {message}")
        return rebuild(_CODES.get(code, code), message, facts)


class RemotePinned:
    """A prompt whose pages are kept on a server. A context manager that releases them.

    Attributes:
        num_tokens: of the prompt.
        num_granted_tokens: tokens at its start that are kept.
        ttl_s: seconds after which the server releases them.
    """

    def __init__(self, requests: CacheRequests, grant: PinGrant) -> None:
        self.pin_id, self.ttl_s = grant.pin_id, grant.ttl_s
        self.num_tokens, self.num_granted_tokens = grant.num_tokens, grant.num_granted_tokens
        self._requests = requests

    def __enter__(self) -> RemotePinned:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<RemotePinned {self.num_granted_tokens} of {self.num_tokens} tokens for {self.ttl_s:g} s>"

    @property
    def is_kept(self) -> bool:
        """Whether the pages are still kept; asks the server."""
        return self._requests.is_kept(self.pin_id)

    def release(self) -> None:
        """Keep the pages no longer. Idempotent.

        Raises:
            ConnectionLostError: the server is not reachable; it releases the pages after `ttl_s`.
        """
        self._requests.unpin(self.pin_id)


class RemoteCache:
    """The prefix cache of a server; see `RemoteRuntime.cache`. Thread-safe.

    Every method raises ConnectionLostError if the server is not reachable or refuses the key, OverloadError if this principal has too many
    calls at a time, and EngineDeadError while the server has no engine.
    """

    def __init__(self, requests: CacheRequests) -> None:
        self._requests = requests

    def explain(
        self,
        prompt: Prompt | None = None,
        *,
        token_ids: Iterable[int] | None = None,
        cache_salt: str | None = None,
    ) -> CacheExplanation:
        """Explain which part of a prompt is cached: text, chat messages, or tokens.

        Args:
            cache_salt: of the runs that the prompt is for; see `RunOptions`.
        Raises:
            ParameterError: not exactly one of prompt and token_ids is given, or one is invalid.
            ContextLengthError: the prompt is longer than the model's context.
        """
        return self._requests.explain(prompt, token_ids, cache_salt)

    def pin(
        self,
        prompt: Prompt | None = None,
        *,
        token_ids: Iterable[int] | None = None,
        ttl_s: float | None = None,
        computes: bool = True,
        cache_salt: str | None = None,
    ) -> RemotePinned:
        """Keep the pages of a prompt from eviction for a time; see `CacheView.pin`.

        A principal with a namespace of its own keeps at most half of `retention_share`.

        Args:
            ttl_s: seconds, at most a day; None: ten minutes.
            computes: compute what is not cached yet, and wait for it. Otherwise only what is cached is kept.
            cache_salt: as for `explain`.
        Raises:
            ParameterError: as `explain`, or ttl_s is not such a number.
            OverloadError: the principal has too many pins.
            RtlangError: the prompt cannot be computed.
        """
        return RemotePinned(self._requests, self._requests.pin(prompt, token_ids, ttl_s, computes, cache_salt))

    def pins(self) -> list[PinGrant]:
        """The pins of this principal, those of its other connections included, the oldest first."""
        return self._requests.pins()

    def unpin(self, pin_id: str) -> bool:
        """End a pin of this principal; False if there is no such pin (any more)."""
        return self._requests.unpin(pin_id)

    def tree(self, max_nodes: int = 1000) -> list[dict[str, Any]]:
        """The radix tree as plain maps, as `CacheView.tree`: the nodes of this principal's namespace, and the public ones above them."""
        return self._requests.tree(max_nodes)


class AsyncRemoteCache:
    """`RemoteCache` for asyncio: its methods as coroutines. `pin` returns the grant, which `unpin` ends."""

    def __init__(self, requests: CacheRequests) -> None:
        self._requests = requests

    async def explain(
        self,
        prompt: Prompt | None = None,
        *,
        token_ids: Iterable[int] | None = None,
        cache_salt: str | None = None,
    ) -> CacheExplanation:
        """See `RemoteCache.explain`."""
        return await asyncio.to_thread(self._requests.explain, prompt, token_ids, cache_salt)

    async def pin(
        self,
        prompt: Prompt | None = None,
        *,
        token_ids: Iterable[int] | None = None,
        ttl_s: float | None = None,
        computes: bool = True,
        cache_salt: str | None = None,
    ) -> PinGrant:
        """See `RemoteCache.pin`."""
        return await asyncio.to_thread(self._requests.pin, prompt, token_ids, ttl_s, computes, cache_salt)

    async def pins(self) -> list[PinGrant]:
        """See `RemoteCache.pins`."""
        return await asyncio.to_thread(self._requests.pins)

    async def unpin(self, pin_id: str) -> bool:
        """See `RemoteCache.unpin`."""
        return await asyncio.to_thread(self._requests.unpin, pin_id)

    async def tree(self, max_nodes: int = 1000) -> list[dict[str, Any]]:
        """See `RemoteCache.tree`."""
        return await asyncio.to_thread(self._requests.tree, max_nodes)


def _texts(parts: Sequence[Part]) -> tuple[str, list[dict[str, str]], RoleStart | None]:
    """The text outside of messages, the messages, and the start of the first one."""
    text, messages = "", []
    start: RoleStart | None = None
    is_inside = False
    for part in parts:
        match part:
            case RoleStart():
                messages.append({"role": part.role, "content": ""})
                if part.role == "tool":
                    messages[-1]["tool_call_id"] = f"call{len(messages)}"
                is_inside, start = True, start or part
            case RoleEnd():
                is_inside = False
            case str() | TokenIds():
                more = part if isinstance(part, str) else part.text
                if is_inside:
                    messages[-1]["content"] += more
                else:
                    text += more
    return text, messages, start


def _prompt(prompt: Prompt | None, token_ids: Iterable[int] | None, cache_salt: str | None) -> dict[str, Any]:
    """The fields of a request that name its prompt and the namespace of it."""
    ids = None if token_ids is None else list(token_ids_part(token_ids).ids)
    generation_graph(prompt, SamplingParams(), token_ids=ids)  # checks them
    fields: dict[str, Any] = {"token_ids": ids} if ids is not None else {}
    if ids is None:
        fields = {"prompt": prompt} if isinstance(prompt, str) else {"messages": list(prompt or ())}
    if cache_salt is not None:
        check_cache_salt(cache_salt)
        fields["cache_salt"] = cache_salt
    return fields
