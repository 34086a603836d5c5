"""Few-shot classification with `select`: the model compares the choices, it does not have to write them.

rtlang run examples/sentiment.py:sentiment --arg review="The soup was cold and the staff was rude."
python examples/sentiment.py
"""

from __future__ import annotations

import rtlang as rt

SHOTS = (
    ("I love it, it works great.", "positive"),
    ("It broke after a day.", "negative"),
    ("The staff was kind and the food was fresh.", "positive"),
    ("It arrived late and damaged.", "negative"),
)
REVIEWS = (
    "The quality is excellent.",
    "I want a refund.",
    "My family enjoys it every day.",
    "A waste of money, said Tom.",
)


@rt.program
def sentiment(s: rt.State, review: str) -> object:
    """The shots are the same in every call, so they are computed once for all of them."""
    for text, label in SHOTS:
        s += rt.text("Review: ", text, "\nSentiment: ", label, "\n")
    s += rt.text("Review: ", review, "\nSentiment: ")
    s += rt.select("label", ["positive", "negative"])
    return s["label"]


def main() -> None:
    with rt.Runtime() as runtime:
        for review, result in zip(
            REVIEWS, sentiment.run_batch([{"review": review} for review in REVIEWS], runtime=runtime), strict=True
        ):
            label = result["label"]
            print(f"{label:9} ({result.meta('label').probabilities[label]:4.0%})  {review}")


if __name__ == "__main__":
    main()
