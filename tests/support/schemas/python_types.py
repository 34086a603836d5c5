"""Python types of all of pydantic's kinds, and values that pydantic itself writes."""

from __future__ import annotations

import dataclasses
import enum
import fractions
import importlib.util
import ipaddress
import pathlib
import re
import typing
import uuid
import zoneinfo
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, TypeVar

import pydantic
import typing_extensions as te
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    RootModel,
    Strict,
    StringConstraints,
    Tag,
    UrlConstraints,
    WrapValidator,
    create_model,
)
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic_core import core_schema


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Unit(enum.StrEnum):
    METER = "m"
    INCH = "an inch"


class Mixed(enum.Enum):
    A = "a"
    B = 2
    C = 2.5
    D = None


class Ratio(float, enum.Enum):
    HALF = 0.5
    TWICE = 2.0


class Partly(enum.Enum):
    """A member whose value JSON cannot write."""

    PAIR = (1, 2)
    TEXT = "b"


class Rights(enum.IntFlag):
    READ = 1
    WRITE = 2


KEYS: list[Any] = [
    int,
    float,
    Decimal,
    bool,
    date,
    time,
    datetime,
    timedelta,
    uuid.UUID,
    complex,
    bytes,
    fractions.Fraction,
]
KEYS += [
    Level,
    Unit,
    Mixed,
    Ratio,
    Rights,
    Literal[1, "a", True],
    Literal["x", "y"],
    int | None,
    int | bool,
    int | str,
    Level | date,
]
KEYS += [
    pydantic.UUID4,
    pydantic.AnyUrl,
    pydantic.PositiveInt,
    pydantic.NonNegativeFloat,
    pydantic.FiniteFloat,
    pydantic.PastDate,
]
KEYS += [
    pydantic.AwareDatetime,
    pydantic.ByteSize,
    pydantic.StrictInt,
    pydantic.StrictStr,
    pydantic.StrictBool,
    pydantic.SecretStr,
]
KEYS += [pydantic.Base64Str, pydantic.Json[int], ipaddress.IPv4Address, ipaddress.IPv6Network, pathlib.Path]
KEYS += [
    Annotated[int, Field(ge=3, lt=2000)],
    Annotated[int, Field(gt=-5, multiple_of=3)],
    Annotated[float, Field(gt=0.5, lt=0.75)],
]
KEYS += [
    Annotated[Decimal, Field(max_digits=4, decimal_places=2)],
    Annotated[str, StringConstraints(pattern="^[a-z]{2}$")],
]
KEYS += [Annotated[str, StringConstraints(min_length=2, max_length=3)], Annotated[date, Field(ge=date(2024, 1, 1))]]
KEYS += [Annotated[str, StringConstraints(to_lower=True)]]
"""Types of keys of dicts."""

_PYDANTIC = """UUID1 UUID3 UUID4 UUID5 UUID6 UUID7 UUID8 IPvAnyAddress IPvAnyInterface IPvAnyNetwork Base64Bytes Base64Str Base64UrlBytes
Base64UrlStr ByteSize SecretStr SecretBytes PastDate FutureDate PastDatetime FutureDatetime AwareDatetime NaiveDatetime AnyUrl AnyHttpUrl
HttpUrl FileUrl FtpUrl WebsocketUrl PostgresDsn CockroachDsn AmqpDsn RedisDsn MongoDsn KafkaDsn NatsDsn MySQLDsn MariaDBDsn ClickHouseDsn
SnowflakeDsn StrictInt StrictFloat StrictBool StrictStr StrictBytes PositiveInt NegativeInt NonNegativeInt NonPositiveInt PositiveFloat
NegativeFloat NonNegativeFloat FiniteFloat Json EmailStr NameEmail"""
NAMED: list[Any] = [getattr(pydantic, name) for name in _PYDANTIC.split() if hasattr(pydantic, name)]
if importlib.util.find_spec("email_validator") is None:
    NAMED = [each for each in NAMED if each not in (pydantic.EmailStr, pydantic.NameEmail)]
