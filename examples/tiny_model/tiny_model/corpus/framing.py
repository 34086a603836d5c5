"""Where the text stands in a request for a record of it: what it is called, what leads to it, what sets it apart."""

from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.lexicon import words
from tiny_model.corpus.words import Draw

TEMPLATES = sections_of("framing")

COMMON_LABELS = words(TEMPLATES["COMMON_LABELS"])
# Two times in five a common one.
LABELS = 4 * COMMON_LABELS + words(
    TEMPLATES["LABELS"],
    "|",
)
HELD_LABELS = words("Snippet Transcript Excerpt Memo")
FRAMES = (
    TEMPLATES['FRAMES'], TEMPLATES['FRAMES'], TEMPLATES['FRAMES 2'], TEMPLATES['FRAMES 3'], TEMPLATES['FRAMES 4'], TEMPLATES['FRAMES 5'],
    TEMPLATES['FRAMES 6'], "{ask} {text}", '{ask} "{text}"', TEMPLATES['FRAMES 7'], TEMPLATES['FRAMES 8'], TEMPLATES['FRAMES 9'],
    TEMPLATES['FRAMES 10'], TEMPLATES['FRAMES 11'], TEMPLATES['FRAMES 12'], TEMPLATES['FRAMES 13'],
    TEMPLATES['FRAMES 14'], TEMPLATES['FRAMES 15'], TEMPLATES['FRAMES 16'],
    TEMPLATES['FRAMES 17'], TEMPLATES['FRAMES 18'], TEMPLATES['FRAMES 19'], "{text} >> {ask}", "{ask} ({text})",
    "[{text}] {ask}", TEMPLATES['FRAMES 20'], '"{text}" {ask}', TEMPLATES['FRAMES 21'], TEMPLATES['FRAMES 22'],
    "{text} // {ask}", TEMPLATES['FRAMES 23'], TEMPLATES['FRAMES 24'], TEMPLATES['FRAMES 25'],
    TEMPLATES['FRAMES 26'], "{{{text}}} {ask}", TEMPLATES['FRAMES 27'], "{ask} {Label}: {text}", TEMPLATES['FRAMES 28'],
)  # fmt: skip
HELD_FRAMES = (
    TEMPLATES['HELD_FRAMES'], TEMPLATES['HELD_FRAMES 2'], TEMPLATES['HELD_FRAMES 3'], "{text} ### {ask}", "({text}) {ask}",
)  # fmt: skip
MARKS = words("*** ~~~ +++ ===== -- :: %% @@ __ ^^ ****** .... ~~ ** ++ //// || \u2014 \u2022 ____ == ++++ -----")
LEADS = words(
    TEMPLATES["LEADS"],
    "|",
)
ENDS_OF_LEADS = (":", ":", ":", ":", ":", " -", " =>", " ->", " =", "...", ".", ",", ";")
QUOTES = (
    ('"', '"'), ("\u201c", "\u201d"), ("\u2018", "\u2019"), ("\u00ab", "\u00bb"), ("\u201e", "\u201c"), ("<", ">"), ("[", "]"),
    ("{", "}"), ("`", "`"), ("'", "'"), ("*", "*"), ("_", "_"), ("/", "/"), ("|", "|"),
)  # fmt: skip
LEADS_OF_ASKS = words(
    TEMPLATES["LEADS_OF_ASKS"],
    "|",
)
GAPS = ("\n", "\n", "\n\n", " ")
MARKED = 0.25  # share of requests with the text between marks drawn at random
LED = 0.25  # share of requests composed of words that lead to the text, quotation marks, and words that lead to the request


def framed(draw: Draw, ask: str, text: str) -> str:
    """The request and the text in one message."""
    label = draw.wording(LABELS, HELD_LABELS)
    if draw.wordings == "train":
        if draw.chance(0.15):
            label = draw.capital()  # whatever a text is called
        shape = draw.random.random()
        if shape < MARKED:
            return between_marks(draw, ask, text, label)
        if shape < MARKED + LED:
            return led_to(draw, ask, text, label)
    return draw.wording(FRAMES, HELD_FRAMES).format_map(
        {"ask": ask, "text": text, "Label": label, "label": label.lower()}
    )


def between_marks(draw: Draw, ask: str, text: str, label: str) -> str:
    """The request and the text, set apart by marks that need not mean anything."""
    mark, gap = draw.pick(MARKS), draw.pick(GAPS)
    if draw.chance(0.2):  # the mark alone between the two
        return gap.join((ask, mark, text) if draw.chance(0.5) else (text, mark, ask))
    head = draw.pick(
        ("", "", f"{mark} {label}", f"{mark} {label} {mark}", f"[{label}]", f"{label} {mark}", f"{mark}{label}{mark}")
    )
    if head in (f"== {label} ==", ""):  # held out, and none
        head = mark
    body = f"{head}{gap}{text}" + (f"{gap}{mark}" if draw.chance(0.4) else "")
    return in_either_order(draw, ask, body, gap, ask_first=0.6)


def led_to(draw: Draw, ask: str, text: str, label: str) -> str:
    """The request and the text, each as it is or with words that lead to it, the text in marks of quotation of any kind or none."""
    if draw.chance(0.4):
        before, after = draw.pick(QUOTES)
        text = before + text + after
    if draw.chance(0.75):
        lead = draw.spoken(draw.pick(LEADS)).format(label=label.lower())
        text = lead + draw.pick(ENDS_OF_LEADS) + draw.pick((" ", " ", "\n", "\n\n")) + text
    if draw.chance(0.25):
        ask = draw.pick(LEADS_OF_ASKS) + draw.pick((": ", ": ", ":\n", " - ", ". ", "\n")) + ask
    return in_either_order(draw, ask, text, draw.pick(GAPS), ask_first=0.55)


def in_either_order(draw: Draw, ask: str, text: str, gap: str, ask_first: float) -> str:
    """The request before the text in a share `ask_first` of draws, else after it.

    There it is on a new line after a word, so that no value runs on into the request.
    """
    if draw.chance(ask_first):
        return ask + gap + text
    return f"{text}\n{ask}" if gap == " " and text[-1].isalnum() else text + gap + ask
