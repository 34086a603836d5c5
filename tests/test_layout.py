"""Where things lie: mirrors, packages, line budgets, and what a wheel carries."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = [
    ROOT / "rtlang",
    ROOT / "kernels" / "rtlang_kernels",
    ROOT / "grammars" / "rtlang_grammars",
]
BENCHMARKS = [
    ROOT / "benchmarks" / "rtlang_bench",
    ROOT / "kernels" / "benchmarks" / "rtlang_kernels_bench",
]
SOURCES = sorted(path for package in [*PACKAGES, *BENCHMARKS] for path in package.rglob("*.py"))
LINE_BUDGET = 600  # aim below 400; more only where a cut would split the idea

# Sources whose tests are not in a file of their name, and where they are instead.
TESTED_ELSEWHERE: dict[str, tuple[str, str]] = {
    "grammars/rtlang_grammars/lowering/report_tables.py": (
        "tests/grammars/machine/lexed/test_rule_reports.py",
        "matchers of whole grammars report captures and temperatures there",
    ),
    "kernels/rtlang_kernels/contract/delta_layer.py": (
        "tests/kernels/reference/test_delta_layer.py",
        "its sizes are checked by layers that compute with them",
    ),
    "grammars/rtlang_grammars/context_free/lexer_build/terminal_programs/thread_steps.py": (
        "tests/grammars/context_free/lexer_build/test_lexer_automaton.py",
        "the steps of the automaton, which is compared with lark's there",
    ),
    "kernels/rtlang_kernels/cpu/fused/fused_deltas.py": (
        "tests/model/decoders/native/test_delta_part.py",
        "whole models compare fused steps with separate layers there, bit by bit",
    ),
    "kernels/rtlang_kernels/cpu/recurrence/gate_vectors.py": (
        "tests/kernels/reference/test_delta_layer.py",
        "the layer and the gate that it serves are compared with transformers and float64 there",
    ),
    "rtlang/fleet/ray/directory.py": (
        "tests/fleet/ray/test_frontend.py",
        "one cluster serves the tests of all actors",
    ),
    "rtlang/fleet/ray/engine_actor.py": (
        "tests/fleet/ray/test_frontend.py",
        "one cluster serves the tests of all actors",
    ),
    "rtlang/fleet/ray/actor_launcher.py": ("tests/fleet/ray/test_frontend.py", "it connects to actors of that cluster"),
    "rtlang/contract/accounts/tracing.py": (
        "tests/serve/records/test_door_spans.py",
        "contexts become spans, and spans contexts, over two processes there",
    ),
    "rtlang/serve/http/middleware/request_middleware.py": (
        "tests/serve/records/test_request_record.py",
        "it begins and ends the records that are tested there",
    ),
    "rtlang/serve/ollama/replies.py": (
        "tests/serve/http/routes/test_ollama.py",
        "streams are compared with whole replies there",
    ),
    "rtlang/serve/http/form_upload.py": (
        "tests/serve/http/routes/test_files.py",
        "forms go through the route of files there",
    ),
    "rtlang/serve/http/inner_requests.py": (
        "tests/serve/http/routes/test_batches.py",
        "the requests of batches are compared with live ones there",
    ),
    "rtlang/fleet/host/worker.py": ("tests/fleet/engines/test_engine_process.py", "its processes are started there"),
    "grammars/rtlang_grammars/context_free/lark_errors.py": (
        "tests/grammars/context_free/test_lark_source_imports.py",
        "where an error is, which is checked there",
    ),
    "grammars/rtlang_grammars/formats/description.py": (
        "tests/grammars/formats/test_tool_grammar.py",
        "plain data of the catalogue; tested through what is made of it",
    ),
    "grammars/rtlang_grammars/formats/tools.py": (
        "tests/grammars/formats/test_tool_grammar.py",
        "what a program may say about tools is tested where it is used",
    ),
    **{
        f"grammars/rtlang_grammars/formats/arguments/{name}.py": (
            "tests/grammars/formats/test_tool_grammar.py",
            "arguments are tested as parts of calls, in every format",
        )
        for name in (
            *("argument_grammar", "literal_grammar", "nested_grammar", "argument_reading"),
            *("marked_reading", "python_reading", "tagged_reading", "value_reading"),
        )
    },
    "grammars/rtlang_grammars/formats/measuring/argument_measure.py": (
        "tests/grammars/formats/measuring/test_measurement.py",
        "arguments are measured as parts of calls",
    ),
    "grammars/rtlang_grammars/formats/schemas.py": (
        "tests/grammars/formats/test_tool_grammar.py",
        "the types of parameters decide how values are written, which is tested there",
    ),
    "benchmarks/rtlang_bench/decoders/shapes.py": (
        "tests/benchmarks/decoders/test_main.py",
        "shapes are compared with their twin there",
    ),
    "benchmarks/rtlang_bench/decoders/step_costs.py": (
        "tests/benchmarks/decoders/test_main.py",
        "the command measures steps there",
    ),
    "rtlang/model/decoders/native/layer_loading.py": (
        "tests/model/decoders/test_native_decoder.py",
        "whole models are loaded there",
    ),
    "rtlang/model/decoders/native/layers.py": (
        "tests/model/decoders/test_native_decoder.py",
        "layers compute whole models there",
    ),
    "rtlang/model/loading/layer_table.py": (
        "tests/model/loading/test_model_config.py",
        "plain data, made from config.json there",
    ),
    "benchmarks/rtlang_bench/device/__main__.py": (
        "tests/benchmarks/device/test_run.py",
        "the command of the benchmark that is tested there",
    ),
    "benchmarks/rtlang_bench/device/goals/__main__.py": (
        "tests/benchmarks/device/goals/test_goals.py",
        "the command, which is run there",
    ),
    "benchmarks/rtlang_bench/programs/__main__.py": (
        "tests/benchmarks/programs/test_ablation.py",
        "the command, which is run there",
    ),
    "rtlang/bench/agents/catalogue.py": (
        "tests/bench/agents/test_replay.py",
        "each door is run against a server there",
    ),
    "rtlang/bench/agents/more_doors.py": (
        "tests/bench/agents/test_replay.py",
        "each door is run against a server there",
    ),
    "rtlang/bench/comparison/sides.py": (
        "tests/bench/comparison/test_run.py",
        "both sides run every workload there",
    ),
    "rtlang/serve/opening_handshake.py": (
        "tests/system/test_websocket_framing.py",
        "the opening exchange of real connections is tested there: host, path, key, subprotocol, late hello",
    ),
    "rtlang/serve/websocket_mode/output.py": (
        "tests/serve/websocket_mode/test_socket.py",
        "frames, errors and closes are seen on real sockets there",
    ),
    "rtlang/serve/websocket_mode/run.py": (
        "tests/serve/websocket_mode/test_socket.py",
        "responses run, fail and continue each other on real sockets there",
    ),
    "rtlang/serve/http/events/asked_events.py": (
        "tests/serve/http/routes/test_openai.py",
        "every response of the OpenAI API is made of these events",
    ),
    "rtlang/serve/http/response_turn.py": (
        "tests/serve/http/routes/test_responses.py",
        "the routes run these turns, with their bodies, histories and failures",
    ),
    "rtlang/serve/responses/state.py": (
        "tests/serve/http/routes/test_responses.py",
        "what the state holds has tests of its own; the routes hold it",
    ),
    "rtlang/serve/openai/logprobs.py": (
        "tests/serve/openai/test_completions.py",
        "tested as a part of the responses of both routes",
    ),
    "rtlang/serve/openai/shapes.py": (
        "tests/serve/openai/test_completions.py",
        "usage and finish reasons are tested as parts of responses",
    ),
    "rtlang/compat/sglang/execution.py": (
        "tests/compat/sglang/test_program.py",
        "how runs submit and wait is tested there",
    ),
    "rtlang/compat/sglang/pieces.py": ("tests/compat/sglang/test_state.py", "what states are made of is tested there"),
    "rtlang/compat/sglang/text_reader.py": ("tests/compat/sglang/test_program.py", "streams are tested there"),
    "rtlang/compat/sglang/recorder.py": ("tests/compat/sglang/test_state.py", "what is appended is tested there"),
    "rtlang/contract/graph_running.py": (
        "tests/lang/test_control.py",
        "graphs are recorded by programs, saved, loaded and run there",
    ),
    **{
        f"rtlang/engine/drafts/{name}.py": (
            "tests/engine/drafts/test_drafter.py",
            "the drafter asks it, or learns with it, in every test",
        )
        for name in ("acceptance", "defaults", "proposal", "step_drafts", "structure")
    },
    "rtlang/cache/continuation.py": (
        "tests/engine/drafts/test_stored_text.py",
        "drafts are the only use of what follows a stored sequence",
    ),
    "rtlang/engine/constraints/mask_threads.py": (
        "tests/engine/constraints/test_compiler.py",
        "masks are filled for the sessions that a compiler makes",
    ),
    "rtlang/engine/constraints/stop_compiler.py": (
        "tests/engine/constraints/test_compiler.py",
        "stop patterns share the lanes and the end of a compiler",
    ),
    "rtlang/engine/scheduling/preemption.py": (
        "tests/engine/scheduling/test_scheduler.py",
        "preemption is tested by schedules that run out of rows and pages",
    ),
    "rtlang/engine/scheduling/step_plan.py": (
        "tests/engine/scheduling/test_scheduler.py",
        "it is the step that the tests of the scheduler read",
    ),
    "rtlang/engine/scheduling/waiting_requests.py": (
        "tests/engine/scheduling/test_scheduler.py",
        "the order in which requests start is tested by the steps that they start in",
    ),
    "rtlang/engine/scheduling/running_requests.py": (
        "tests/engine/scheduling/test_scheduler.py",
        "it is the part of the scheduler that moves pages, and every test of the scheduler checks its accounting",
    ),
    "rtlang/engine/requests/request_checks.py": (
        "tests/engine/test_engine.py",
        "what an engine refuses is tested on the engine",
    ),
    "rtlang/engine/requests/flow.py": (
        "tests/engine/scheduling/test_fair_shares.py",
        "flows are what is shared there",
    ),
    **{
        f"rtlang/lang/rows/{name}.py": (
            "tests/lang/rows/test_completed_rows.py",
            "rows are read, run and reported there, with every kind of reader and of end",
        )
        for name in ("progress", "row_runs", "row_source")
    },
    "rtlang/lang/program_state/state_record.py": (
        "tests/lang/program_state/test_state.py",
        "it has what states record, which is tested on them",
    ),
    "rtlang/lang/recordings/recorded_nodes.py": (
        "tests/lang/recordings/test_recording.py",
        "nodes are recorded there; the functions in test_control.py record blocks",
    ),
    "rtlang/lang/recordings/driver.py": (
        "tests/lang/recordings/test_recording.py",
        "a recording asks its driver, which is tested there",
    ),
    "rtlang/lang/recordings/control_paths.py": (
        "tests/lang/test_control.py",
        "the texts and messages of sequences with branches and loops are tested there",
    ),
    "rtlang/contract/pictures/page_style.py": (
        "tests/contract/pictures/test_page.py",
        "style and script of the pages that are tested there",
    ),
    "rtlang/contract/blocks.py": (
        "tests/runtime/test_graph_execution_random.py",
        "random graphs with nested blocks are compared with an oracle",
    ),
    "rtlang/runtime/nodes/slots.py": (
        "tests/runtime/nodes/test_node_table.py",
        "the table of nodes fills slots, in an order that is checked there",
    ),
    "rtlang/runtime/nodes/node_ends.py": (
        "tests/runtime/test_graph_execution_random.py",
        "every node of the random graphs ends once, whatever ends it",
    ),
    **{
        f"rtlang/runtime/executors/{name}.py": (
            "tests/runtime/test_graph_execution_random.py",
            "random graphs with all kinds of nodes, and with known outcomes, are compared with an oracle",
        )
        for name in ("control_nodes", "decisions", "given_outcomes")
    },
    "rtlang/runtime/executors/host.py": (
        "tests/runtime/test_graph_execution.py",
        "plain data; the engine that it gives access to runs the graphs there",
    ),
    "rtlang/runtime/executors/model_calls.py": (
        "tests/runtime/test_graph_execution.py",
        "the requests of generations and selects are tested as parts of graphs",
    ),
    "rtlang/contract/step.py": (
        "tests/engine/scheduling/test_scheduler.py",
        "plain data; what is in a step is the scheduler's doing",
    ),
    "rtlang/model/runner.py": ("tests/model/test_host_runner.py", "a protocol; its implementations are tested"),
    "rtlang/engine/constraints/cache.py": (
        "tests/engine/constraints/test_compiler.py",
        "plain data of the compiler, which is tested there",
    ),
    "kernels/rtlang_kernels/ops.py": (
        "tests/kernels/test_attention.py",
        "contracts; every operation is tested through them, over all backends",
    ),
    "kernels/rtlang_kernels/contract/attention_plan.py": (
        "tests/kernels/planning/test_shared_prefix_tiling.py",
        "what it plans is what is covered",
    ),
    "kernels/rtlang_kernels/contract/sampler_settings.py": (
        "tests/kernels/test_sampling.py",
        "plain data of the sampler, checked where it is used",
    ),
    "kernels/rtlang_kernels/reference/noise.py": (
        "tests/kernels/test_sampling.py",
        "the noise decides the tokens that are compared",
    ),
    "kernels/benchmarks/rtlang_kernels_bench/table.py": (
        "tests/kernels/benchmarks/test_device_bench.py",
        "text of the lines that are tested there",
    ),
    "kernels/rtlang_kernels/dispatch.py": (
        "tests/kernels/triton/attention/test_paged_attention.py",
        "a table; every test of a backend goes through it",
    ),
    "kernels/rtlang_kernels/triton/primitives/jit.py": (
        "tests/kernels/triton/attention/test_paged_attention.py",
        "a decorator, and a check that is tested there",
    ),
    "kernels/rtlang_kernels/triton/attention/merge_kernel.py": (
        "tests/kernels/triton/attention/test_paged_attention.py",
        "tested through what launches it",
    ),
    "kernels/rtlang_kernels/triton/grammar/block_kernel.py": (
        "tests/kernels/triton/grammar/test_automaton_store.py",
        "the kernels of automata call it",
    ),
    "kernels/rtlang_kernels/triton/grammar/name_kernel.py": (
        "tests/kernels/triton/grammar/test_automaton_store.py",
        "the kernels of automata call it",
    ),
    "kernels/rtlang_kernels/triton/grammar/register_kernel.py": (
        "tests/kernels/triton/grammar/test_automaton_store.py",
        "the kernels of automata call it",
    ),
    "kernels/rtlang_kernels/triton/attention/prompt_kernel.py": (
        "tests/kernels/triton/attention/test_prompt_attention.py",
        "run in a simulator, with what launches it",
    ),
    "kernels/rtlang_kernels/triton/attention/prompt_choice.py": (
        "tests/kernels/triton/attention/test_prompt_attention.py",
        "a table that every test there sets",
    ),
    "kernels/rtlang_kernels/triton/grammar/automaton_kernel.py": (
        "tests/kernels/triton/grammar/test_automaton_store.py",
        "tested through what launches it",
    ),
    "rtlang/model/gpu/device_sampler.py": (
        "tests/model/test_device_runner.py",
        "draws and log-probabilities of the runner's steps, compared with the CPU's",
    ),
    "rtlang/model/gpu/device_grammar.py": (
        "tests/system/test_device.py",
        "masks decide constrained texts, which are compared with the CPU's",
    ),
    "rtlang/engine/device_constraints.py": (
        "tests/system/test_device.py",
        "which constraints the device follows is counted there, and their texts compared",
    ),
    "kernels/rtlang_kernels/triton/attention/rectangle_kernel.py": (
        "tests/kernels/triton/attention/test_paged_attention.py",
        "tested through what launches it",
    ),
    "kernels/rtlang_kernels/triton/layers/layers_kernel.py": (
        "tests/kernels/triton/layers/test_layer_ops.py",
        "tested through what launches it",
    ),
    **{
        f"kernels/rtlang_kernels/triton/experts/{name}_kernel.py": (
            "tests/kernels/triton/experts/test_experts.py",
            "experts launch all of its kernels, and are compared with float64 there",
        )
        for name in ("experts", "routing")
    },
    "kernels/rtlang_kernels/triton/recurrence/recurrence_kernel.py": (
        "tests/kernels/triton/recurrence/test_recurrence.py",
        "tested through what launches it",
    ),
    "kernels/rtlang_kernels/triton/sampling/logits_kernel.py": (
        "tests/kernels/triton/sampling/test_logits.py",
        "tested through what launches it",
    ),
    "kernels/rtlang_kernels/triton/sampling/noise_kernel.py": (
        "tests/kernels/triton/sampling/test_sampler.py",
        "the noise decides the tokens that are compared",
    ),
    "kernels/rtlang_kernels/triton/sampling/sample_kernel.py": (
        "tests/kernels/triton/sampling/test_sampler.py",
        "tested through what launches it",
    ),
    "kernels/rtlang_kernels/triton/sampling/candidates_kernel.py": (
        "tests/kernels/triton/sampling/test_sampler.py",
        "tested through what launches it",
    ),
    "kernels/rtlang_kernels/triton/aot/__main__.py": (
        "tests/kernels/triton/aot/test_compiler.py",
        "the command, which is run there",
    ),
    "kernels/benchmarks/rtlang_kernels_bench/cpu_bench.py": (
        "tests/kernels/benchmarks/test_main.py",
        "its lines are run by the command",
    ),
    "kernels/benchmarks/rtlang_kernels_bench/device_cases.py": (
        "tests/kernels/benchmarks/test_device_bench.py",
        "inputs of the lines that are tested there",
    ),
    "kernels/rtlang_kernels/triton/aot/cases.py": (
        "tests/kernels/triton/aot/test_compiler.py",
        "what is compiled there",
    ),
    "kernels/rtlang_kernels/triton/aot/expert_cases.py": (
        "tests/kernels/triton/aot/test_compiler.py",
        "what is compiled there",
    ),
    "kernels/rtlang_kernels/triton/aot/linear_cases.py": (
        "tests/kernels/triton/aot/test_compiler.py",
        "what is compiled there",
    ),
    "kernels/rtlang_kernels/triton/aot/recording.py": (
        "tests/kernels/triton/aot/test_compiler.py",
        "a process that interprets kernels cannot record them, so the process that compiles does",
    ),
    "kernels/rtlang_kernels/triton/sampling/filter_kernel.py": (
        "tests/kernels/triton/sampling/test_sampler.py",
        "tested through what launches it",
    ),
    "kernels/rtlang_kernels/cpu/attention/attention_kernel.py": (
        "tests/kernels/test_attention.py",
        "part of the CPU backend",
    ),
    "kernels/rtlang_kernels/cpu/recurrence/matrix_vectors.py": (
        "tests/kernels/cpu/recurrence/test_gated_recurrence.py",
        "its code is the inside of that kernel",
    ),
    "kernels/rtlang_kernels/cpu/codegen/vector_builder.py": (
        "tests/kernels/test_layer_ops.py",
        "emits code for the vector modules, which are tested there",
    ),
    "kernels/rtlang_kernels/cpu/codegen/attention/attention_vectors.py": (
        "tests/kernels/test_attention.py",
        "part of the CPU backend",
    ),
    "kernels/rtlang_kernels/cpu/codegen/attention/attention_tiles.py": (
        "tests/kernels/cpu/attention/test_attention_layout.py",
        "part of the CPU backend",
    ),
    "kernels/rtlang_kernels/cpu/codegen/layer_vectors.py": (
        "tests/kernels/test_layer_ops.py",
        "part of the CPU backend",
    ),
    "kernels/rtlang_kernels/cpu/codegen/low_bit_vectors.py": (
        "tests/kernels/cpu/test_low_bit_linear.py",
        "part of the CPU backend",
    ),
    "kernels/rtlang_kernels/cpu/codegen/dequantizing.py": (
        "tests/kernels/cpu/test_float_input_linear.py",
        "part of the CPU backend",
    ),
    "kernels/rtlang_kernels/cpu/codegen/low_bit_tiles.py": (
        "tests/kernels/cpu/test_tiled_low_bit.py",
        "part of the CPU backend",
    ),
    "kernels/rtlang_kernels/cpu/codegen/float8_vectors.py": (
        "tests/kernels/cpu/test_float8_linear.py",
        "part of the CPU backend",
    ),
    "kernels/rtlang_kernels/cpu/codegen/input_quantizing.py": (
        "tests/kernels/cpu/test_low_bit_inputs.py",
        "part of the CPU backend",
    ),
    "kernels/rtlang_kernels/cpu/codegen/linear_vectors.py": (
        "tests/kernels/cpu/test_linear.py",
        "part of the CPU backend",
    ),
    "rtlang/model/layers/weight_source.py": (
        "tests/model/test_loader.py",
        "an interface, and what its sources do",
    ),
    "kernels/rtlang_kernels/contract/fused_step.py": (
        "tests/kernels/cpu/fused/test_fused_step.py",
        "plain data, and what is promised of it",
    ),
    "kernels/rtlang_kernels/cpu/codegen/sampling_vectors.py": (
        "tests/kernels/test_sampling.py",
        "part of the CPU backend",
    ),
}
# Folders whose parts call each other so closely that they are tested together: a file of one may do without a mirror.
TESTED_WHOLE = {
    "grammars/rtlang_grammars/context_free": "tests/grammars/context_free/test_lark_reader.py",
    **{
        f"grammars/rtlang_grammars/machine/{folder}": "tests/grammars/machine/lexed/test_lexed_grammar.py"
        for folder in ("lexed", "lexer_run")
    },
    **{
        f"grammars/rtlang_grammars/{folder}": "tests/grammars/machine/test_machine.py"
        for folder in ("machine", "machine/automaton", "machine/native", "machine/token_index")
    },
    **{
        f"grammars/rtlang_grammars/{folder}": "tests/grammars/api/test_rtlang_backend.py"
        for folder in ("lowering", "lowering/grammars", "lowering/json_shapes", "lowering/languages", "spec")
    },
    **{
        f"grammars/rtlang_grammars/schema/{folder}": "tests/grammars/schema/test_compiler.py"
        for folder in ("keywords", "normal_form", "reading", "shape_graph")
    },
}
# Test files about data that lies beside the sources.
TESTED_DATA = {
    "tests/tiny/test_tiny.py": "rtlang/tiny",
    "tests/grammars/test_readme.py": "grammars/README.md",
    "tests/grammars/test_layers.py": "grammars/rtlang_grammars",
    **{
        f"tests/grammars/benchmarks/test_{path.stem}.py": path.relative_to(ROOT).as_posix()
        for path in (ROOT / "grammars" / "benchmarks" / "rtlang_grammars_bench").glob("*.py")
    },
}
# Folders of tests about more than one source file.
WIDER_TESTS = ("system", "docs", "clients")


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def mirrors(source: Path) -> list[Path]:
    """The test files that may stand for a source file: its exact mirror; for kernels, also that of its operation over all backends."""
    tests = ROOT / "tests"
    name = f"test_{source.stem.strip('_')}.py"
    inner = source.relative_to(
        next(package for package in [*PACKAGES, *BENCHMARKS] if source.is_relative_to(package))
    ).parent
    if source.is_relative_to(ROOT / "rtlang"):
        return [tests / inner / name]
    if source.is_relative_to(ROOT / "benchmarks"):
        return [tests / "benchmarks" / inner / name]
    part = tests / source.relative_to(ROOT).parts[0]
    if source.is_relative_to(ROOT / "kernels" / "benchmarks"):
        return [part / "benchmarks" / inner / name]
    is_backend = inner.parts[:1] in (("reference",), ("cpu",), ("triton",))
    return [part / inner / name, *([part / name] if is_backend else [])]


def test_every_source_file_has_its_mirror() -> None:
    missing = []
    for source in SOURCES:
        is_bare_package = (
            source.name == "__init__.py" and source.parent != ROOT / "rtlang"
        )  # a docstring, see test_layers.py
        has_mirror = any(path.exists() for path in mirrors(source))
        if is_bare_package or relative(source) in TESTED_ELSEWHERE:
            assert not has_mirror, f"{relative(source)} has its mirror now: take it off the list"
        elif not has_mirror and relative(source.parent) not in TESTED_WHOLE:
            missing.append(f"{relative(source)}: expected {' or '.join(map(relative, mirrors(source)))}")
    assert missing == []


def test_every_test_file_mirrors_a_source_file() -> None:
    """A long one may be cut: test_thing.py and test_thing_aspect.py both belong to thing.py."""
    known = {path for source in SOURCES for path in mirrors(source)}
    known |= {ROOT / where for where, _ in TESTED_ELSEWHERE.values()} | {
        ROOT / where for where in TESTED_WHOLE.values()
    }
    known |= {ROOT / test for test, data in TESTED_DATA.items() if (ROOT / data).exists()}
    known |= {
        ROOT / "tests" / "test_deployment.py",
        ROOT / "tests" / "test_forbidden.py",
        ROOT / "tests" / "test_layers.py",
        ROOT / "tests" / "test_layout.py",
        ROOT / "tests" / "test_levels.py",
        ROOT / "tests" / "test_packaging.py",
        ROOT / "tests" / "kernels" / "test_layers.py",
        ROOT / "tests" / "kernels" / "test_package.py",
    }
    stems = defaultdict[Path, set[str]](set)
    for file in known:
        stems[file.parent].add(file.stem)
    stray = [
        relative(path)
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if path.relative_to(ROOT / "tests").parts[0] not in WIDER_TESTS
        and not any(f"{path.stem}_".startswith(f"{stem}_") for stem in stems[path.parent])
    ]
    assert stray == []


def test_every_listed_exception_exists() -> None:
    for source, (where, reason) in TESTED_ELSEWHERE.items():
        assert (ROOT / source).exists(), source
        assert (ROOT / where).exists(), where
        assert reason


@pytest.mark.parametrize("folder", ["kernels", "grammars"])
def test_the_outer_folders_are_no_packages(folder: str) -> None:
    """`kernels` is another package's import name; an __init__.py there would shadow it and break transformers."""
    assert not (ROOT / folder / "__init__.py").exists()
    assert (ROOT / folder / f"rtlang_{folder}" / "__init__.py").exists()


