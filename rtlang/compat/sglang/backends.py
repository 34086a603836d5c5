"""Backends: where programs run. A backend holds a runtime of this package, local or on a server; `runtimes` has the local ones."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn, Self

from rtlang.contract.errors import ConfigError, ParameterError, TraceError
from rtlang.contract.service.target import Target
from rtlang.contract.version import VERSION
from rtlang.fleet.connect import connect
from rtlang.lang.decorator import program
from rtlang.lang.execution.run import default_runtime
from rtlang.lang.lazy_values.values import user_location
from rtlang.lang.program_state.expr import gen, text
from rtlang.lang.program_state.state import State


class Backend:
    """A runtime with the methods that programs call on a backend.

    Attributes:
        target: the runtime.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self._texts_of_server: dict[int, str] = {}

    @property
    def endpoint(self) -> Self:
        """The backend itself: there is no server between."""
        return self

    @property
    def chat_template(self) -> None:
        """None: it is that of the model's tokenizer. Setting another raises ConfigError."""
        return None

    @chat_template.setter
    def chat_template(self, template: object) -> None:
        check_template(template)

    @property
    def _tokenizer(self) -> Any:
        """The tokenizer of a local model; None on a server."""
        return getattr(self.target, "tokenizer", None)

    @property
    def has_vocabulary(self) -> bool:
        """Whether the texts of tokens are known: of a local model, and of a server, which is asked for them."""
        return self._tokenizer is not None or hasattr(self.target, "token_texts")

    def token_text(self, token_id: int) -> str | None:
        """The text of a token; None if the target knows none."""
        tokenizer = self._tokenizer
        if tokenizer is None:
            self.learn_texts([token_id])
            return self._texts_of_server.get(token_id)
        text: str = tokenizer.token_bytes(token_id).decode("utf-8", "replace")
        return text or str(tokenizer.token_name(token_id))

    def learn_texts(self, token_ids: Iterable[int]) -> None:
        """Ask a server for the texts of tokens, all in one request; those that are known are not asked for."""
        target: Any = self.target
        new = [each for each in dict.fromkeys(token_ids) if each not in self._texts_of_server]
        if new and self._tokenizer is None and hasattr(target, "token_texts"):
            self._texts_of_server.update(zip(new, target.token_texts(new), strict=True))

    def mark_text(self, roles: tuple[str, ...], role: str, is_begin: bool) -> str:
        """The text around the content of a message; empty on a server, which keeps its chat template."""
        tokenizer = self._tokenizer
        if tokenizer is None:
            return ""
        return str(tokenizer.framing(roles, role, is_begin=is_begin))

    def flush_cache(self, empty_cache: bool = True) -> bool:
        """Drop all cached prefixes that nothing running uses.

        Raises:
            ConfigError: the model runs on a server.
        """
        clear = getattr(self.target, "clear_cache", None)
        if clear is None:
            raise ConfigError("backend", type(self).__name__, "only a local Runtime can drop its cache")
        clear()
        return True

    def get_server_info(self) -> dict[str, Any]:
        """Counters of the engine and the settings of a local model; of a server its models and limits."""
        target: Any = self.target
        if hasattr(target, "stats"):
            return {"model_path": target.config.model, "version": VERSION, **target.stats()}
        models = list(getattr(target, "models", ()))
        name = models[0].get("name") if models else None
        return {"model_path": name, "models": models, "limits": dict(getattr(target, "limits", {}))}

    def get_model_name(self) -> str | None:
        """The name of the model."""
        name = self.get_server_info()["model_path"]
        return None if name is None else str(name)

    def cache_prefix(self, prefix: str) -> None:
        """Compute a text now, so that programs that begin with it find it in the cache."""
        if not prefix:
            return

        def body(s: State) -> None:
            s += text(prefix)
            s += gen(max_tokens=1)

        program(body).run(runtime=self.target)

    def start_profile(self) -> NoReturn:
        """Refused; `rt.Runtime.trace` writes the timeline of a run.

        Raises:
            ConfigError: always.
        """
        raise ConfigError("profile", None, "not available; write `with backend.target.trace(path):` around the run")

    stop_profile = start_profile


