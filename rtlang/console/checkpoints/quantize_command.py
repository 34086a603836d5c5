"""`rtlang quantize`: rounds a checkpoint to 4 or 8 bits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.source import CommandError

if TYPE_CHECKING:
    from rtlang.model.quantization.quantize import QuantizationReport

_SAMPLE = """\
The lighthouse keeper wrote down the weather every morning before breakfast. On most days there was little to say: wind from the west,
some clouds, a sea that looked like slate. In March he found a bottle with a letter in it, and the letter asked a question: "How many
steps are there in your tower, and who counted them first?" He went down to the door and counted 187, one more than his father had told
him. Later that year the harbor office sent new lamps. They used a third of the oil, and their light could be seen 24 miles away.
{"station": "North Rock", "lamps": 2, "oil_liters": 310.5, "keepers": ["Jonas", "Marta"]} was the entry in the register, and the program
that counted the steps was short: def steps(tower): return sum(1 for _ in tower)
"""


class Format(StrEnum):
    """What weights are rounded to."""

    INT4 = "int4"
    INT8 = "int8"


def quantize(
    source: Annotated[str, typer.Argument(help="A model directory, owner/name on a hub, or rtlang:tiny.")],
    out: Annotated[Path, typer.Argument(help="The directory to write, which must not exist or be empty.")],
    format: Annotated[Format, typer.Option(help="What weights are rounded to.")] = Format.INT4,
    group: Annotated[int, typer.Option(help="Inputs that share a scale: 32, 64 or 128.")] = 32,
    zero_points: Annotated[
        bool, typer.Option(help="A zero point for each group, for weights far from symmetric.")
    ] = False,
    calibrate: Annotated[
        str | None,
        typer.Option(
            help="Measure the inputs of layers over the text of this file, or over a built-in one with 'sample'.",
            metavar="FILE",
        ),
    ] = None,
    text: Annotated[
        Path | None, typer.Option(help="Compare predictions over the text of this file instead of a built-in one.")
    ] = None,
    no_comparison: Annotated[
        bool, typer.Option("--no-comparison", help="Do not load both models to compare their predictions.")
    ] = False,
    report: Annotated[Path | None, typer.Option(help="Write the report to this file as JSON.", metavar="FILE")] = None,
) -> None:
    """Round the linear layers of a checkpoint to 4 or 8 bits, and tell the error by layer and of the predictions.

    The result is a model directory in the pack-quantized layout of compressed-tensors, which other engines read as well.
    """
    console = Console(highlight=False, markup=False)
    with one_line_errors():
        if group not in (32, 64, 128):
            raise CommandError(f"--group {group}: expected 32, 64 or 128")
        from rtlang.model.quantization.quantize import quantized_checkpoint
        from rtlang.model.quantization.rounding import Rounding

        rounding = Rounding(4 if format is Format.INT4 else 8, group, zero_points)
        with Console(stderr=True).status("reading") as status, _written(out):
            found = quantized_checkpoint(
                source,
                out,
                rounding,
                calibration=None if calibrate is None else _SAMPLE if calibrate == "sample" else _read(Path(calibrate)),
                text=None if no_comparison else _SAMPLE if text is None else _read(text),
                on_progress=lambda fraction: status.update(f"rounding weights: {fraction:.0%}"),
            )
        if report is not None:
            with _written(report):
                report.write_text(json.dumps(found.to_plain(), indent=2) + "\n", encoding="utf-8")
        console.print(_table(found))
        console.print(_summary(found, out))


@contextmanager
def _written(path: Path) -> Iterator[None]:
    """Show errors of files as those of writing a path."""
    try:
        yield
    except OSError as error:
        raise CommandError(f"{path}: cannot be written: {error}") from None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: cannot be read: {error}") from None


def _table(report: QuantizationReport) -> Table:
    """The error of each kind of matrix: the mean over layers and the worst layer."""
    kinds: dict[str, list[tuple[float, str, int]]] = {}
    for each in report.matrices:
        kind = ".".join(part for part in each.name.removesuffix(".weight").split(".")[-2:] if not part.isdigit())
        kinds.setdefault(kind, []).append((each.error, each.name, each.num_bytes))
    table = Table(box=None)
    for title in ("weights", "count", "MB", "mean error", "largest", "of layer"):
        table.add_column(title, no_wrap=True)
    for kind, found in kinds.items():
        worst = max(found)
        mean = sum(error for error, _, _ in found) / len(found)
        size = sum(num_bytes for _, _, num_bytes in found) / 1e6
        table.add_row(kind, str(len(found)), f"{size:.1f}", f"{mean:.4f}", f"{worst[0]:.4f}", _layer(worst[1]))
    return table


def _layer(name: str) -> str:
    """The number of the layer that a weight belongs to."""
    return next((part for part in name.split(".") if part.isdigit()), name)


def _summary(report: QuantizationReport, out: Path) -> str:
    shares = f"{report.num_bytes / 1e6:,.1f} MB written, {report.num_bytes / report.source_bytes:.0%} of the source"
    lines = [f"{out}: {shares}" + (", channels scaled" if report.is_scaled else "")]
    if (each := report.predictions) is not None:
        lines.append(
            f"predictions over {each.num_tokens} tokens: divergence {each.divergence:.4f} nats, same most likely token "
            f"{each.agreement:.1%}, perplexity {each.perplexity:.3f} (source {each.other_perplexity:.3f})"
        )
    return "\n".join(lines)
