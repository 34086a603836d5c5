"""Random words of very different letter statistics, so that copying a word cannot lean on knowing it."""

import random
from collections.abc import Sequence

from tiny_model.corpus import lexicon
from tiny_model.corpus.lexicon import words

# Onsets, nuclei and codas of invented styles of speech; an empty part is written "-".
_STYLES: tuple[tuple[str, str, str], ...] = (
    (
        "b c d f g h j k l m n p r s t v w z y br cr dr st tr gr fl pl sh th ch kl sl sk qu",
        "a e i o u ai ea ou ia ee oo",
        "n r l s t m ck nd rt x ng - - - -",
    ),
    (
        "b v d z k l m n p s t zh sh ch vr zd sv dr kr pr st vl gr tr mil bog",
        "a e i o u ya ye",
        "v k n sk ch r l m j - - nsky vic slav",
    ),
    (
        "k s t n h m y r w g z d b sh ch ts ky ry",
        "a i u e o aa ou ei",
        "- - - - - n",
    ),
    (
        "k t p s h l m n r v j - -",
        "a ä e i o u aa ii uu ee yy ie uo ai öy",
        "- - - n s t l kk la lla nen ri",
    ),
    (
        "h k m n r s sh t th w y z dh kh gh j b d f l q",
        "a i u aa a a e",
        "- d f m n r b h l q ss dd",
    ),
    (
        "b c ch d f g j l ll m n p qu r s t v z br cr tr fr ñ h",
        "a e i o u ia ie ue io",
        "- - - n s r l z do ta",
    ),
    (
        "b bl br c ch cl cr d dr f fl fr g gl gr h j k kn l m n p ph pl pr qu r s sc sh sl sm sn sp st str sw t "
        "th tr tw v w wh wr",
        "a e i o u ai ay ea ee ie oa oo ou ow y",
        "b ck d dge ff g ght ld ll lt m mp n nch nd ng nk nt p pt r rd rk rn rt s sh sk ss st t tch th tt x zz -",
    ),
    (
        "sch b d f g h k l m n p pf r s st t v w z br kn schw",
        "a e i o u ei au eu ie ä ö ü",
        "ch ck ff l ll m n nd ng nn r rt s ss st t tz - burg mann",
    ),
    (
        "b c d f g gn j l m n p r s t v ch pr tr br",
        "a e i o u é è eau oi ou ai",
        "- - - n r lle tte sse x s nt l",
    ),
    (
        "m n k b d g t s w l z mb nd ng ny tsh kw",
        "a e i o u a o",
        "- - - - - la ni",
    ),
    (
        "x j q zh b p m f d t n l g k h c s r w y sh ch z",
        "a e i o u ao ai ei ou ia ie ui uo iao",
        "- - n ng ng -",
    ),
    (
        "c f g l m n p q s t v b r d ph th ps",
        "a e i o u ae io ia eo",
        "- us is um on as ax or ix ella elia otta ettia",
    ),
)
_TABLES: tuple[tuple[tuple[str, ...], ...], ...] = tuple(
    tuple(tuple("" if part == "-" else part for part in words(group)) for group in style) for style in _STYLES
)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_COMMON = "etaoinshrdlucmfwypvbgkeaioulnrst"
_ACCENTS = {"a": "áàäâåã", "e": "éèêë", "i": "íïî", "o": "óöôøõ", "u": "üúû", "n": "ñ", "c": "ç", "s": "š", "z": "ž"}


def _successors(seed: int) -> dict[str, str]:
    source = random.Random(seed)
    return {letter: "".join(source.choices(_COMMON if source.random() < 0.6 else _LETTERS, k=6)) for letter in _LETTERS}


_MARKOV = tuple(_successors(seed) for seed in range(32))

# Parts of held-out phrases that are ordinary words elsewhere.
_COMMON_PARTS = frozenset(
    words(
        "night making curtain iron mat yoga machine instructor water time wrong language update jams twice day displays leaks "
        "random idle hums when the refuses flickers salt mill board bank door candle"
    )
)
HELD = (
    frozenset(
        word.lower()
        for name, group in vars(lexicon).items()
        if name.startswith("HELD_")
        for phrase in group
        for word in (phrase, *phrase.split(), *phrase.split("-"))
        if len(word) > 2
    )
    - _COMMON_PARTS
)
_REAL: tuple[str, ...] = tuple(
    sorted(
        {
            word.lower()
            for name, group in vars(lexicon).items()
            if name.isupper() and not name.startswith("HELD_")
            for phrase in group
            for word in phrase.split()
            if word.isalpha() and word.isascii() and len(word) > 3 and word.lower() not in HELD
        }
    )
)


def _syllables(source: random.Random, table: Sequence[Sequence[str]]) -> str:
    chance = source.random
    onsets, nuclei, codas = table
    word = ""
    for _ in range((1, 2, 2, 2, 3, 3)[int(chance() * 6)]):
        word += onsets[int(chance() * len(onsets))] + nuclei[int(chance() * len(nuclei))]
        if chance() < 0.25:
            word += codas[int(chance() * len(codas))] if chance() < 0.5 else ""
    return word + codas[int(chance() * len(codas))]


def _walk(source: random.Random) -> str:
    chance = source.random
    table = _MARKOV[int(chance() * len(_MARKOV))]
    letter = _LETTERS[int(chance() * 26)]
    word = letter
    for _ in range(2 + int(chance() * 7)):
        letter = table[letter][int(chance() * 6)]
        word += letter
    return word


def _uniform(source: random.Random) -> str:
    chance = source.random
    return "".join([_LETTERS[int(chance() * 26)] for _ in range(3 + int(chance() * 6))])


def _altered(source: random.Random) -> str:
    """A real word with a letter changed, doubled, dropped or two swapped; or the halves of two real words."""
    chance = source.random
    word = _REAL[int(chance() * len(_REAL))]
    at, letter = int(chance() * len(word)), _COMMON[int(chance() * len(_COMMON))]
    way = chance()
    if way < 0.45:
        other = _REAL[int(chance() * len(_REAL))]
        return word[: max(2, at)] + other[int(chance() * (len(other) - 2)) :]
    if way < 0.6:
        return word[:at] + letter + word[at + 1 :]
    if way < 0.75:
        return word[: at + 1] + word[at:]
    if way < 0.85:
        return word[:at] + letter + word[at:]
    return word[:at] + word[at + 1 :]


def plain_word(source: random.Random) -> str:
    """A made-up word of two or more letters a-z, never one of the held-out words."""
    while True:
        way = source.random()
        if way < 0.55:
            table = _TABLES[int(source.random() * len(_TABLES))]
            word = _syllables(source, table)
        elif way < 0.88:
            word = _altered(source)
        elif way < 0.96:
            word = _walk(source)
        else:
            word = _uniform(source)
        if len(word) > 12:
            word = word[:12]
        if len(word) > 1 and word.isascii() and word not in HELD:
            return word


def accented(source: random.Random, word: str) -> str:
    """The word with one letter given an accent, where one of its letters can have one."""
    places = [index for index, letter in enumerate(word) if letter in _ACCENTS]
    if not places:
        return word
    at = places[int(source.random() * len(places))]
    options = _ACCENTS[word[at]]
    return word[:at] + options[int(source.random() * len(options))] + word[at + 1 :]
