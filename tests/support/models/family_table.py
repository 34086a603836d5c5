"""The table of model families in docs/model-families.md, from `tests/support/models/families.py`.

    python -m tests.support.models.family_table        # check every family, then write the table

Nothing is written where a family does not behave as it is declared.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.support.models.divided_models import check_divided
from tests.support.models.families import FAMILIES, NOT_DIVIDED, Family, is_native, served
from tests.support.models.family_check import check_refused, check_served
from tests.support.models.rank_threads import rank_threads

PAGE = Path(__file__).parents[3] / "docs" / "model-families.md"
MARKERS = "<!-- families: made by tests/support/models/family_table.py -->", "<!-- families end -->"


def family_table() -> str:
    """The section between the markers."""
    good = [family for family in FAMILIES if family.refusal is None]
    bad = [family for family in FAMILIES if family.refusal is not None]
    by_decoder = Counter(decoder for _, _, decoder in served())
    return "\n".join(
        [
            f"Equal token for token ({len(good)} families, {by_decoder['transformers']} configurations, {by_decoder['native']} of them "
            "on the native decoder too):",
            "",
            "| family | `model_type` | decoder | states | CUDA graphs | tensor parallel | variants compared |",
            "|---|---|---|---|---|---|---|",
            *(
                f"| {family.title} | {family.model_type} | {_decoders(family)} | {'yes' if family.has_states else 'no'} | "
                f"{_graphs(family)} | "
                f"{family.division} | {', '.join(family.variants)} |"
                for family in good
            ),
            "",
            f"Refused by name when loaded ({len(bad)}):",
            "",
            "| family | `model_type` | because |",
            "|---|---|---|",
            *(f"| {family.title} | {family.model_type} | {family.refusal} |" for family in bad),
        ]
    )


def table_in(readme: str, markers: tuple[str, str]) -> str:
    """What stands between the markers of the page."""
    return readme.partition(markers[0])[2].partition(markers[1])[0].strip()


def write_table(path: Path, table: str, markers: tuple[str, str]) -> None:
    """Put a table between the markers of the page at `path`."""
    before, begin, rest = path.read_text(encoding="utf-8").partition(markers[0])
    _, end, after = rest.partition(markers[1])
    if not (begin and end):
        raise ValueError(f"{path} has no markers for the table")
    path.write_text(f"{before}{begin}\n\n{table}\n\n{end}{after}", encoding="utf-8")


def _decoders(family: Family) -> str:
    return "native, transformers" if is_native(family, None) else "transformers"


def _graphs(family: Family) -> str:
    """Whether steps of decoding are replayed from graphs."""
    if not family.without_graphs:
        return "yes"
    return "no" if None in family.without_graphs else f"yes, except with {', '.join(map(str, family.without_graphs))}"


def main() -> None:
    """Check everything, then write."""
    for family, variant, decoder in served():
        with tempfile.TemporaryDirectory() as scratch:
            check_served(family, variant, decoder, Path(scratch))
        print(f"equal    {family.model_type} {variant or ''} ({decoder})", file=sys.stderr)
    with rank_threads(2) as ranks:
        for family, variant, decoder in served():
            if decoder == "native" or family.division == NOT_DIVIDED:
                continue
            with tempfile.TemporaryDirectory() as scratch:
                check_divided(ranks, family, variant, Path(scratch))
            print(f"divided  {family.model_type} {variant or ''}", file=sys.stderr)
    for family in FAMILIES:
        if family.refusal is not None:
            with tempfile.TemporaryDirectory() as scratch:
                check_refused(family, Path(scratch))
            print(f"refused  {family.model_type}", file=sys.stderr)
    write_table(PAGE, family_table(), MARKERS)


if __name__ == "__main__":
    main()
