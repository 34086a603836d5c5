"""An extraction over many rows that goes on where it stopped.

    python examples/extract_many.py --rows 10000 --out orders.jsonl
    python examples/extract_many.py --rows 10000 --out orders.jsonl    # after Ctrl-C or a crash: the rest

A finished row is in orders.jsonl.cassette at once, and the next run reads it from there instead of asking the model. The output has one
line for each row, in order: its record, or its error, which leaves the other rows alone.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

from options import open_runtime, parser_of
from pydantic import BaseModel, Field

import rtlang as rt

CUSTOMERS = ("Nora", "Omar", "Kim Stone", "Hugo", "Ada", "Tom Reed", "Lena")
ITEMS = ("wooden chairs", "red mugs", "candles", "lamps", "blue plates")
CITIES = ("Lima", "Cairo", "Vienna", "Oslo", "Rome", "Paris")
FORMS = (
    "Hello, this is {customer} from {city}. I would like {quantity} {item} at {price} dollars each, please.",
    "Please send {quantity} {item} to {customer} in {city}. The price is {price} dollars each.",
    "New order from {city}: {customer} wants {quantity} {item} at {price} dollars.",
    "At {price} dollars each, {customer} will take {quantity} {item}. Ship them to {city}.",
)


class Order(BaseModel):
    customer: str = Field(max_length=30)
    item: str = Field(max_length=30)
    quantity: int = Field(ge=0, le=1000)
    price: float = Field(ge=0, le=10000)
    city: str = Field(max_length=30)


@rt.program
def extract(s: rt.State, text: str) -> Order:
    """One order from one text."""
    s += rt.user("Extract customer, item, quantity, price, city as JSON.\nText: ", text)
    s += rt.assistant(rt.gen("order", schema=Order, max_tokens=120))
    return s["order"]


def texts(count: int) -> list[str]:
    """Orders as people write them. Each 50th is a whole mailbox, which is too long for a small model."""
    choose = random.Random(1)
    rows = []
    for row in range(count):
        text = choose.choice(FORMS).format(
            customer=choose.choice(CUSTOMERS),
            item=choose.choice(ITEMS),
            city=choose.choice(CITIES),
            quantity=choose.randint(1, 200),
            price=choose.randint(4, 180) / 4,
        )
        rows.append(text * 2000 if row % 50 == 49 else text)
    return rows


def line_of(row: int, result: rt.Result[Order]) -> str:
    """A line of the output."""
    if result.error is not None:
        return json.dumps({"row": row, "error": f"{type(result.error).__name__}: {result.error}"})
    return json.dumps({"row": row, **result.value.model_dump()})


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("orders.jsonl"))
    options = parser.parse_args()
    inputs = [{"text": text} for text in texts(options.rows)]
    cassette = options.out.with_name(options.out.name + ".cassette")
    with open_runtime(options) as runtime, rt.record(cassette, runtime) as recorder:
        results = extract.run_batch(inputs, progress=True)
    options.out.write_text("".join(line_of(row, result) + "\n" for row, result in enumerate(results)), encoding="utf-8")
    failed = sum(result.error is not None for result in results)
    print(f"{options.out}: {len(results)} rows, {failed} with an error")
    print(f"{recorder.num_replayed} were there, {recorder.num_recorded} are new")


if __name__ == "__main__":
    main()