class RuntimeEndpoint(Backend):
    """A server of this package (`rtlang serve`), reached by its URL.

    Args:
        base_url: `http://host:port`, or https, ws, wss.
        api_key: the key of the server, if it requires one.
        verify, chat_template_name: only None; certificates are those of the system, and the chat template is that of the model.
    Raises:
        ConfigError: the URL or an option is invalid. ConnectionLostError: there is no such server.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        verify: str | None = None,
        chat_template_name: str | None = None,
    ) -> None:
        if verify is not None:
            raise ConfigError("verify", verify, "expected None; certificates are checked by those of the system")
        check_template(chat_template_name)
        self.base_url = base_url
        super().__init__(connect(base_url, api_key=api_key))

    def close(self) -> None:
        """Close the connection."""
        self.target.close()


def check_template(name: object) -> None:
    """Raise ConfigError unless the chat template is that of the model."""
    if name is not None:
        raise ConfigError("chat_template", name, "expected None; the chat template is that of the model's tokenizer")


class _Refused:
    """A backend of a remote API; these are not supported."""

    def __init__(self, *_: object, **__: object) -> None:
        raise ConfigError(
            "backend",
            type(self).__name__,
            "remote APIs are not supported, because this package runs models itself; use "
            "sgl.Runtime(model_path=...) for a model in this process, or sgl.RuntimeEndpoint(url) for one that `rtlang serve` runs",
        )


class OpenAI(_Refused):
    """Refused with ConfigError."""


class Anthropic(_Refused):
    """Refused with ConfigError."""


class LiteLLM(_Refused):
    """Refused with ConfigError."""


class VertexAI(_Refused):
    """Refused with ConfigError."""


class Shortfin(_Refused):
    """Refused with ConfigError."""


_running: ContextVar[Backend | None] = ContextVar("rtlang_sglang_backend", default=None)


@contextmanager
def running_on(backend: Backend) -> Iterator[None]:
    """Within the block, programs that are run without a backend use this one."""
    token = _running.set(backend)
    try:
        yield
    finally:
        _running.reset(token)


class _Default:
    """The process-wide default backend, set by `set_default_backend`."""

    backend: Backend | None = None


def set_default_backend(backend: Backend | Target | None) -> None:
    """Set the backend of runs without one; None removes it. A runtime of this package is accepted as well."""
    _Default.backend = None if backend is None else _checked(backend)


def default_backend() -> Backend | None:
    """The backend of `set_default_backend`; None if there is none."""
    return _Default.backend


def resolve_backend(backend: Backend | Target | None) -> Backend:
    """`backend`, or within a program that of its run, or the default one, or else that of `rt.set_default_runtime`.

    Raises:
        TraceError: there is none.
    """
    found = backend or _running.get() or _Default.backend or default_runtime()
    if found is None:
        raise TraceError(
            "no backend: pass backend=..., or call sgl.set_default_backend(sgl.Runtime(model_path=...)) first",
            user_location(),
        )
    return _checked(found)


def _checked(backend: Backend | Target) -> Backend:
    if isinstance(backend, Backend):
        return backend
    if isinstance(backend, type) or not callable(getattr(backend, "submit", None)):
        raise ParameterError("backend", backend, "expected sgl.Runtime(...), sgl.RuntimeEndpoint(url) or a runtime")
    return Backend(backend)


def flush_cache(backend: Backend | Target | None = None, empty_cache: bool = True) -> bool:
    """Drop all cached prefixes of a backend, by default of the default one."""
    return resolve_backend(backend).flush_cache(empty_cache)


def get_server_info(backend: Backend | Target | None = None) -> dict[str, Any]:
    """See `Backend.get_server_info`."""
    return resolve_backend(backend).get_server_info()


class GlobalConfig:
    """Global settings of SGLang's frontend. They have no effect here; setting one warns.

    `default_backend` is the backend of `set_default_backend`.
    """

    def __init__(self) -> None:
        vars(self).update(
            verbosity=0,
            skip_special_tokens_in_output=True,
            spaces_between_special_tokens_in_out=True,
            skip_special_tokens_in_decode=True,
            spaces_between_special_tokens_in_decode=True,
            enable_precache_with_tracing=True,
            enable_parallel_encoding=True,
        )

    @property
    def default_backend(self) -> Any:
        """The default backend; None if there is none."""
        return default_backend()

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "default_backend":
            set_default_backend(value)
            return
        if name not in vars(self):
            raise AttributeError(f"global_config has no setting {name!r}; it has {', '.join(sorted(vars(self)))}")
        if value != vars(self)[name]:
            warnings.warn(f"global_config.{name} has no effect", stacklevel=2)
        vars(self)[name] = value


global_config = GlobalConfig()
