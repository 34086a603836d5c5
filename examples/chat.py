"""A chat of several turns about facts in the prompt, streamed as it is written.

    rtlang run examples/chat.py:shop
    python examples/chat.py

Each turn continues the sequence of the one before: nothing is sent, tokenised or computed twice.
"""

from __future__ import annotations

import rtlang as rt

CATALOG = "You work in a shop. Catalog:\n- lamp: 40 dollars, red, 3 in stock\n- mug: 8 dollars, blue, 0 in stock"
QUESTIONS = ("How much is the lamp?", "What color is it?", "I take the lamp.", "Thank you!")


@rt.program
def shop(s: rt.State, catalog: str = CATALOG, questions: list[str] = list(QUESTIONS)) -> object:  # noqa: B006 - never changed
    """One question after the other."""
    s += rt.system(catalog)
    for number, question in enumerate(questions, 1):
        s += rt.user(question)
        s += rt.assistant(rt.gen(f"answer {number}", max_tokens=40))
    return s.messages()


def main() -> None:
    with rt.Runtime() as runtime, shop.stream(runtime=runtime) as events:
        shown = ""
        for event in events:
            if isinstance(event, rt.TextEvent):
                if event.name is not None and event.name != shown:
                    shown = event.name
                    print(f"\n> {QUESTIONS[int(shown.split()[-1]) - 1]}\n", end="")
                print(event.text, end="", flush=True)
        print()


if __name__ == "__main__":
    main()
