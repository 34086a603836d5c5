"""Programs in Ray Data: a class for `Dataset.map_batches` that runs a program once per row, on a fleet.

    rows = dataset.map_batches(
        rt.map_batches(summary, arguments={"text": "review"}), batch_size=64, compute=ray.data.ActorPoolStrategy(size=2)
    )

The actors of Ray Data hold no model: they send their programs to the engines of the fleet. A row whose program fails carries its error;
the other rows of the batch are not affected. Imports no Ray, which pickles the class and calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from rtlang.contract.errors import ParameterError, RtlangError
from rtlang.contract.service.target import Target
from rtlang.fleet.connect import connect


class BatchProgram(Protocol):
    """The part of `rtlang.Program` that is needed here."""

    @property
    def run_batch(self) -> Callable[..., list[Any]]:
        """See `Program.run_batch`."""


def map_batches(
    program: BatchProgram,
    *,
    runtime: str = "ray://default",
    arguments: Mapping[str, str],
    value: str = "value",
    error: str = "error",
    **options: Any,
) -> type:
    """A callable class for `Dataset.map_batches` of Ray Data.

    Args:
        program: run once per row.
        runtime: where: a fleet on Ray (`ray://NAME`), or a server (`ws://HOST:PORT`). Each actor of Ray Data connects once.
        arguments: the column that gives each argument of the program.
        value: the new column of the returned values; None in rows that failed.
        error: the new column of errors, "code: message"; None in rows that succeeded.
        options: see `Program.run_batch`, for example `params` or `deadline_s`.
    Raises:
        ParameterError: two of the new columns have the same name, or an option is not allowed here.
    """
    if value == error:
        raise ParameterError("error", error, f"expected another column than {value!r}, which holds the values")
    for name in ("on_error", "progress"):
        if name in options:
            raise ParameterError(name, options[name], "not allowed here: a row carries its own error")
    columns = dict(arguments)

    class MappedProgram:
        """Runs the program over batches; made once by each actor of Ray Data."""

        def __init__(self) -> None:
            self._target: Target = connect(runtime)

        def __call__(self, batch: Any) -> Any:
            """The batch, a mapping of arrays or a data frame, with two more columns."""
            return run_on_batch(program, self._target, batch, columns, value, error, options)

        def __del__(self) -> None:
            if hasattr(self, "_target"):
                self._target.close()

    return MappedProgram


def run_on_batch(
    program: BatchProgram,
    target: Target,
    batch: Any,
    arguments: Mapping[str, str],
    value: str,
    error: str,
    options: Mapping[str, Any],
) -> Any:
    """Run a program once per row of a batch; returns the batch with the columns `value` and `error`.

    Raises:
        ParameterError: a column is missing.
    """
    for name, column in arguments.items():
        if column not in batch:
            raise ParameterError("arguments", dict(arguments), f"the batch has no column {column!r} for {name!r}")
    lists = {name: _plain_list(batch[column]) for name, column in arguments.items()}
    num_rows = len(next(iter(lists.values()), ())) if lists else len(next(iter(batch.values())))
    rows = [{name: values[index] for name, values in lists.items()} for index in range(num_rows)]
    results = program.run_batch(rows, runtime=target, on_error="result", **options)
    values, errors = np.empty(num_rows, object), np.empty(num_rows, object)
    for index, result in enumerate(results):
        if result.error is None:
            values[index] = result.value
        else:
            errors[index] = _error_text(result.error)
    if isinstance(batch, Mapping):
        return {**batch, value: values, error: errors}
    return batch.assign(**{value: values, error: errors})


def _plain_list(column: Any) -> list[Any]:
    """The values of a column as Python objects: programs take no NumPy numbers."""
    return list(column.tolist() if hasattr(column, "tolist") else column)


def _error_text(error: BaseException) -> str:
    code = error.code if isinstance(error, RtlangError) else type(error).__name__
    return f"{code}: {error}"
