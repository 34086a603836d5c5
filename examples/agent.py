"""An agent with tools: typed calls in the format of the model, results as tool messages, an answer at the end.

    python examples/agent.py [--model DIRECTORY | --connect URL] [QUESTION]

The model in the package is too small to choose tools well; it shows the shape of a run. A model trained for tools sees them as in its
training, through its own chat template.
"""

from __future__ import annotations

import asyncio
import datetime
import enum
import json

from options import open_runtime, parser_of

import rtlang as rt


class Item(enum.Enum):
    LAMP = "lamp"
    MUG = "mug"


PRICES = {Item.LAMP: 40, Item.MUG: 8}
STOCK = {Item.LAMP: 3, Item.MUG: 0}


async def look_up(item: Item) -> str:
    """The price and the stock of an item.

    Args:
        item: the item to look up.
    """
    await asyncio.sleep(0.1)  # a slow warehouse; other programs go on
    return json.dumps({"price": PRICES[item], "in stock": STOCK[item]})


def order(item: Item, quantity: int = 1) -> str:
    """Order an item for the customer.

    Args:
        item: the item to order.
        quantity: how many pieces.
    """
    if not 0 < quantity <= STOCK[item]:
        raise ValueError(f"{quantity} pieces of {item.value} are not in stock")
    return json.dumps({"ordered": item.value, "total": PRICES[item] * quantity})


def delivery(item: Item, day: datetime.date) -> str:
    """Whether an item can be delivered on a day.

    Args:
        item: the item to deliver.
        day: the day of the delivery.
    """
    return json.dumps({"item": item.value, "weekday": f"{day:%A}", "possible": day.weekday() < 5})


TOOLS = [look_up, order, delivery]


@rt.program
def agent(s: rt.State, question: str, max_steps: int = 3) -> str:
    """Call tools until the model answers, at most `max_steps` times."""
    s += rt.system("You work in a shop.", tools=TOOLS)
    s += rt.user(question)
    for step in range(max_steps):
        choice = "required" if step == 0 else "auto"  # look at the facts first
        s += rt.assistant(rt.gen(f"step {step}", 100, tools=TOOLS, tool_choice=choice))
        calls = [s[f"step {step}"]] if choice == "required" else s[f"step {step}"].calls
        if not calls:
            return s[f"step {step}"].content
        for call in calls:
            s += rt.tool(result_of(call))
    s += rt.assistant(rt.gen("answer", 60))
    return s["answer"]


def result_of(call: rt.ToolCall) -> str:
    """The result of a call for the model, also where the tool fails: the model may try again."""
    try:
        return str(call.run())
    except rt.ToolError as error:
        return json.dumps({"error": error.reason})


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("question", nargs="?", default="I take the lamp.")
    options = parser.parse_args()
    with open_runtime(options) as runtime:
        result = agent.run(options.question, runtime=runtime)
    for message in result.messages:
        print(f"{message['role']}: {message['content']}")
    print(f"=> {result.value}")


if __name__ == "__main__":
    main()