NAMED += [
    int,
    float,
    str,
    bool,
    None,
    date,
    time,
    datetime,
    timedelta,
    Decimal,
    bytes,
    complex,
    uuid.UUID,
    pathlib.Path,
    Any,
]
NAMED += [fractions.Fraction, pathlib.PurePosixPath, re.Pattern, typing.Hashable, zoneinfo.ZoneInfo]
NAMED += [ipaddress.IPv4Address, ipaddress.IPv4Network, ipaddress.IPv4Interface]
NAMED += [ipaddress.IPv6Address, ipaddress.IPv6Network, ipaddress.IPv6Interface]
NAMED += [
    Level,
    Unit,
    Mixed,
    Ratio,
    Partly,
    Rights,
    Literal[1, "a", True, None],
    Literal[Unit.METER, Level.HIGH],
    Literal[b"ab", "c"],
]
"""Types by their own name."""

RUST = [
    r"(?i)^(yes|no)$",
    r"^(?P<year>[0-9]{2})$",
    r"\Aab\z",
    "^(?i:ab)c$",
    "^(?x) a b # c\n$",
    "(?s)^a.b$",
    "(?m)^ab$",
    "(?R)^a.$",
]
RUST += [
    "^[[:alpha:]]{2}$",
    "^[[:^digit:]x]+$",
    "^[a-z&&[^aeiou]]+$",
    r"^[\w--_]+$",
    "^[a-g~~b-h]+$",
    r"^\p{Greek}+$",
    r"^\pL\d$",
]
RUST += [
    r"^\x{61}b\u{63}$",
    r"^\d{3}$",
    r"^\w+$",
    r"^\s$",
    r"^a\b.c$",
    r"^(?-u:\w)+$",
    r"^[^\p{L}]$",
    "^(?U)a+$",
    r"\bfoo\b",
    "^a++$",
]
RUST += [r"^\<ab\>$", "^[]a]$", "^é[à-ü]$", "(?i)^straße$", "(?i)^[k-m]$", "b", r"^[\p{Lu}\p{Nd}]{3}$"]
PYTHON = [
    r"(?i)^(yes|no)$",
    r"^(?P<year>[0-9]{2})$",
    r"\Aab\Z",
    "^(?i:ab)c$",
    "(?x)^ a b # c\n$",
    "(?s)^a.b$",
    "(?m)^ab$",
    "abc",
]
PYTHON += ["^ab(?=c)cd$", "^(?!ab)[a-c]{2}$", r"^\d{3}$", r"^\w+$", "^ab$", r"(?a)^\w+$", "ab|cd", r"^\N{BULLET}$"]
"""Patterns in pydantic's two dialects."""


class Python(BaseModel):
    model_config = ConfigDict(regex_engine="python-re")


def _patterns() -> list[Any]:
    found: list[Any] = [Annotated[str, StringConstraints(pattern=each)] for each in RUST]
    found += [
        create_model("Model", __base__=Python, text=(Annotated[str, Field(pattern=each)], ...)) for each in PYTHON
    ]
    found += [Annotated[str, Field(pattern=re.compile("^ab.", re.IGNORECASE | re.DOTALL))]]
    found += [
        Annotated[str, StringConstraints(pattern="^a+$", max_length=3)],
        Annotated[str, StringConstraints(ascii_only=True)],
    ]
    found += [Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4)]]
    found += [Annotated[str, StringConstraints(strip_whitespace=True, pattern="^.{3}$")]]
    found += [Annotated[str, StringConstraints(to_upper=True, pattern="^[A-Z]+$")]]
    return found


PATTERNS = _patterns()
UTC = UTC

