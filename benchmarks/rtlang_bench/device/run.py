"""Checks that the device computes correctly, then compares its speed with the limit set by its memory.

The check compares the device's greedy and constrained float32 output with the CPU's, on a small random checkpoint; if they differ,
decoding is not measured. Then a random model of a given shape (its weights generated on the device) decodes batches. The time of a step
is derived from the difference between two runs that differ only in their number of tokens, so that the cost of prompts, submission and
completion cancels out. For that all rows have to decode together, so their prompts are cached; without a cache, both runs are longer by
the steps in which prompts are computed. The floor of a step is the time to read all weights and the batch's keys and values once, at the
copy rate measured in this run.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rtlang.bench.checkpoint import TOKENIZER_FILES, write_random_llama
from rtlang.bench.measure import agreement, run_on_target
from rtlang.bench.workloads import catalogue
from rtlang.bench.workloads.text import TextMaker
from rtlang.bench.workloads.workload import Workload
from rtlang.contract.config import EMBEDDED_MODEL, MAX_TARGET_GAP_MS, RuntimeConfig
from rtlang.contract.params import Constraint, ConstraintKind, SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.model.decoders.native_decoder import native_bytes
from rtlang.model.gpu.accelerator import accelerator_for
from rtlang.model.loader import model_directory, pick_dtype
from rtlang.model.loading.model_config import ModelConfig
from rtlang.model.loading.quantized.schemes import noise_format
from rtlang.runtime.process import precompile
from rtlang.runtime.runtime import Runtime
from rtlang_bench.device import families as device_families
from rtlang_kernels_bench import check_process, device_run, table
from rtlang_kernels_bench.output import Output

SHAPE_8B: dict[str, Any] = {
    "vocab_size": 128_256,
    "hidden_size": 4_096,
    "intermediate_size": 14_336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 8_192,
    "rope_theta": 500_000.0,
    "tie_word_embeddings": False,
}
# quantization_config of published checkpoints of this shape: float8 with a scale per output, and int4 in groups.
FLOAT8: dict[str, Any] = {
    "quant_method": "compressed-tensors",
    "format": "float-quantized",
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "channel"},
            "input_activations": {"num_bits": 8, "type": "float", "dynamic": True, "strategy": "token"},
        }
    },
    "ignore": ["lm_head"],
}
INT4: dict[str, Any] = {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm", "zero_point": True}
# Text of any length, with the same masks as the strings of a schema. A random model ends it only by chance.
FREE_TEXT = Constraint(ConstraintKind.REGEX, "[ -~]*")
# Lines of JSON, followed on the device; and a string whose counted length has more states than the device holds, so that its masks come
# from the host.
RECORDS = Constraint(ConstraintKind.REGEX, r'(\{"n":"[A-Za-z ]{1,24}","tags":\[("[a-z]+"(,"[a-z]+")*)?\]\}\n)+')
COUNTED = Constraint(ConstraintKind.JSON_SCHEMA, '{"type": "string", "maxLength": 5000}')
CHECKED = ("shared", "tree", "json")
MIN_EQUAL = 0.95  # share of equal float32 outputs: two logits may tie within rounding
# Bytes of KV. The check needs 0.6 GB in float32, also on the host (often short of memory); the cases 36 GB in bfloat16.
CHECK_CACHE_BYTES, CACHE_BYTES = 1 << 30, 48 << 30
CACHE_SHARE = 0.85  # share of the memory left by the weights, if that is less
# Shares of the budget after which no new family, kernel measurement, case or remaining family is started.
FAMILIES_SHARE, KERNELS_SHARE, CASES_SHARE, LEFT_SHARE = 0.3, 0.45, 0.7, 0.85
LONG_PROMPT, LONG_REPEATS = 4096, 2  # prompts of at least this length are repeated less often
STEP_TOKENS = 8192


@dataclass(frozen=True, slots=True)
class Case:
    """A batch to decode. The first `shared_tokens` tokens of the prompt are the same in all rows."""

    name: str
    num_rows: int
    prompt_tokens: int
    shared_tokens: int = 0
    constraint: Constraint | None = None
    prefix_sharing: bool = True


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure.

    Attributes:
        shape: of the model, whose weights are noise; with a quantization_config, in its format.
        short_tokens, long_tokens: number of tokens of the short and the long run.
        repeats: of both.
        linear_inputs: see `RuntimeConfig`.
    """

    shape: Mapping[str, Any]
    cases: tuple[Case, ...]
    short_tokens: int = 16
    long_tokens: int = 144
    repeats: int = 3
    linear_inputs: str = "int8"


