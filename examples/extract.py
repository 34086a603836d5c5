"""Extraction over a file: one program, a batch of inputs, a table of typed records.

    python examples/extract.py [FILE]

Every line is one run; all of them are computed together. A line that fails leaves the others alone: `result.error` says why.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pydantic import BaseModel, Field

import rtlang as rt

ORDERS = Path(__file__).parent / "data" / "orders.txt"


class Order(BaseModel):
    customer: str
    item: str
    quantity: int = Field(ge=0)
    price: float = Field(ge=0)
    city: str


@rt.program
def extract(s: rt.State, text: str) -> Order:
    """One order from one line of text."""
    s += rt.user("Extract customer, item, quantity, price, city as JSON.\nText: ", text)
    s += rt.assistant(rt.gen("order", schema=Order, max_tokens=120))
    return s["order"]


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ORDERS
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    with rt.Runtime() as runtime:
        results = extract.run_batch([{"text": line} for line in lines], runtime=runtime, progress=True)
    for line, result in zip(lines, results, strict=True):
        if result.error is not None:
            print(f"failed: {line}: {result.error}")
            continue
        order = result.value
        print(f"{order.quantity:4} x {order.item:16} {order.price:8.2f}  {order.customer}, {order.city}")


if __name__ == "__main__":
    main()
