"""Extracts records with validators, and compares `repair=2` with a retry loop in plain Python.

    python -m rtlang_bench.programs.repairs

The loop sends the conversation so far again for each attempt, with the model's text and the message of pydantic as two more messages. Both
have the same prompts and the same seeds, so each row that the loop repairs must be repaired. The tokens of all attempts are counted, those
from the prefix cache included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer
from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from rtlang.bench.language import users_program
from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.contract.graph.node_paths import mixed_seed
from rtlang.contract.service.target import Target
from rtlang.lang.output_types.types import output_type
from rtlang.lang.program_state import expr as rt
from rtlang.runtime.runtime import Runtime
from rtlang_bench.command import command, progress, show

NUM_DOCUMENTS, REPAIR, LIMIT = 200, 2, 1.3
_SURNAMES = ("Abel", "Brandt", "Castro", "Doyle", "Eriksen", "Fontaine", "Grau", "Haas")
_DEPARTMENTS = ("A", "B", "C", "D")


class Claim(BaseModel):
    """A record whose values obey rules that no schema states."""

    department: Literal["A", "B", "C", "D"]
    days: int = Field(ge=0, le=99)
    code: str = Field(min_length=1, max_length=6)

    @field_validator("days")
    @classmethod
    def _of_two(cls, days: int) -> int:
        if days % 2:
            raise ValueError(f"{days} is odd; write an even number")
        return days

    @model_validator(mode="after")
    def _has_code(self) -> Claim:
        if self.department == "A" and not self.code.isalpha():
            raise ValueError("codes of department A have letters only")
        return self


SCHEMA = output_type(type=Claim).constraint


def documents(count: int) -> list[str]:
    """Texts to extract from."""
    return [
        f"Claim {number}: {_SURNAMES[number % 8]} of department {_DEPARTMENTS[number // 8 % 4]} was away for {7 * number % 100} days."
        for number in range(count)
    ]


@users_program
def extract(s: Any, text: str, noise: int) -> Any:
    """One record, asked for again until it is valid."""
    s += rt.user(f"Extract the claim as JSON.\n{text}")
    s += rt.assistant(rt.gen("claim", type=Claim, max_tokens=80, temperature=1.0, seed=noise, repair=REPAIR))
    return s["claim"]


@users_program
def write_once(s: Any, messages: Sequence[str | Sequence[int]], noise: int) -> Any:
    """One attempt of the loop, as text of the same schema. The messages of the model are the tokens that it wrote."""
    for each in messages:
        s += rt.user(each) if isinstance(each, str) else rt.assistant(rt.tokens(each))
    assert SCHEMA is not None
    s += rt.assistant(rt.gen("claim", schema=SCHEMA.source, max_tokens=80, temperature=1.0, seed=noise))
    return s.text("claim")


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one document: whether its first text, the last of the loop, and the last of `repair` were valid; and the tokens."""

    is_valid: bool
    is_repaired_by_loop: bool
    is_repaired: bool
    loop_tokens: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Repairs:
    """The rows of a trial."""

    rows: tuple[Row, ...]

    @property
    def num_missed(self) -> int:
        """Rows that only the loop made valid."""
        return sum(row.is_repaired_by_loop and not row.is_repaired for row in self.rows)

    @property
    def ratio(self) -> float:
        """Tokens of `repair` divided by those of the loop."""
        return sum(row.tokens for row in self.rows) / sum(row.loop_tokens for row in self.rows)

    @property
    def is_met(self) -> bool:
        """Whether no row was missed, within the tokens."""
        return self.num_missed == 0 and self.ratio <= LIMIT

    def __str__(self) -> str:
        valid, by_loop, repaired = (
            sum(getattr(row, name) for row in self.rows) for name in ("is_valid", "is_repaired_by_loop", "is_repaired")
        )
        return (
            f"{len(self.rows)} documents: {valid} valid at once, {by_loop} after the loop, {repaired} with repair={REPAIR}; "
            f"{self.num_missed} missed (at most 0); tokens {self.ratio:.2f}x of the loop (at most {LIMIT}x)"
        )


def compare(texts: Sequence[str], target: Target) -> Repairs:
    """Extract from each text in both ways."""
    results = extract.run_batch([{"text": text, "noise": seed} for seed, text in enumerate(texts)], runtime=target)
    rows = []
    for seed, (text, result) in enumerate(zip(texts, results, strict=True)):
        is_valid, is_repaired, tokens = _loop(text, seed, target)
        used = result.usage.prompt_tokens + result.usage.completion_tokens
        rows.append(Row(is_valid, is_repaired, result.error is None, tokens, used))
    return Repairs(tuple(rows))


def _loop(text: str, seed: int, target: Target) -> tuple[bool, bool, int]:
    """Whether the first and the last text of a retry loop are valid, and its tokens."""
    messages: list[str | Sequence[int]] = [f"Extract the claim as JSON.\n{text}"]
    is_valid, tokens = False, 0
    for attempt in range(REPAIR + 1):
        own_seed = mixed_seed(seed, f"repair[{attempt}]") if attempt else seed
        result = write_once.run(messages=messages, noise=own_seed, runtime=target)
        tokens += result.usage.prompt_tokens + result.usage.completion_tokens
        try:
            Claim.model_validate_json(result.value)
        except ValidationError as error:
            reasons = [
                ": ".join([*filter(None, [".".join(map(str, each["loc"]))]), each["msg"].removeprefix("Value error, ")])
                for each in error.errors()
            ]
            message = "\n".join(reasons)
            feedback = f"The value is not valid: {message}\nWrite it again, corrected, in the same form."
            messages += [result.meta("claim").token_ids, feedback]
        else:
            return attempt == 0, True, tokens
    return is_valid, False, tokens


def bench_repairs(
    model: Annotated[str, typer.Option(help="Name or directory of the model.")] = EMBEDDED_MODEL,
    documents_: Annotated[int, typer.Option("--documents", help="Number of documents.", min=1)] = NUM_DOCUMENTS,
) -> None:
    """Compare repair=2 with a retry loop in plain Python over documents with validators."""
    with progress() as tell:
        tell("extracting")
        with Runtime(config=RuntimeConfig(model=model)) as runtime:
            found = compare(documents(documents_), runtime)
    show(found)


app = command(bench_repairs)

if __name__ == "__main__":
    app()