FULL = Plan(
    SHAPE_8B,
    (
        Case("batch 1", 1, 1024),
        Case("batch 8", 8, 1024),
        Case("batch 64", 64, 1024),
        Case("batch 128", 128, 256),
        Case("batch 128 constrained", 128, 256, constraint=FREE_TEXT),
        Case("batch 128 constrained, records", 128, 256, constraint=RECORDS),
        Case("batch 128 constrained, masks of the host", 128, 256, constraint=COUNTED),
        Case("batch 32", 32, 4096),
        Case("64 over one prefix", 64, 4096, shared_tokens=4032),
        Case("64 over one prefix, not shared", 64, 4096, shared_tokens=4032, prefix_sharing=False),
    ),
)


def _few_bits(name: str, config: dict[str, Any], linear_inputs: str = "int8") -> Plan:
    """Two cases of the full plan with weights of few bits."""
    cases = tuple(Case(f"batch {rows}, {name}", rows, 1024) for rows in (1, 64))
    return Plan(SHAPE_8B | {"quantization_config": config}, cases, linear_inputs=linear_inputs)


FEW_BITS = {
    "float8": _few_bits("float8", FLOAT8),
    "int4": _few_bits("int4", INT4),
    "float8 inputs": _few_bits("float8 inputs", FLOAT8, "float8"),
}
PLANS = (FULL, *FEW_BITS.values())


@dataclass(frozen=True, slots=True)
class Line:
    """The figures of one case. Times are in microseconds per decoding step; `tokens_per_s` counts all rows and decoding only.

    Attributes:
        spread: (largest - smallest) / median of the repeats.
        floor_us: time to read weights, keys and values once at the measured copy rate.
        num_replayed, num_eager: number of steps, over all runs of the case, that were replayed from a graph, and of the others.
    """

    case: Case
    step_us: float
    spread: float
    tokens_per_s: float
    floor_us: float
    num_replayed: int = 0
    num_eager: int = 0


def check(
    config: RuntimeConfig,
    tell: Callable[[str], None],
    *,
    shape: Mapping[str, Any] | None = None,
    make: Callable[..., Workload] = catalogue.make,
) -> bool:
    """Whether at least `MIN_EQUAL` of the device's greedy float32 outputs equal the CPU's.

    Args:
        config: names the device; its other settings apply to both sides.
        shape: checkpoint fields that override `checkpoint.SHAPE`.
        make: builds a workload from its name, like `catalogue.make`.
    """
    with tempfile.TemporaryDirectory(prefix="rtlang-bench-") as scratch:
        directory = write_random_llama(Path(scratch), model_directory(EMBEDDED_MODEL), **dict(shape or {}))
        config = _with_pool(config, lambda: CHECK_CACHE_BYTES)
        config = replace(config, model=str(directory), dtype="float32", kv_dtype="auto", weights="safetensors")
        found: dict[str, list[Any]] = {name: [] for name in CHECKED}
        for device in ("cpu", config.device):
            with Runtime(config=replace(config, device=device)) as runtime:
                for name in CHECKED:
                    load = make(name, runtime.tokenizer, seed=1, quick=True)
                    found[name].append(run_on_target(runtime, load.graphs))
            del runtime
    equal = total = 0
    for name, sides in found.items():
        same, count = agreement(*sides)
        tell(f"check {name}: {same} of {count} float32 outputs match the CPU's")
        equal, total = equal + same, total + count
    return equal >= MIN_EQUAL * total