BOUNDED: list[Any] = [
    Annotated[int, Field(multiple_of=7, ge=10, le=1000)],
    Annotated[float, Field(ge=0, lt=1, multiple_of=0.1)],
    Annotated[float, Field(allow_inf_nan=False)],
    pydantic.condecimal(max_digits=5, decimal_places=2),
    pydantic.condecimal(gt=0, max_digits=3),
    pydantic.condecimal(ge=Decimal("0.1"), le=Decimal("0.35"), decimal_places=2),
    pydantic.condecimal(multiple_of=Decimal("0.25")),
    Annotated[bytes, Field(min_length=2, max_length=3)],
    Annotated[date, Field(ge=date(2023, 5, 17), le=date(2024, 3, 2))],
    Annotated[date, Field(gt=date(2023, 12, 31))],
    Annotated[datetime, Field(ge=datetime(2024, 2, 3, 4, 5, 6), lt=datetime(2024, 2, 3, 7))],
    Annotated[datetime, Field(ge=datetime(2024, 2, 3, 4, 5, 6, 7, tzinfo=UTC))],
    Annotated[time, Field(ge=time(9), lt=time(17, 30))],
    Annotated[timedelta, Field(ge=timedelta(minutes=5), le=timedelta(hours=2))],
    Annotated[timedelta, Field(gt=timedelta(0))],
    Annotated[timedelta, Field(lt=timedelta(0))],
    Annotated[timedelta, Field(gt=timedelta(days=1), lt=timedelta(days=1, seconds=3))],
    Annotated[fractions.Fraction, Field(ge=0, le=1)],
    Annotated[pydantic.HttpUrl, Field(max_length=20)],
    Annotated[pydantic.AnyUrl, UrlConstraints(allowed_schemes=["git"], host_required=True, max_length=30)],
    Annotated[pydantic.AnyUrl, UrlConstraints(host_required=True)],
    Annotated[pydantic.Base64Bytes, Field(min_length=2, max_length=4)],
    pydantic.Json[list[int]],
    pydantic.Json[dict[str, int]],
    pydantic.Json[list[date]],
    pydantic.Json[Any],
    pydantic.Json[Annotated[int, Field(gt=3, le=70)]],
    pydantic.Secret[date],
]

COLLECTIONS: list[Any] = [
    set[int],
    set[str],
    frozenset[Level],
    deque[int],
    tuple[int, ...],
    tuple[()],
    tuple[int, date],
    list,
    dict,
]
COLLECTIONS += [
    Counter[str],
    Counter[int],
    defaultdict[int, list[int]],
    OrderedDict[date, int],
    dict[str, dict[int, date]],
]
COLLECTIONS += [
    typing.Mapping[int, int],
    typing.Sequence[int],
    typing.Iterable[int],
    typing.AbstractSet[int],
    pydantic.JsonValue,
]
COLLECTIONS += [
    Annotated[set[int], Field(min_length=3, max_length=5)],
    Annotated[frozenset[Level], Field(min_length=2)],
]
COLLECTIONS += [
    Annotated[set[each], Field(min_length=2)]
    for each in (float, Decimal, uuid.UUID, datetime, int | bool, tuple[int, bool])
]
COLLECTIONS += [Annotated[set[Annotated[str, StringConstraints(strip_whitespace=True)]], Field(min_length=2)]]
COLLECTIONS += [
    Annotated[deque[date], Field(min_length=1, max_length=2)],
    Annotated[dict[Level, bool], Field(min_length=1)],
]
COLLECTIONS += [
    Annotated[dict[each, bool], Field(min_length=2, max_length=3)] for each in (int, float, Decimal, bool, date)
]
COLLECTIONS += [
    list[int | date | dict[int, int] | None],
    list[pydantic.OnErrorOmit[int]],
    tuple[int, *tuple[str, ...], bool],
]


class StrictModel(BaseModel):
    model_config = ConfigDict(strict=True)
    a: int
    b: float
    c: date
    d: Level
    e: dict[int, float]
    f: tuple[int, ...]
    g: set[str]
    h: uuid.UUID
    i: Decimal
    j: bytes
    k: timedelta


class StringModel(BaseModel):
    model_config = ConfigDict(str_min_length=2, str_max_length=5, str_strip_whitespace=True, str_to_lower=True)
    a: str
    b: Annotated[str, Field(pattern="^[a-z]+$")]


class Base64Model(BaseModel):
    model_config = ConfigDict(val_json_bytes="base64", ser_json_bytes="base64")
    a: bytes


class HexModel(BaseModel):
    model_config = ConfigDict(val_json_bytes="hex", ser_json_bytes="hex", ser_json_timedelta="float")
    a: Annotated[bytes, Field(min_length=1, max_length=2)]
    b: timedelta


class Aliased(BaseModel):
    a: int = Field(alias="x y")
    b: int = Field(validation_alias=AliasChoices(AliasPath("never", 0), "b1", "b2"))
    c: int = Field(validation_alias=AliasPath("deep", 1, "c"))
    d: int = Field(serialization_alias="dd")
    e: int = Field(5, validation_alias=AliasPath("deep", 0))
    f: str = Field("z", validation_alias=AliasChoices(AliasPath("q", "r"), AliasPath("q", "s")))
    g: int = Field(validation_alias=AliasPath("last", -1))


