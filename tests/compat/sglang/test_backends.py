"""Backends: the default one, a server, and what is refused."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest

import rtlang as rt
import rtlang.compat.sglang as sgl
from rtlang.compat.sglang.backends import resolve_backend
from rtlang.serve.server import running_server
from rtlang.testing import ScriptedRuntime
from tests.support.long_tests import sized
from tests.support.programs.sglang_programs import NAMES, execute, statements


@sgl.function
def hello(s: sgl.ProgramState) -> None:
    s += "Hello" + sgl.gen("x", max_tokens=3, temperature=0)


def test_the_backend_of_a_run_goes_before_the_default_one() -> None:
    one, other, third = (ScriptedRuntime({"x": text}) for text in ("1", "2", "3"))
    with pytest.raises(rt.TraceError, match=r"no backend: pass backend=\.\.\., or call sgl.set_default_backend"):
        hello.run()
    rt.set_default_runtime(third)
    try:
        assert hello.run()["x"] == "3"
        sgl.set_default_backend(one)
        assert hello.run()["x"] == "1"
        assert hello.run(backend=other)["x"] == "2"
    finally:
        sgl.set_default_backend(None)
        rt.set_default_runtime(None)


@pytest.mark.parametrize("wrong", ["http://127.0.0.1", sgl.Runtime, 7])
def test_what_is_no_backend_is_refused(wrong: Any) -> None:
    with pytest.raises(rt.ParameterError, match=r"expected sgl\.Runtime"):
        sgl.set_default_backend(wrong)


@pytest.mark.parametrize("name", ["OpenAI", "Anthropic", "LiteLLM", "VertexAI", "Shortfin"])
def test_remote_apis_are_refused_with_what_to_use(name: str) -> None:
    with pytest.raises(rt.ConfigError, match=rf"'{name}': remote APIs are not supported.*sgl.RuntimeEndpoint"):
        getattr(sgl, name)("some-model")


def test_the_cache_can_be_dropped_and_counted(backend: sgl.Runtime) -> None:
    hello.run()["x"]
    assert sgl.get_server_info()["num_pages_cached"] > 0
    assert sgl.get_server_info()["model_path"] == backend.get_model_name() == "rtlang:tiny"
    assert sgl.flush_cache() is True
    assert sgl.get_server_info(backend)["num_pages_cached"] == 0
    text = "This is the beginning of many prompts. " * 8
    backend.cache_prefix(text)
    assert sgl.get_server_info()["num_pages_cached"] > 0
    with pytest.raises(rt.ConfigError, match=r"backend\.target\.trace"):
        backend.start_profile()


@pytest.fixture(scope="module")
def server(tiny: sgl.Runtime) -> Iterator[str]:
    target: Any = tiny.target
    with running_server(target) as url:
        yield url.replace("ws://", "http://")


def test_programs_run_on_a_server(server: str, tiny: sgl.Runtime) -> None:
    endpoint = sgl.RuntimeEndpoint(server)

    @sgl.function
    def body(s: sgl.ProgramState) -> None:
        s += sgl.user("Hi")
        s += sgl.assistant(sgl.gen("x", max_tokens=4, temperature=0, return_logprob=True))
        s += sgl.select("y", ["a", "bc"])

    @sgl.function
    def with_texts(s: sgl.ProgramState) -> None:
        s += "a" + sgl.gen(
            "x",
            return_logprob=True,
            return_text_in_logprobs=True,
            top_logprobs_num=2,
            logprob_start_len=0,
            temperature=0,
        )

    try:
        there, here = body.run(backend=endpoint), body.run(backend=tiny)
        assert (there["x"], there["y"], there.messages()) == (here["x"], here["y"], here.messages())
        for name in ("x", "y"):
            far, near = there.get_meta_info(name), here.get_meta_info(name)
            assert far.keys() == near.keys()
        near, far = (state.get_meta_info("y")["input_token_logprobs"] for state in (here, there))
        assert [[entry[1] for entry in option] for option in far] == [[entry[1] for entry in option] for option in near]
        assert [[entry[2] for entry in option] for option in far] == [[entry[2] for entry in option] for option in near]
        chunks = list(body.run(backend=endpoint, stream=True).text_iter("x"))
        assert "".join(chunks) == here["x"]
        # The marks of messages are the server's: the text has the contents only.
        assert there.text() == f"Hi{there['x']}{there['y']}"
        assert sgl.get_server_info(endpoint)["limits"]["max_streams"] > 0
        far, near = (with_texts.run(backend=each).get_meta_info("x") for each in (endpoint, tiny))
        for name in ("output_token_logprobs", "output_top_logprobs", "input_token_logprobs"):
            texts = [str(entry[2]) for entry in _flat(near[name])]
            assert [str(entry[2]) for entry in _flat(far[name])] == texts
            assert "" not in texts
        with pytest.raises(rt.ConfigError, match="only a local Runtime can drop its cache"):
            sgl.flush_cache(endpoint)
    finally:
        endpoint.close()


def _flat(entries: list[Any]) -> list[Any]:
    """The entries of tokens, those of the likeliest ones included."""
    return [each for entry in entries if entry is not None for each in (entry if isinstance(entry, list) else [entry])]


def test_random_programs_are_the_same_on_a_server_and_streamed(server: str, tiny: sgl.Runtime) -> None:
    endpoint = sgl.RuntimeEndpoint(server)
    backends: list[Any] = [tiny, endpoint]
    try:
        for seed in range(sized(100, usual=10)):
            program = [("text", "Begin. "), *statements(random.Random(seed), 2)]

            @sgl.function
            def body(s: Any, program: list[Any] = program) -> None:
                execute(s, program)

            found = []
            for backend, stream in itertools.product(backends, [False, True]):
                state = body.run(temperature=0, max_new_tokens=4, backend=backend, stream=stream)
                assert state.error() is None, seed
                found.append((state.messages(), {name: state[name] for name in NAMES if name in state}))
            assert found == [found[0]] * 4, seed
    finally:
        endpoint.close()


@pytest.mark.parametrize("options", [{"verify": "ca.pem"}, {"chat_template_name": "llama-2-chat"}])
def test_options_of_a_connection_without_a_counterpart_are_refused(options: Any) -> None:
    with pytest.raises(rt.ConfigError, match="expected None"):
        sgl.RuntimeEndpoint("http://127.0.0.1:1", **options)


def test_the_chat_template_of_a_backend_cannot_be_set(backend: sgl.Runtime) -> None:
    assert backend.endpoint.chat_template is None
    with pytest.raises(rt.ConfigError, match="the chat template is that of the model"):
        backend.endpoint.chat_template = "llama-2-chat"  # type: ignore[assignment]


def test_a_missing_server_is_an_error() -> None:
    with pytest.raises(rt.ConnectionLostError):
        sgl.RuntimeEndpoint("http://127.0.0.1:9")


def test_a_backend_without_a_model_knows_no_texts() -> None:
    backend = resolve_backend(ScriptedRuntime({}))
    assert (backend.token_text(5), backend.mark_text((), "user", True)) == (None, "")
    assert backend.endpoint is backend


def test_global_settings_have_no_effect_and_warn() -> None:
    assert sgl.global_config.verbosity == 0
    assert sgl.global_config.enable_parallel_encoding is True
    sgl.global_config.verbosity = 0
    with pytest.warns(UserWarning, match="verbosity has no effect"):
        sgl.global_config.verbosity = 2
    with pytest.warns(UserWarning, match="verbosity has no effect"):
        sgl.global_config.verbosity = 0
    with pytest.raises(AttributeError, match="no setting 'speed'"):
        sgl.global_config.speed = 1


def test_the_default_backend_can_be_set_there() -> None:
    with ScriptedRuntime() as scripted:
        sgl.global_config.default_backend = scripted
        assert sgl.global_config.default_backend.target is scripted
        sgl.global_config.default_backend = None
        assert sgl.global_config.default_backend is None


def test_the_version_is_that_of_this_package() -> None:
    assert sgl.__version__ == rt.__version__
