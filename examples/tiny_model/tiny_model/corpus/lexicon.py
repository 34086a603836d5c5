"""Word lists of the training corpus. The words of the `HELD_*` lists are for evaluation only: training never draws them.

`spelling` alters the words of every list to make new ones, so a list that is drawn from nowhere else, or a word added to any, changes
the documents of a seed.
"""

from tiny_model.corpus.corpus_data import blocks_of, sections_of

templates = sections_of("lexicon")


def words(text: str, separator: str | None = None) -> tuple[str, ...]:
    """The words of a list that is written as one string."""
    return tuple(part.strip() for part in text.split(separator))


def lines(text: str) -> tuple[str, ...]:
    """The lines of a text, without the empty ones around it."""
    return words(text.strip(), "\n")


more = blocks_of("words")


def further(name: str) -> tuple[str, ...]:
    """The words of a list of words.txt; `|` parts them."""
    return words("|".join(more[name]), "|")


FIRST_NAMES = words(templates["FIRST_NAMES"]) + further("first_names")
HELD_FIRST_NAMES = words(templates["HELD_FIRST_NAMES"])
FAMILY_NAMES = words(templates["FAMILY_NAMES"]) + further("family_names")
HELD_FAMILY_NAMES = words(templates["HELD_FAMILY_NAMES"])
CITIES = words(templates["CITIES"]) + further("cities")
HELD_CITIES = words(templates["HELD_CITIES"])
PLACE_FIRST = words(templates["PLACE_FIRST"])
PLACE_LAST = words(templates["PLACE_LAST"])
COLORS = words("red blue green black white yellow brown gray orange purple")
ADJECTIVES = words(templates["ADJECTIVES"]) + further("adjectives")
ITEMS = words(templates["ITEMS"]) + further("items")
HELD_ITEMS = words(templates["HELD_ITEMS"])
LONG_ITEMS = words(
    templates["LONG_ITEMS"],
    "|",
) + further("long_items")
HELD_LONG_ITEMS = words("velvet curtain|waffle iron|yoga mat|salt mill|ironing board|piggy bank|door mat", "|")
MONTHS = words("January February March April May June July August September October November December")
DAYS = words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
EVENTS = words(
    templates["EVENTS"],
    "|",
) + further("events")
HELD_EVENTS = words("masquerade|retreat|bonfire|symposium|regatta|debate night|carnival|potluck", "|")
VENUES = words(
    templates["VENUES"],
    "|",
) + further("venues")
HELD_VENUES = words("planetarium|greenhouse|lighthouse|boathouse|monastery|aquarium|ballroom|observatory", "|")
JOBS = words(
    templates["JOBS"],
    "|",
) + further("jobs")
HELD_JOBS = words(
    templates["HELD_JOBS"],
    "|",
)
HOBBIES = words(
    templates["HOBBIES"],
    "|",
) + further("hobbies")
HELD_HOBBIES = words(
    templates["HELD_HOBBIES"],
    "|",
)
DEVICES = words(templates["DEVICES"]) + further("devices")
HELD_DEVICES = words("turntable shredder smartwatch turnstile dehumidifier plotter defibrillator oscilloscope")
PROBLEMS = words(
    templates["PROBLEMS"],
    "|",
) + further("problems")
HELD_PROBLEMS = words(templates["HELD_PROBLEMS"], "|")
DISHES = words(templates["DISHES"]) + further("dishes")
HELD_DISHES = words(templates["HELD_DISHES"])
INGREDIENTS = words(templates["INGREDIENTS"]) + further("ingredients")
HELD_INGREDIENTS = words(templates["HELD_INGREDIENTS"])
ANIMALS = words(templates["ANIMALS"])
THINGS = words("apples coins books cards stones shells marbles stamps pencils cookies")
MATERIALS = words(templates["MATERIALS"]) + further("materials")
CURRENCIES = words("dollars euros pounds francs yen crowns pesos rupees")
DEPARTMENTS = words(templates["DEPARTMENTS"], "|") + further("departments")
SKILLS = words(
    templates["SKILLS"],
    "|",
) + further("skills")
SPORTS = words("football basketball hockey tennis volleyball handball rugby baseball cricket badminton") + further(
    "sports"
)
TEAM_WORDS = words(templates["TEAM_WORDS"]) + further("team_words")
GENRES = words(templates["GENRES"], "|") + further("genres")
COMPANY_LAST = words(templates["COMPANY_LAST"]) + further("company_last")
STREET_LAST = words("Street Avenue Road Lane Drive Court Way Square Boulevard Alley Place Terrace")
CONDITIONS = words(
    templates["CONDITIONS"],
    "|",
) + further("conditions")
SYMPTOMS = words(
    templates["SYMPTOMS"],
    "|",
) + further("symptoms")
MEDICINES = words(templates["MEDICINES"]) + further("medicines")
TITLE_WORDS = words(templates["TITLE_WORDS"]) + further("title_words")
