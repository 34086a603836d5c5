"""The process of our own side where it is compared from its start on: run as a module, with the configuration as its argument.

Reads a case of `workloads.steps` and a seed per line of standard input, and writes the measurement; the first line says that a first token
was generated.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, replace
from time import process_time
from typing import Any

from rtlang.bench.measure import Measurement, run_on_target
from rtlang.bench.workloads.steps import CASES
from rtlang.bench.workloads.workload import fixed_generation
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.request_graph import RequestGraph, Text
from rtlang.runtime.runtime import Runtime

FIRST = RequestGraph((Text(0, None, ("a",)), fixed_generation(1, 0, 1)))


def measurement_of(plain: dict[str, Any]) -> Measurement:
    """The measurement that `plain_measurement` wrote."""
    keyed = {
        name: {(index, node_id): tuple(values) for index, node_id, values in plain[name]}
        for name in ("output_times_s", "outputs")
    }
    sequences = {name: tuple(plain[name]) for name in ("latencies_s", "arrivals_s")}
    return Measurement(**{**plain, **keyed, **sequences})


def plain_measurement(run: Measurement) -> dict[str, Any]:
    """A measurement as JSON has it."""
    keyed = {
        name: [[*key, list(values)] for key, values in getattr(run, name).items()]
        for name in ("output_times_s", "outputs")
    }
    return {**asdict(run), **keyed}


def run_case(runtime: Runtime, case: str, seed: int) -> Measurement:
    """Run a case with an empty prefix cache."""
    runtime.clear_cache()
    workload = CASES[case](runtime.tokenizer, seed=seed)
    started = process_time()
    run = run_on_target(runtime, workload.graphs)
    return replace(run, cpu_s=process_time() - started)


def main() -> None:
    settings = json.loads(sys.argv[1])
    os.sched_setaffinity(0, settings["cores"])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer

    def answer(value: object) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    runtime = Runtime(config=RuntimeConfig(**settings["config"])).start()
    try:
        run_on_target(runtime, (FIRST,))
        answer({"cpu_s": process_time()})
        for line in sys.stdin:
            answer(plain_measurement(run_case(runtime, **json.loads(line))))
    finally:
        runtime.close()


if __name__ == "__main__":
    main()