def test_files_keep_their_line_budget() -> None:
    lengths = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {path: length for path, length in lengths.items() if length > LINE_BUDGET} == {}


def test_every_source_file_begins_with_a_docstring() -> None:
    begin = re.compile(r'(#.*\n)*[rR]?"""\s*[^\s"]')
    assert [relative(path) for path in SOURCES if not begin.match(path.read_text(encoding="utf-8"))] == []


def test_every_folder_with_sources_is_a_package() -> None:
    folders = {path.parent for path in SOURCES}
    assert [relative(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_the_wheel_lists_every_package() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        listed = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    found = {
        relative(path.parent)
        for folder in (ROOT, ROOT / "kernels", ROOT / "grammars")
        for path in folder.glob("rtlang*/__init__.py")
    }
    assert sorted(listed) == sorted(found) == sorted(map(relative, PACKAGES))
    assert all((package / "py.typed").exists() for package in PACKAGES)


def test_a_built_wheel_carries_every_file_of_the_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources, py.typed, grammar files, the embedded model: nothing is left behind, and nothing else comes along."""
    monkeypatch.setenv("RTLANG_WHEEL_CODE", "0")  # which would be compiled first
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.stat().st_size < 11_900_000  # 8.8 MB of it are the embedded model
    carried = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    kept = {path.relative_to(package.parent).as_posix() for package in PACKAGES for path in files_of(package)}
    assert carried == kept


def files_of(package: Path) -> list[Path]:
    """Files of a package that version control keeps or would keep; without a repository, all but compiled ones."""
    if not (ROOT / ".git").exists():
        return [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", relative(package)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for name in done.stdout.split("\0") if name and (path := ROOT / name).exists()]


def test_every_top_level_folder_has_a_readme() -> None:
    folders = [ROOT, ROOT / "benchmarks", ROOT / "kernels", ROOT / "grammars", ROOT / "tests", ROOT / "examples"]
    assert [str(folder) for folder in folders if not (folder / "README.md").exists()] == []
