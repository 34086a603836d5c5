"""Where the text stands in a request for a record of it: what it is called, what leads to it, what sets it apart."""

from rtlang.model.embedded.lexicon import words
from rtlang.model.embedded.words import Draw

COMMON_LABELS = words(
    "Text Message Note Input Document Sentence Mail Source Content Passage Paragraph Email Letter Data"
)
# Two times in five a common one.
LABELS = 4 * COMMON_LABELS + words(
    "Report|Notice|Announcement|Post|Entry|Log|Caption|Clipping|Statement|Fragment|Quote|Article|Story|Description|Line|"
    "Page|Chat|Conversation|Body|Material|Bulletin|Feed|Payload|Context|Background|Case|Scenario|Information|Draft|Scan|Attachment|"
    "Reply|Tweet|Telegram|Postcard|Leaflet|Newsletter|Column|Section|Chunk|Segment|Block|Span|Utterance|Speech|Voicemail|Dispatch|"
    "Query|Extract|Raw text|User input|Chat message|Mail body|Source text|Inbox item|News item|Call note|Text file|Fax|"
    "SMS|Review|Summary|Dictation|Recording|Remark|Account|Submission|Contribution|Slip|Sheet|Poster|Flyer|Advert|Press release|"
    "Journal|Diary|Blog post|Forum post|Thread|Update|Reminder|Briefing|Circular|File|Sample|Observation|Narrative|Wording|"
    "Original|Piece",
    "|",
)
HELD_LABELS = words("Snippet Transcript Excerpt Memo")
FRAMES = (
    "{ask}\n{Label}: {text}", "{ask}\n{Label}: {text}", "{ask}\n{text}", "{ask}\n\n{text}", "{Label}: {text}\n{ask}", "{text}\n{ask}",
    "{text}\n\n{ask}", "{ask} {text}", '{ask} "{text}"', '{ask}\n"{text}"', "{ask}\n\n{Label}:\n{text}", "{ask}\n{Label}: {text}\nJSON:",
    "{Label}:\n{text}\n\n{ask}", "{ask}\n```\n{text}\n```", "<{label}>{text}</{label}>\n{ask}", "{ask}\n<{label}>\n{text}\n</{label}>",
    '{Label}: "{text}"\n\n{ask}', "# {Label}\n{text}\n\n# Task\n{ask}", "{Label} = {text}\n{ask}",
    "{ask}\n***\n{text}\n***", "{ask}\n\n-- {Label} --\n{text}", "Here is the {label}: {text}\n{ask}", "{text} >> {ask}", "{ask} ({text})",
    "[{text}] {ask}", "{ask}\n~~~\n{text}\n~~~", '"{text}" {ask}', "Task: {ask}\n{Label}: {text}", "## {Label}\n{text}\n## Question\n{ask}",
    "{text} // {ask}", "{Label} - {text}\n\n{ask}", "{ask} Here it is:\n{text}", "The {label} comes here:\n{text}\n\n{ask}",
    "{ask}\n\n[{Label}]\n{text}", "{{{text}}} {ask}", "'{text}'\n{ask}", "{ask} {Label}: {text}", "{Label}: {text}\n\nTask: {ask}",
)  # fmt: skip
HELD_FRAMES = (
    "{ask}\n---\n{text}\n---", "{ask}\n\n== {Label} ==\n{text}", "Here it comes: {text}\n{ask}", "{text} ### {ask}", "({text}) {ask}",
)  # fmt: skip
MARKS = words("*** ~~~ +++ ===== -- :: %% @@ __ ^^ ****** .... ~~ ** ++ //// || \u2014 \u2022 ____ == ++++ -----")
LEADS = words(
    "Here you go|This is [it/what I have/what we got/what came in/what arrived/the original]|"
    "[I/We] [received/got/read/heard/found] this|It [reads/goes/says]|The {label} [reads/goes/says/is this/follows]|"
    "Consider[ this/ the {label}/]|Now|See [below/here]|Below|Below is the {label}|As follows|Quote|Read this[ {label}/]|"
    "[A/The] {label} [from my inbox/on my desk/in our files/of today/by a colleague/of a customer]|Somebody [wrote/said/sent this]|"
    "What [was said/I was told/it says]|Given|Given this {label}|Take this[ {label}/]|For reference|"
    "[My/Our/The user's/The whole/The full/The raw] {label}|Start of {label}|user|"
    "User|FYI|Context|Background|Work with this|Use this|What follows is the {label}|"
    "The {label} [in question/to read/to work on]|My colleague writes|On the phone I heard|From the {label}|Attached|Enclosed|"
    "Pasted|Copied from [a {label}/the {label}/somewhere]|Today's {label}|Next {label}|"
    "[Look at/Listen to/Study/Have a look at] this|Then there is this|That is what I mean|[Next/First/Last] one|Fwd|Re|Verbatim|"
    "In full|The wording is|OK|Well|So|Hi|Hello|Hey",
    "|",
)
ENDS_OF_LEADS = (":", ":", ":", ":", ":", " -", " =>", " ->", " =", "...", ".", ",", ";")
QUOTES = (
    ('"', '"'), ("\u201c", "\u201d"), ("\u2018", "\u2019"), ("\u00ab", "\u00bb"), ("\u201e", "\u201c"), ("<", ">"), ("[", "]"),
    ("{", "}"), ("`", "`"), ("'", "'"), ("*", "*"), ("_", "_"), ("/", "/"), ("|", "|"),
)  # fmt: skip
LEADS_OF_ASKS = words(
    "Task|Question|Request|To do|Instruction|Instructions|Job|Your job|Your turn|What I want|Now|Then|And now|Goal|Prompt|Command|"
    "System|Order|What to do|Do this|Next|Assignment|Wanted|Query|Problem|Objective|Exercise|TODO|Q|"
    "The task|Rule|Work order|Please|So",
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