def measure(
    config: RuntimeConfig,
    plan: Plan,
    bytes_per_s: float,
    output: Output,
    *,
    is_late: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Line]:
    """Decode every case of a plan.

    Args:
        bytes_per_s: the device's copy rate, counting bytes read and bytes written.
        output: receives a line for each case that fails or is skipped for lack of time.
        is_late: no new case is started once this returns True.
    """
    with tempfile.TemporaryDirectory(prefix="rtlang-bench-") as scratch:
        directory = write_shape(Path(scratch), plan.shape)
        model = ModelConfig.from_pretrained(directory)
        most = max(case.num_rows for case in plan.cases)
        longest = max(case.prompt_tokens + max(token_counts(case, plan)) for case in plan.cases)
        config = replace(
            _with_pool(config, partial(_cache_bytes, config, model)),
            model=str(directory),
            weights="dummy",
            linear_inputs=plan.linear_inputs,
            max_rows=most,
            max_step_tokens=STEP_TOKENS,
            max_model_len=longest + 16,
            # In small chunks beside decoding rows, the prompts of the last rows would be computed when the first rows have ended.
            target_gap_ms=MAX_TARGET_GAP_MS,
        )
        for sharing in dict.fromkeys(case.prefix_sharing for case in plan.cases):
            cases = [case for case in plan.cases if case.prefix_sharing == sharing]
            if not is_late():
                with Runtime(config=replace(config, prefix_sharing=sharing)) as runtime:
                    while cases and not is_late():
                        case, line = cases.pop(0), None
                        floor = floor_us(model, config, case, plan, bytes_per_s)
                        with output.part(case.name):
                            line = _line(runtime, case, plan, floor, clock)
                        if line is not None:
                            yield line
                del runtime  # frees the device's memory before the next one is loaded
            for case in cases:
                output.write(f"{case.name}: not measured: out of time")


def _with_pool(config: RuntimeConfig, cache_bytes: Callable[[], int]) -> RuntimeConfig:
    """The settings with a KV pool of this size, unless they specify a size."""
    is_said = config.num_pages is not None or config.cache_bytes is not None
    return config if is_said else replace(config, cache_bytes=cache_bytes())


def _cache_bytes(config: RuntimeConfig, model: ModelConfig) -> int:
    """Bytes of KV that all cases need, or as many as fit in memory next to the weights."""
    left = accelerator_for(config.device).free_bytes() - native_bytes(model, pick_dtype(config.dtype, config.device))
    return max(1, min(CACHE_BYTES, int(CACHE_SHARE * left)))


