"""Compares the step of a family with the step of a Llama with as many weights, on a CPU.

python -m rtlang_bench.decoders                          # every family of `shapes`, with the decoder that the runtime chooses
python -m rtlang_bench.decoders gemma3_text --decoder transformers

Prints the processor time of a decode step of 1 and of 8 rows and of a prefill of 512 tokens, and their ratio to the Llama on the native
decoder. Both take turns in one process; the least of several repeats counts.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rtlang_bench.decoders.shapes import FAMILIES, SIZES, TWIN, entries
from rtlang_bench.decoders.step_costs import STEPS, MeasuredDecoder, best_seconds

BOUND = 1.15
"""Largest ratio at which a family needs no native decoder."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a line for each family; returns 1 if a ratio is above BOUND."""
    parser = argparse.ArgumentParser(prog="python -m rtlang_bench.decoders", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("families", nargs="*", default=list(FAMILIES), help=f"default: {' '.join(FAMILIES)}")
    parser.add_argument("--decoder", choices=("auto", "native", "transformers"), default="auto")
    parser.add_argument("--layers", type=int, default=SIZES["num_hidden_layers"])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.families) - {*FAMILIES, TWIN})
    if unknown:
        parser.error(f"families: {' '.join(unknown)}: expected some of {' '.join((*FAMILIES, TWIN))}")
    worst = 0.0
    with TemporaryDirectory(prefix="rtlang-bench-") as scratch:

        def made(family: str, decoder: str) -> MeasuredDecoder:
            fields = entries(family) | {"num_hidden_layers": options.layers}
            if "layer_types" in fields:
                fields["layer_types"] = fields["layer_types"][: options.layers]
            return MeasuredDecoder(Path(scratch, f"{family}-{decoder}"), family, fields, decoder, options.threads)

        twin = made(TWIN, "native")
        for family in options.families:
            side = made(family, options.decoder)
            shown = []
            for step in STEPS:
                own, other = best_seconds((side, twin), step, options.repeats)
                worst = max(worst, own / other)
                shown.append(f"{step} {1e3 * own:.1f} ms, {own / other:.2f}x of {1e3 * other:.1f}")
            decoder = "native" if side.is_native else "transformers"
            print(f"{family} ({decoder}): {'; '.join(shown)}", flush=True)
            del side
    return int(worst > BOUND)


if __name__ == "__main__":
    sys.exit(main())
