"""The dialects of JSON Schema: their keywords, and the detection of the dialect of a schema.

Five drafts are supported. A schema without `$schema` is read as 2020-12, unless it uses a form that only an older draft defines (an array
as `items`, `dependencies` with arrays, a boolean `exclusiveMinimum`); then it is read as a draft that defines it.

Source: JSON Schema Core 2020-12, sections 8.1 (`$schema`, `$vocabulary`) and 9.1; the meta-schemas of the five drafts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rtlang_grammars.schema.reading.values import Json, JsonType, type_of
from rtlang_grammars.spec.errors import GrammarError


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SCHEMA_KEYWORDS = _words(
    "additionalItems additionalProperties contains contentSchema else if items not propertyNames then unevaluatedItems "
    "unevaluatedProperties"
)
"""Keywords whose value is a schema."""
LIST_KEYWORDS = _words("allOf anyOf items oneOf prefixItems")
"""Keywords whose value may be an array of schemas."""
MAP_KEYWORDS = _words("$defs definitions dependencies dependentSchemas patternProperties properties")
"""Keywords whose value is an object of schemas."""
ANNOTATIONS = _words(
    "$anchor $comment $defs $dynamicAnchor $id $recursiveAnchor $schema $vocabulary contentEncoding contentMediaType "
    "contentSchema default definitions deprecated description examples id readOnly title writeOnly"
)
"""Annotations and identifiers: keywords that assert nothing."""

PATTERN_DIALECT = "x-pattern-dialect"
"""A keyword of ours, in every draft: the dialect of the `pattern` beside it: `ecma`, `python`, `rust`, or `lark` for a whole grammar."""

_DRAFT_04 = _words(
    f"{PATTERN_DIALECT} "
    "$ref additionalItems additionalProperties allOf anyOf dependencies enum exclusiveMaximum exclusiveMinimum format items "
    "maxItems maxLength maxProperties maximum minItems minLength minProperties minimum multipleOf not oneOf pattern "
    "patternProperties properties required type uniqueItems"
)
_DRAFT_06 = _DRAFT_04 | {"const", "contains", "propertyNames"}
_DRAFT_07 = _DRAFT_06 | {"else", "if", "then"}
_2019_09 = _DRAFT_07 | _words(
    "$recursiveRef dependentRequired dependentSchemas maxContains minContains unevaluatedItems unevaluatedProperties"
)
_2020_12 = (_2019_09 - {"$recursiveRef", "additionalItems", "dependencies"}) | {"$dynamicRef", "prefixItems"}

_FORMATS_04 = _words("date-time email hostname idn-email ipv4 ipv6 regex uri")
_FORMATS_06 = _FORMATS_04 | _words("json-pointer uri-reference uri-template")
_FORMATS_07 = _FORMATS_06 | _words("date idn-hostname iri iri-reference relative-json-pointer time")
_FORMATS_2019_09 = _FORMATS_07 | _words("duration uuid")


@dataclass(frozen=True, slots=True)
class Dialect:
    """A dialect: one draft, or the draft restricted to some of its vocabularies.

    Attributes:
        name: of the draft: `draft-04`, `draft-06`, `draft-07`, `2019-09` or `2020-12`.
        keywords: its assertions, applicators and references.
        formats: the values of `format` that it defines; others are annotations.
        id_keyword: the keyword that identifies a schema.
        ref_hides_siblings: keywords adjacent to `$ref` are ignored (up to draft-07).
        id_fragments: `"$id": "#name"` defines an anchor, because the dialect has no `$anchor`.
        boolean_exclusive: `exclusiveMinimum` and `exclusiveMaximum` are booleans that modify `minimum` and `maximum`.
        integer_form: 1.0 is not an integer.
        contains_evaluates: items that `contains` matched count as evaluated for `unevaluatedItems`.
    """

    name: str
    keywords: frozenset[str]
    formats: frozenset[str]
    id_keyword: str = "$id"
    ref_hides_siblings: bool = False
    id_fragments: bool = False
    boolean_exclusive: bool = False
    integer_form: bool = False
    contains_evaluates: bool = False

    def without(self, keywords: frozenset[str]) -> Dialect:
        """Return the dialect without some of its keywords."""
        return replace(self, keywords=self.keywords - keywords) if keywords else self


DRAFT_04 = Dialect("draft-04", _DRAFT_04, _FORMATS_04, "id", True, True, True, True)
DRAFT_06 = Dialect("draft-06", _DRAFT_06, _FORMATS_06, ref_hides_siblings=True, id_fragments=True)
DRAFT_07 = Dialect("draft-07", _DRAFT_07, _FORMATS_07, ref_hides_siblings=True, id_fragments=True)
DRAFT_2019_09 = Dialect("2019-09", _2019_09, _FORMATS_2019_09)
DRAFT_2020_12 = Dialect("2020-12", _2020_12, _FORMATS_2019_09, contains_evaluates=True)

DIALECTS = {each.name: each for each in (DRAFT_04, DRAFT_06, DRAFT_07, DRAFT_2019_09, DRAFT_2020_12)}
"""The supported drafts by name."""

_BY_URI = {
    "json-schema.org/draft-04/schema": DRAFT_04,
    "json-schema.org/draft-06/schema": DRAFT_06,
    "json-schema.org/draft-07/schema": DRAFT_07,
    "json-schema.org/draft/2019-09/schema": DRAFT_2019_09,
    "json-schema.org/draft/2020-12/schema": DRAFT_2020_12,
}


@dataclass(slots=True)
class Survey:
    """Features of a document, found without telling subschemas from other values.

    Attributes:
        has_identifiers: the document may have an anchor, or an `$id` or `id` below the root.
        has_dynamic: it may have a dynamic or recursive anchor.
        has_shared: the same Python object occurs in several places, which parsed JSON never has.
        boolean_exclusive: `exclusiveMinimum` or `exclusiveMaximum` is a boolean somewhere (draft-04).
        legacy_forms: `items` is an array of schemas or `dependencies` holds an array somewhere (up to 2019-09).
        modern_keywords: a keyword of 2019-09 or 2020-12 occurs somewhere.
    """

    has_identifiers: bool = False
    has_dynamic: bool = False
    has_shared: bool = False
    boolean_exclusive: bool = False
    legacy_forms: bool = False
    modern_keywords: bool = False


_MAX_POINTER_TOKENS = 12
"""Of a pointer to a part that is nested too deeply."""
_IDENTIFIERS = frozenset({"$id", "id", "$anchor"})
_DYNAMIC = frozenset({"$dynamicAnchor", "$recursiveAnchor"})
_MODERN = frozenset(
    {"$defs", "$dynamicRef", "dependentRequired", "dependentSchemas", "prefixItems"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
_SURVEYED = _IDENTIFIERS | _DYNAMIC | _MODERN | {"exclusiveMinimum", "exclusiveMaximum", "items", "dependencies"}


def survey(document: Json, max_depth: int) -> Survey:
    """Scan a document for features that decide how it is indexed and which dialect it has.

    Values in `enum`, `const` and the like may be mistaken for schemas, which costs time but does not affect
    correctness.

    Args:
        max_depth: maximum nesting of arrays and objects; limited because later passes recurse.
    Raises:
        GrammarError: the document is nested more deeply than `max_depth`.
    """
    found = Survey()
    level: list[Json] = [document]
    objects: list[int] = []
    depth = 0
    while level:
        depth += 1
        if depth > max_depth:
            pointer = f"#{_pointer_toward(document, max_depth)}"
            raise GrammarError(f"nested too deeply: more than {max_depth} levels of arrays and objects", pointer)
        below: list[Json] = []
        for value in level:
            if isinstance(value, dict):
                objects.append(id(value))
                if not _SURVEYED.isdisjoint(value):
                    _survey_keywords(value, found, is_root=depth == 1)
                below += [each for each in value.values() if isinstance(each, dict | list)]
            elif isinstance(value, list):
                below += [each for each in value if isinstance(each, dict | list)]
        level = below
    found.has_shared = len(set(objects)) < len(objects)
    return found


def _pointer_toward(document: Json, depth: int) -> str:
    """A pointer to a part that has arrays and objects more than `depth` levels below the document; of its tokens the first ones."""
    pending: list[tuple[Json, tuple[str | int, ...], int]] = [(document, (), 1)]
    while True:
        value, tokens, level = pending.pop()
        if level > depth:
            return "".join(f"/{escape(str(token))}" for token in tokens)
        for token, each in value.items() if isinstance(value, dict) else enumerate(value):  # type: ignore[arg-type]
            if isinstance(each, dict | list):
                pending.append((each, (*tokens, token)[:_MAX_POINTER_TOKENS], level + 1))


def _survey_keywords(value: dict[str, Json], found: Survey, *, is_root: bool) -> None:
    if is_root:
        found.has_identifiers |= "$anchor" in value or any("#" in str(value.get(key)) for key in ("$id", "id"))
    elif any(isinstance(value.get(key), str) for key in _IDENTIFIERS):
        found.has_identifiers = True
    if not _DYNAMIC.isdisjoint(value):
        found.has_dynamic = found.has_identifiers = True
    if isinstance(value.get("exclusiveMinimum"), bool) or isinstance(value.get("exclusiveMaximum"), bool):
        found.boolean_exclusive = True
    items = value.get("items")
    if isinstance(items, list) and all(isinstance(item, dict | bool) for item in items):
        found.legacy_forms = True
    dependencies = value.get("dependencies")
    if isinstance(dependencies, dict) and any(isinstance(item, list) for item in dependencies.values()):
        found.legacy_forms = True
    if not _MODERN.isdisjoint(value):
        found.modern_keywords = True


def detect_dialect(document: Json, found: Survey, default: str | None = None) -> Dialect:
    """Return the dialect of a document.

    Args:
        found: the survey of the document.
        default: name of the dialect of a document without `$schema`; None means to detect it from the survey.
    Raises:
        GrammarError: `$schema` or `default` names an unknown dialect.
    """
    uri = document.get("$schema") if isinstance(document, dict) else None
    known = dialect_by_uri(uri, "#", document) if uri is not None else None
    if known is not None:
        return known
    if default is not None:
        if default not in DIALECTS:
            raise GrammarError(f"default_dialect = {default!r}: unknown dialect; expected one of {', '.join(DIALECTS)}")
        return DIALECTS[default]
    if found.modern_keywords:
        return DRAFT_2020_12
    if found.boolean_exclusive:
        return DRAFT_04
    # 2019-09 defines the array form of `items` and `dependencies`, but does not ignore keywords adjacent to $ref
    return _LEGACY_FORMS if found.legacy_forms else DRAFT_2020_12


_LEGACY_FORMS = DRAFT_2019_09


def dialect_by_uri(uri: Json, pointer: str, document: Json = None) -> Dialect | None:
    """Return the dialect that `$schema` names; None for an unversioned or unreleased json-schema.org URI.

    Args:
        uri: the value of `$schema`.
        pointer: location of the schema, for errors.
        document: searched for custom meta-schemas, which must be under `$defs` or `definitions` with this `$id`.
    Raises:
        GrammarError: the value is not a string, or names an unknown dialect.
    """
    if not isinstance(uri, str):
        raise invalid_value(uri, "a string", "$schema", pointer)
    name = uri.strip().rstrip("#").removeprefix("https://").removeprefix("http://").rstrip("/")
    dialect = _BY_URI.get(name)
    if dialect is None and (not name or name.startswith("json-schema.org/")):
        return None  # `json-schema.org/schema`, mistyped and unreleased drafts: detected from their features instead
    if dialect is not None:
        return dialect
    for keyword in ("$defs", "definitions"):
        schemas = document.get(keyword) if isinstance(document, dict) else None
        for each in schemas.values() if isinstance(schemas, dict) else ():
            if isinstance(each, dict) and each.get("$id") == uri:
                return _custom_dialect(each, pointer)
    raise GrammarError(
        f"$schema = {uri!r}: unknown dialect; expected one of {', '.join(f'http://{known}' for known in _BY_URI)}, "
        "or the $id of a meta-schema under $defs",
        pointer,
    )


_VOCABULARIES = {
    "applicator": SCHEMA_KEYWORDS - {"contentSchema", "unevaluatedItems", "unevaluatedProperties"}
    | LIST_KEYWORDS
    | _words("dependentSchemas patternProperties properties"),
    "unevaluated": _words("unevaluatedItems unevaluatedProperties"),
    "validation": _words(
        "const dependentRequired enum exclusiveMaximum exclusiveMinimum maxContains maxItems maxLength maxProperties maximum minContains "
        f"minItems minLength minProperties minimum multipleOf pattern required type uniqueItems {PATTERN_DIALECT}"
    ),
    "format": _words("format"),
}
"""Assertions and applicators by vocabulary, named by the last segment of its URI."""
_NO_ASSERTIONS = _words("core meta-data content")


def _custom_dialect(meta_schema: dict[str, Json], pointer: str) -> Dialect:
    """Return the dialect that a meta-schema describes: the dialect of its own `$schema`, without the vocabularies that it does not list.

    Source: JSON Schema Core 2020-12, section 8.1.2 (`$vocabulary`).
    """
    base = (dialect_by_uri(meta_schema["$schema"], pointer) if "$schema" in meta_schema else None) or DRAFT_2020_12
    named = meta_schema.get("$vocabulary")
    if named is None:
        return base
    if not isinstance(named, dict):
        raise invalid_value(named, "an object of booleans", "$vocabulary", pointer)
    prefix = f"json-schema.org/draft/{base.name}/vocab/"
    known = {"applicator", "unevaluated"} if base is DRAFT_2019_09 else {"applicator"}
    found: set[str] = set()
    for uri, is_required in named.items():
        vocabulary = uri.removeprefix("https://").removeprefix("http://")
        name = vocabulary.removeprefix(prefix).removesuffix("-annotation").removesuffix("-assertion")
        if vocabulary.startswith(prefix) and (name in _VOCABULARIES or name in _NO_ASSERTIONS):
            found |= known if name == "applicator" else {name}
        elif is_required is not False:
            raise GrammarError(
                f"$vocabulary requires the unknown vocabulary {uri!r}; expected one of {base.name}; others "
                "are allowed only with the value false",
                pointer,
            )
    missing = [keywords for name, keywords in _VOCABULARIES.items() if name not in found]
    return base.without(frozenset().union(*missing))


def escape(token: str) -> str:
    """Escape one reference token of a JSON pointer (RFC 6901, section 3)."""
    return token.replace("~", "~0").replace("/", "~1")


def unescape(token: str) -> str:
    """The inverse of `escape`."""
    return token.replace("~1", "/").replace("~0", "~")


def invalid_value(value: Json, wanted: str, keyword: str, pointer: str) -> GrammarError:
    """Return the error for a keyword whose value is not allowed.

    Args:
        value: the value; arrays and objects are named by their type, because they may be large.
        wanted: the allowed values as a noun phrase, such as "a string".
        pointer: location of the schema that holds the keyword.
    """
    kind = type_of(value)
    if kind in (JsonType.ARRAY, JsonType.OBJECT):
        given = f"an {kind.name.lower()}"
    elif kind is JsonType.STRING:
        given = f"the string {str(value)[:40]!r}"
    elif isinstance(value, int) and value.bit_length() > 128:  # Python refuses to write integers of thousands of digits
        given = "an integer of more than 38 digits"
    else:
        given = "null" if value is None else str(value)[:40].lower()
    return GrammarError(f"{keyword} must be {wanted}, not {given}", pointer)
