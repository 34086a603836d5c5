"""Questions over shared documents: what several prompts have in common is computed once.

    python examples/rag.py [--model DIRECTORY | --connect URL]

Each question gets the two documents that share most words with it, the best one first. So prompts with the same documents may begin
differently. With order="free" the compiler may lay documents out anew: those that most prompts of the batch have come first.
"""

from __future__ import annotations

import re
from pathlib import Path

from options import open_runtime, parser_of

import rtlang as rt

SHELVES = Path(__file__).parent / "data" / "shelves.txt"
QUESTIONS = (
    "How much is the lamp?",
    "What color is the kettle?",
    "How many rakes do you have?",
    "How much is the mirror?",
    "Is the mug in stock?",
    "How much is the bench?",
    "What color is the candle?",
    "How many plates do you have?",
)


@rt.program
def ask(s: rt.State, heading: str, question: str, documents: list[str]) -> str:
    """One question about its documents, which may change places."""
    s += rt.system(heading, *(f"\n{document}" for document in documents), order="free")
    s += rt.user(question)
    s += rt.assistant(rt.gen("answer", max_tokens=40))
    return s["answer"]


def retrieve(question: str, documents: list[str], count: int = 2) -> list[str]:
    """The documents that share most words with the question. A real program asks an index here."""

    def words(text: str) -> set[str]:
        return {word.rstrip("s") for word in re.findall(r"[a-z]+", text.lower())}

    return sorted(documents, key=lambda document: -len(words(question) & words(document)))[:count]


def main() -> None:
    options = parser_of(__doc__).parse_args()
    documents = SHELVES.read_text(encoding="utf-8").strip().split("\n\n")
    found = [{"question": question, "documents": retrieve(question, documents)} for question in QUESTIONS]
    with open_runtime(options) as runtime:
        # Two headings, so that the second batch finds nothing of the first in the cache.
        for heading, layout, passes in (
            ("You work in a shop. Prices:", "as retrieved", "-reorder"),
            ("You work in a shop. Catalog:", "shared first", True),
        ):
            results = ask.run_batch([{"heading": heading, **each} for each in found], runtime=runtime, passes=passes)
            cached = sum(result.usage.cached_tokens for result in results)
            total = sum(result.usage.prompt_tokens for result in results)
            print(f"{layout}: {cached} of {total} prompt tokens were already computed ({cached / total:.0%})")
    for question, result in zip(QUESTIONS, results, strict=True):
        print(f"  {question:28} {result.value:28} {result.usage.cached_tokens} of {result.usage.prompt_tokens}")


if __name__ == "__main__":
    main()