def token_counts(case: Case, plan: Plan) -> tuple[int, int]:
    """Number of tokens of each row in the short and in the long run.

    If prompts are not cached, rows whose prompts are computed first decode beside the prompts of others, so both runs are longer by the
    steps that prompts take.
    """
    more = 0 if case.prefix_sharing else -(-case.num_rows * case.prompt_tokens // STEP_TOKENS)
    return plan.short_tokens + more, plan.long_tokens + more


def pages_needed(case: Case, plan: Plan, page_size: int) -> int:
    """Number of KV pages that the longest run of a case needs."""
    shared = case.shared_tokens // page_size if case.prefix_sharing else 0
    return shared + case.num_rows * (-(-(case.prompt_tokens + max(token_counts(case, plan))) // page_size) - shared)


def _line(runtime: Runtime, case: Case, plan: Plan, floor: float, clock: Callable[[], float]) -> Line:
    """Measure a case. The first run, which compiles and exports automata, leaves its prompts in the cache, unless sharing is off.

    Raises:
        MemoryError: the pool is too small, so rows would be preempted and recomputed.
        ArithmeticError: the long run took no longer than the short one, so no step time can be derived.
    """
    needed, there = pages_needed(case, plan, runtime.config.page_size), runtime.stats()["num_pages"]
    if needed > there:
        raise MemoryError(f"{needed} KV pages are needed, but the pool has only {there}")
    short, long = token_counts(case, plan)
    graphs = {count: _graphs(runtime, case, count) for count in (short, long)}
    before = runtime.stats()
    runtime.clear_cache()  # pages of earlier cases would have to be evicted during the runs
    run_on_target(runtime, graphs[short], clock=clock)
    steps = []
    for _ in range(min(plan.repeats, LONG_REPEATS) if case.prompt_tokens >= LONG_PROMPT else plan.repeats):
        times = {}
        for count, each in graphs.items():
            times[count] = run_on_target(runtime, each, clock=clock).total_s
        steps.append(1e6 * (times[long] - times[short]) / (long - short))
    middle = statistics.median(steps)
    if not middle > 0:
        raise ArithmeticError(f"{long} tokens took no longer than {short}: {middle:.0f} us/step")
    after = runtime.stats()
    replayed, eager = (after[name] - before[name] for name in ("num_steps_replayed", "num_steps_eager"))
    spread = (max(steps) - min(steps)) / middle
    return Line(case, middle, spread, 1e6 * case.num_rows / middle, floor, replayed, eager)


def _graphs(runtime: Runtime, case: Case, num_tokens: int) -> tuple[RequestGraph, ...]:
    maker = TextMaker(runtime.tokenizer, 0)
    shared = maker.text(case.shared_tokens, is_start=True) if case.shared_tokens else ""
    own = case.prompt_tokens - case.shared_tokens
    params = SamplingParams(max_tokens=num_tokens, min_tokens=0 if case.constraint else num_tokens, ignore_eos=True)
    return tuple(
        RequestGraph(
            (
                Text(0, None, (shared + maker.text(own, is_start=not shared),)),
                Generate(1, 0, "out", params, case.constraint),
            )
        )
        for _ in range(case.num_rows)
    )


def floor_us(model: ModelConfig, config: RuntimeConfig, case: Case, plan: Plan, bytes_per_s: float) -> float:
    """Lower bound of a case's step time in microseconds: reading all weights but the embedding, and each distinct key and value, once.

    Weights of few bits count without their scales.
    """
    assert model.native is not None
    item = pick_dtype(config.dtype, config.device).itemsize
    few_bits = noise_format(model.quantization)
    heads = model.num_q_heads + model.num_kv_heads
    layer = 2 * model.hidden_size * heads * model.head_dim + 3 * model.hidden_size * model.native.intermediate_size
    weights = layer * model.num_layers * (item if few_bits is None else few_bits.bits / 8)
    weights += model.vocab_size * model.hidden_size * item
    shared = case.shared_tokens if case.prefix_sharing else 0
    decoded = sum(token_counts(case, plan)) / 2
    tokens = shared + case.num_rows * (case.prompt_tokens - shared + decoded)
    kv_item = 1 if config.kv_dtype == "float8" else item
    kv = tokens * 2 * model.num_kv_heads * model.head_dim * kv_item * model.num_layers
    return 1e6 * (weights + kv) / bytes_per_s


def write_shape(directory: Path, shape: Mapping[str, Any]) -> Path:
    """Write a config of this shape and the embedded model's tokenizer to `directory`, without weights; returns `directory`."""
    from transformers import LlamaConfig

    tokenizer = model_directory(EMBEDDED_MODEL)
    for name in TOKENIZER_FILES:
        shutil.copyfile(tokenizer / name, directory / name)
    LlamaConfig(**shape, architectures=["LlamaForCausalLM"]).save_pretrained(directory)
    return directory


def run(
    config: RuntimeConfig,
    output: Output,
    *,
    plans: Sequence[Plan] = PLANS,
    budget_s: float = 480.0,
    is_quick: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> None:
    """Run everything in order: checks of kernels and outputs, the most important kernels, decoding, then the remaining kernels.

    If a part fails, this is noted in the output and the other parts still run, except that decoding is not measured if the outputs are
    wrong. Kernels are checked in a separate process, because a kernel that hangs or loses the device would end everything after it.

    Args:
        config: settings of the runtime, with device "cuda". Its model is not used.
        output: receives each line and each figure as soon as it is available.
        budget_s: no new measurement is started after this many seconds. Models of transformers are checked until FAMILIES_SHARE of the
            budget and, after decoding, until LEFT_SHARE; the first kernels are measured until KERNELS_SHARE, the cases until CASES_SHARE.
        is_quick: measure only a few kernels.
    """
    started = clock()

    def is_after(share: float) -> Callable[[], bool]:
        return lambda: clock() - started > share * budget_s

    accelerator = accelerator_for(config.device)
    held = f"{pick_dtype(config.dtype, config.device)}, KV {config.kv_dtype}"
    environment = device_run.environment(accelerator.device)
    output.write(environment)
    output.write(held)
    output.figure({"kind": "environment", "device": environment, "held": held})
    precompile.start_background_compile(
        config
    )  # half a minute of work on a fresh machine, done in parallel with the first checks
    with output.part("kernels"):
        check_process.run(output, accelerator.device, is_after(FAMILIES_SHARE))
    is_right = False
    with output.part("texts"):
        is_right = check(config, output.write)
        if not is_right:
            raise ArithmeticError(
                f"fewer than {MIN_EQUAL:.0%} of the outputs match the CPU's; decoding is not measured"
            )
    families = iter(device_families.SHAPES)
    device_families.run(config, output, families, is_after(FAMILIES_SHARE))
    accelerator.release()
    ceilings = device_run.measure_ceilings(accelerator.device, device_run.measure_on_device)
    output.write(str(ceilings))
    output.figure({"kind": "ceilings"} | asdict(ceilings))
    tasks = device_run.tasks(None, is_quick, accelerator.device, ceilings, device_run.measure_on_device)
    found = device_run.run_tasks(tasks, output, is_after(KERNELS_SHARE))
    accelerator.release()
    if is_right:
        lines: list[Line] = []
        for plan in plans:
            with output.part("decoding"):
                for line in measure(
                    config, plan, ceilings.bytes_per_s, output, is_late=is_after(CASES_SHARE), clock=clock
                ):
                    lines.append(line)
                    output.write(text_of(line))
                    output.figure({"kind": "decoding"} | asdict(line))
            accelerator.release()
        for text in comparisons(lines):
            output.write(text)
    device_families.run(config, output, families, is_after(LEFT_SHARE))
    for name in families:
        output.write(f"check {name}: not run: out of time")
    accelerator.release()
    found += device_run.run_tasks(tasks, output, is_after(1.0))
    if (left := sum(1 for _ in tasks)) > 0:
        output.write(f"out of time: {left} more kernel lines were not measured")
    for text in table.summary(found):
        output.write(text)


def text_of(line: Line) -> str:
    """The printed form of a line."""
    return (
        f"{line.case.name:<40} {line.step_us:>9.0f} us/step  spread {line.spread:>4.0%}  {line.tokens_per_s:>9.0f} tok/s  "
        f"floor {line.floor_us:>8.0f} us ({line.floor_us / line.step_us:.0%} of it reached)  "
        f"{line.num_replayed} steps replayed, {line.num_eager} not"
    )


def comparisons(lines: Sequence[Line]) -> list[str]:
    """Throughput ratios of paired cases, one line each: constrained to unconstrained, shared to not shared, few bits to floats."""
    found = []
    by_name = {line.case.name: line for line in lines}
    for line in lines:
        plain = by_name.get(line.case.name.partition(" constrained")[0])
        if line.case.constraint is not None and plain is not None:
            ratio = line.tokens_per_s / plain.tokens_per_s
            found.append(f"{line.case.name} / unconstrained throughput: {ratio:.3f}")
        shared = by_name.get(line.case.name.removesuffix(", not shared"))
        if not line.case.prefix_sharing and shared is not None:
            found.append(f"shared / not shared throughput: {shared.tokens_per_s / line.tokens_per_s:.2f}")
        name, _, kind = line.case.name.partition(", ")
        if kind in FEW_BITS and name in by_name:
            found.append(f"{line.case.name} / floats throughput: {line.tokens_per_s / by_name[name].tokens_per_s:.2f}")
    return found