class AliasedAndNamed(Aliased):
    model_config = ConfigDict(populate_by_name=True, extra="forbid")


class Named(BaseModel):
    model_config = ConfigDict(validate_by_alias=False, validate_by_name=True)
    a: int = Field(alias="x")


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)
    my_field: int
    other: date


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int


class Dog(BaseModel):
    kind: Literal["dog", "wolf"] = "dog"
    name: str


class Bird(BaseModel):
    kind: Literal["bird"] = Field("bird", alias="type")
    wings: int


class Fish(BaseModel):
    kind: Literal["fish"] = Field("fish", alias="type")
    level: Literal[Level.LOW] = Level.LOW


class OneLevel(BaseModel):
    level: Literal[Level.LOW]


class OtherLevel(BaseModel):
    level: Literal[Level.HIGH] = Level.HIGH


class Pet(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None


class Plain(te.TypedDict):
    tag: Literal["plain"]
    x: int


class Rich(te.TypedDict, total=False):
    tag: te.Required[Literal["rich"]]
    y: te.ReadOnly[date]
    z: te.NotRequired[Annotated[int, Field(alias="zz")]]


class Strings(te.TypedDict, extra_items=int):
    a: str


class Point(NamedTuple):
    x: int
    y: str = "y"
    z: date = date(2024, 1, 1)


@dataclasses.dataclass
class Standard:
    a: int
    b: list[date] = dataclasses.field(default_factory=list)
    c: int = dataclasses.field(default=1, init=False)


@pydantic_dataclass
class Linked:
    a: int = Field(alias="A")
    b: Linked | None = None


Item = TypeVar("Item")


class Box(BaseModel, Generic[Item]):
    item: Item
    others: list[Item]


class Tree(BaseModel):
    level: Level
    below: list[Tree] = []


class Keyed(RootModel[dict[int, list[date]]]): ...


class OpenModel(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int] = Field(init=False)
    a: int


class Computed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    a: int

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def b(self) -> int:
        return self.a

    @pydantic.model_validator(mode="after")
    def same(self) -> Computed:
        return self


class OwnSchema:
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> core_schema.CoreSchema:
        inner = core_schema.dict_schema(core_schema.int_schema(), core_schema.date_schema())
        return core_schema.no_info_after_validator_function(lambda value: value, inner)


class OwnJsonSchema:
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(int)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> dict[str, Any]:
        return {"type": "integer"}


Nested = te.TypeAliasType("Nested", "dict[str, Nested] | list[Nested] | int | None")

MODELS: list[Any] = [
    StrictModel,
    StringModel,
    Base64Model,
    HexModel,
    Aliased,
    AliasedAndNamed,
    Named,
    Camel,
    Pet,
    Strings,
    Point,
]
MODELS += [
    Standard,
    Linked,
    Box[date],
    Box[Box[Level]],
    Tree,
    Keyed,
    OpenModel,
    Computed,
    OwnSchema,
    OwnJsonSchema,
    Nested,
]
MODELS += [Annotated[Cat | Dog, Field(discriminator="kind")], Annotated[Cat | Dog | None, Field(discriminator="kind")]]
MODELS += [
    Annotated[Bird | Fish, Field(discriminator="kind")],
    Annotated[OneLevel | OtherLevel, Field(discriminator="level")],
]
MODELS += [
    Annotated[Plain | Rich, Field(discriminator="tag")],
    Cat | Dog,
    Annotated[int | str, Field(union_mode="left_to_right")],
]
MODELS += [
    Annotated[
        Annotated[int, Tag("i")] | Annotated[str, Tag("s")], Discriminator(lambda v: "s" if isinstance(v, str) else "i")
    ]
]
MODELS += [
    NewType("Count", int),
    Annotated[int, BeforeValidator(lambda v: v)],
    Annotated[int, AfterValidator(lambda v: v + 1)],
]
MODELS += [
    Annotated[date, WrapValidator(lambda v, handler: handler(v))],
    Annotated[int, pydantic.WithJsonSchema({"type": "integer"})],
]
MODELS += [
    Annotated[int, PlainValidator(int, json_schema_input_type=int)],
    Annotated[Decimal, Strict()],
    pydantic.InstanceOf[str],
]

TYPES: list[Any] = (
    [dict[key, bool] for key in KEYS] + [list[each] for each in NAMED + PATTERNS + BOUNDED] + COLLECTIONS + MODELS
)
"""Types of all kinds."""

WRITTEN: list[tuple[Any, Any]] = [
    (dict[int, bool], {3: True, -40: False}),
    (dict[Level, int], {Level.LOW: 1}),
    (dict[date, int], {date(2024, 2, 29): 1}),
    (dict[uuid.UUID, int], {uuid.UUID(int=5): 1}),
    (dict[bool, int], {True: 1}),
    (dict[Decimal, int], {Decimal("1.5"): 1}),
    (dict[float, int], {1.5: 1}),
    (list[pydantic.UUID4], [uuid.uuid4()]),
    (list[pydantic.UUID7], [uuid.UUID("01890a5d-ac96-774b-bcce-b302099a8057")]),
    (list[ipaddress.IPv4Network], [ipaddress.IPv4Network("10.32.0.0/11")]),
    (list[ipaddress.IPv6Address], [ipaddress.IPv6Address("2001:db8::1"), ipaddress.IPv6Address("::")]),
    (list[ipaddress.IPv6Network], [ipaddress.IPv6Network("2001:db8::/32"), ipaddress.IPv6Network("fe80::/12")]),
    (list[ipaddress.IPv6Interface], [ipaddress.IPv6Interface("::1/128")]),
    (list[pydantic.Base64Bytes], [b"\x00\xff\x10"]),
    (Base64Model, Base64Model(a=b"AA==")),
    (list[complex], [1 + 2j]),
    (list[fractions.Fraction], [fractions.Fraction(1, 3)]),
    (list[zoneinfo.ZoneInfo], [zoneinfo.ZoneInfo("Europe/Berlin")]),
    (list[datetime], [datetime(2024, 5, 17, 9, 30, tzinfo=UTC), datetime(2024, 5, 17, 9, 30, 1, 250000)]),
    (list[timedelta], [timedelta(days=3, hours=12), timedelta(seconds=1.5)]),
    (list[pydantic.HttpUrl], [pydantic.HttpUrl("https://example.org/a?b=c#d")]),
    (Point, Point(1, "b", date(2024, 1, 2))),
    (Tree, Tree(level=Level.LOW, below=[Tree(level=Level.HIGH)])),
    (Annotated[Cat | Dog, Field(discriminator="kind")], Dog(name="Rex")),
]
"""Values, of which pydantic's texts must be allowed."""

REFUSED: list[tuple[Any, str]] = [
    (type[int], "a class cannot be read"),
    (re.Pattern[bytes], "patterns of bytes"),
    (list[type[BaseModel]], "a class cannot be read"),
    (
        create_model("Model", table=(dict[tuple[int, int], int], ...)),
        r"table\.\[key\]: names of JSON objects cannot be read",
    ),
    (create_model("Model", table=(dict[None, int], ...)), r"table\.\[key\]: no name of a JSON object is read as None"),
    (create_model("Model", inner=(list[pydantic.FilePath], ...)), "inner: whether the file exists"),
    (create_model("Model", place=(pydantic.DirectoryPath, ...)), "place: whether the directory exists"),
    (create_model("Model", place=(pydantic.NewPath, ...)), "place: whether the path is new"),
    (create_model("Model", code=(pydantic.ImportString, ...)), "code: whether the name can be imported"),
    (create_model("Model", tree=(pydantic.Json[Tree], ...)), "tree: a recursive type"),
    (
        create_model("Model", day=(Annotated[date, Field(ge=date(2024, 1, 2), lt=date(2024, 1, 2))], ...)),
        "day: no date is within",
    ),
    (list[typing.Callable], "Callable"),
    (
        create_model("Model", __base__=Python, text=(Annotated[str, Field(pattern=r"(a)\1")], ...)),
        "text: pattern = .*backreferences",
    ),
    (create_model("Model", kind=(Literal[b"a"], ...)), "kind: no value of it can be read from JSON"),
    (Annotated[Literal[1], Strict()], "Unable to apply constraint 'strict'"),
]
"""Types that no text can serve, and what the error says."""
