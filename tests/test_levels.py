"""The levels inside `rtlang`, as the libraries have them: at every depth, parts import parts of lower levels only.

Read from the sources, imports for type checking and through `import_module` included. `test_layers.py` has the rules between the rooms.
"""

from __future__ import annotations

import ast

import pytest

from tests.support.import_graph import arrows_of, arrows_within, folder_sizes, packages, part_of, sources

MAX_FILES = 15

LEVELS: dict[str, list[str]] = {
    "rtlang": [
        "cache contract tiny",
        "compiler model protocol tool_servers work",
        "client engine lang serve",
        "runtime",
        "bench cassette fleet testing",
        "compat console",
        "__main__",
    ],
    "rtlang.bench": [
        "checkpoint machine measure server_process",
        "agents heavy_model language workloads",
        "baselines speculation",
        "states steps",
        "comparison",
    ],
    "rtlang.cache": [
        "node pages system_memory",
        "eviction pool scope tiers",
        "continuation outline page_digests states",
        "node_states",
        "radix",
        "retention",
        "prefix_cache",
    ],
    "rtlang.cache.tiers": [
        "digest tier",
        "disk_tier host_tier peers",
    ],
    "rtlang.compat": [
        "sglang",
    ],
    "rtlang.console": [
        "key_command options source",
        "grammar_report loading one_line_errors server_requests show",
        "batch bench chat checkpoints doctor fleet_commands fleet_view mcp questions",
        "serving top",
    ],
    "rtlang.contract": [
        "errors growing_json version",
        "accounts field_names params process",
        "config events sampling_keywords",
        "graph runtime_settings step",
        "pictures runs",
        "graph_running",
        "request_graph",
        "blocks node_work service",
    ],
    "rtlang.engine": [
        "checkpoints planning program_pages sessions token_rules",
        "constraints",
        "requests",
        "device_constraints drafts fault_isolation tiers",
        "preparation scheduling",
        "step_pipeline",
        "engine",
        "prefix_report snapshots",
    ],
    "rtlang.fleet": [
        "messages",
        "engines host",
        "routing",
        "replicas",
        "ray",
        "connect",
        "ray_data",
    ],
    "rtlang.lang": [
        "effect_marks function_digest partials",
        "output_types",
        "lazy_values mcp_client",
        "recordings",
        "program_state sessions",
        "control views",
        "best_of effects execution fitting",
        "rows",
        "diff pinning program",
        "decorator explain",
    ],
    "rtlang.lang.output_types": [
        "form_values kinds schemas",
        "returned_values value_kinds",
        "signatures",
        "tool_calls types",
        "answers checks forms",
        "tools",
    ],
    "rtlang.model": [
        "batch filters kernel_choices loading system_resources text",
        "layers runner sampler",
        "parallel runner_rebuild",
        "decoders",
        "gpu",
        "loader",
        "draft_heads",
        "device_runner host_runner quantization scripted",
        "draft_runner faulty_runner identity rank_worker",
        "new_runner",
    ],
    "rtlang.model.decoders": [
        "bit_check expert_parts falcon fixed_tiles float32_math latent_attention native recurrent self_check",
        "transformers_loading",
        "low_bit_loading native_decoder",
        "transformers_decoder",
    ],
    "rtlang.model.loading": [
        "checkpoint_files gguf_tokenizer layer_table",
        "native_families",
        "gguf",
        "model_names published",
        "stored_tensors",
        "quantized",
        "hub model_config safetensors_weights",
    ],
    "rtlang.runtime": [
        "process reports result_size texts",
        "admission cache_view nodes",
        "executors principal_cache",
        "graph_execution",
        "graph_run",
        "runtime scripted_runtime",
    ],
    "rtlang.serve": [
        "json_parts",
        "client_messages event_bridge idempotent_extends network openai records",
        "anthropic batch connection ollama responses resumable sglang",
        "service",
        "http opening_handshake output_flow streams",
        "websocket websocket_mode",
        "server",
    ],
    "rtlang.serve.http": [
        "answered_prompts errors",
        "text_models",
        "events middleware",
        "client_work form_upload",
        "body inner_requests response_turn",
        "background_responses mcp_rounds openapi",
        "routes",
        "app",
    ],
}
"""Of each package with inner packages, its parts by level, the lowest first."""


def level_of(package: str) -> dict[str, int]:
    """The level of each part of a package."""
    levels = {part: level for level, parts in enumerate(LEVELS[package]) for part in parts.split()}
    assert len(levels) == len(" ".join(LEVELS[package]).split()), f"a part of {package} has two levels"
    return levels


@pytest.mark.parametrize("package", LEVELS)
def test_parts_import_lower_parts_only(package: str) -> None:
    levels = level_of(package)
    assert [pair for pair in sorted(arrows_within(package)) if levels[pair[0]] <= levels[pair[1]]] == []


def test_every_part_has_a_level() -> None:
    ours = [package for package in packages() if package.partition(".")[0] == "rtlang"]
    for package in ours:
        parts = {part for module in sources() if (part := part_of(module, package))}
        has_inner = any(f"{package}.{part}" in packages() for part in parts)
        assert (package in LEVELS) == (has_inner or package == "rtlang"), package
        assert not has_inner or parts == set(level_of(package)), package


def test_folders_hold_few_files() -> None:
    assert {name: size for name, size in folder_sizes().items() if size > MAX_FILES} == {}


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("from rtlang.contract.errors import RtlangError", "rtlang.contract.errors"),
        ("from rtlang.contract import errors", "rtlang.contract.errors"),
        ("def f():\n    import rtlang.engine.engine", "rtlang.engine.engine"),
        ("if TYPE_CHECKING:\n    from rtlang.engine.engine import Engine", "rtlang.engine.engine"),
        ("import_module('rtlang.engine.engine').Engine", "rtlang.engine.engine"),
        ("importlib.import_module(f'rtlang.engine.{name}')", "rtlang.engine"),
    ],
)
def test_imports_are_found_however_they_are_written(source: str, target: str) -> None:
    assert [each.target for each in arrows_of("x", ast.parse(source))] == [target]
