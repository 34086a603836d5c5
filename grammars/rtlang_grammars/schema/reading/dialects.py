"""The dialects of JSON Schema: which keywords assert what, and how a schema without `$schema` is read.

Five drafts are known. A schema that names none is 2020-12, as validators take it, unless it uses a form that only an older
draft gives a meaning (`items` as a list, `dependencies`, a boolean `exclusiveMinimum`): then it is read as its author meant it.
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
"""Keywords whose value may be a list of schemas."""
MAP_KEYWORDS = _words("$defs definitions dependencies dependentSchemas patternProperties properties")
"""Keywords whose value is an object of schemas."""
ANNOTATIONS = _words(
    "$anchor $comment $defs $dynamicAnchor $id $recursiveAnchor $schema $vocabulary contentEncoding contentMediaType "
    "contentSchema default definitions deprecated description examples id readOnly title writeOnly"
)
"""Keywords that assert nothing."""

_DRAFT_04 = _words(
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
    """One draft.

    Attributes:
        name: `draft-04` ... `draft-07`, `2019-09`, `2020-12`.
        keywords: those that assert something.
        formats: values of `format` that it defines; others are annotations.
        id_keyword: the one that names a schema.
        ref_hides_siblings: keywords beside `$ref` have no meaning.
        id_fragments: `"$id": "#name"` is an anchor (there is no `$anchor`).
        boolean_exclusive: `exclusiveMinimum` and `exclusiveMaximum` are flags.
        integer_form: 1.0 is no integer.
        contains_evaluates: what `contains` matched counts as evaluated.
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
        """The same dialect with some keywords asserting nothing."""
        return replace(self, keywords=self.keywords - keywords) if keywords else self


DRAFT_04 = Dialect("draft-04", _DRAFT_04, _FORMATS_04, "id", True, True, True, True)
DRAFT_06 = Dialect("draft-06", _DRAFT_06, _FORMATS_06, ref_hides_siblings=True, id_fragments=True)
DRAFT_07 = Dialect("draft-07", _DRAFT_07, _FORMATS_07, ref_hides_siblings=True, id_fragments=True)
DRAFT_2019_09 = Dialect("2019-09", _2019_09, _FORMATS_2019_09)
DRAFT_2020_12 = Dialect("2020-12", _2020_12, _FORMATS_2019_09, contains_evaluates=True)

DIALECTS = {each.name: each for each in (DRAFT_04, DRAFT_06, DRAFT_07, DRAFT_2019_09, DRAFT_2020_12)}
"""By name."""

_BY_URI = {
    "json-schema.org/draft-04/schema": DRAFT_04,
    "json-schema.org/draft-06/schema": DRAFT_06,
    "json-schema.org/draft-07/schema": DRAFT_07,
    "json-schema.org/draft/2019-09/schema": DRAFT_2019_09,
    "json-schema.org/draft/2020-12/schema": DRAFT_2020_12,
}


@dataclass(slots=True)
class Survey:
    """What one quick look over a document found, before anything in it is understood.

    Attributes:
        has_identifiers: something below the root may be an `$id`, `id` or anchor.
        has_dynamic: there may be a dynamic or recursive anchor.
        has_shared: some object stands in several places, as parsed JSON never has it.
        boolean_exclusive, old_forms, modern: forms that only some drafts know.
    """

    has_identifiers: bool = False
    has_dynamic: bool = False
    has_shared: bool = False
    boolean_exclusive: bool = False
    old_forms: bool = False
    modern: bool = False


_IDENTIFIERS = frozenset({"$id", "id", "$anchor"})
_DYNAMIC = frozenset({"$dynamicAnchor", "$recursiveAnchor"})
_MODERN = frozenset(
    {"$defs", "$dynamicRef", "dependentRequired", "dependentSchemas", "prefixItems"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
_TELLING = _IDENTIFIERS | _DYNAMIC | _MODERN | {"exclusiveMinimum", "exclusiveMaximum", "items", "dependencies"}


def survey(document: Json, max_depth: int) -> Survey:
    """Look over a document; values in `enum` and the like may be mistaken for schemas, which only costs time.

    Raises:
        GrammarError: more than `max_depth` arrays and objects one inside the other, too many for recursion.
    """
    found = Survey()
    level: list[Json] = [document]
    objects: list[int] = []
    depth = 0
    while level:
        depth += 1
        if depth > max_depth:
            raise GrammarError(f"nested too deeply: more than {max_depth} levels", "#")
        below: list[Json] = []
        for value in level:
            if isinstance(value, dict):
                objects.append(id(value))
                if not _TELLING.isdisjoint(value):
                    _survey_keywords(value, found, is_root=depth == 1)
                below += [each for each in value.values() if isinstance(each, dict | list)]
            elif isinstance(value, list):
                below += [each for each in value if isinstance(each, dict | list)]
        level = below
    found.has_shared = len(set(objects)) < len(objects)
    return found


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
        found.old_forms = True
    dependencies = value.get("dependencies")
    if isinstance(dependencies, dict) and any(isinstance(item, list) for item in dependencies.values()):
        found.old_forms = True
    if not _MODERN.isdisjoint(value):
        found.modern = True


def detect(document: Json, found: Survey, default: str | None = None) -> Dialect:
    """The dialect of a document.

    Args:
        default: name of the dialect of a document that says nothing; None to judge by the forms it uses.
    Raises:
        GrammarError: `$schema` or `default` names a dialect that is not known.
    """
    uri = document.get("$schema") if isinstance(document, dict) else None
    known = by_uri(uri, "#", document) if uri is not None else None
    if known is not None:
        return known
    if default is not None:
        if default not in DIALECTS:
            raise GrammarError(f"unknown dialect {default!r}; known are {', '.join(DIALECTS)}")
        return DIALECTS[default]
    if found.modern:
        return DRAFT_2020_12
    if found.boolean_exclusive:
        return DRAFT_04
    # the tuple form and `dependencies` of the older drafts, without their habit of hiding what stands beside a $ref
    return _OLD_FORMS if found.old_forms else DRAFT_2020_12


_OLD_FORMS = DRAFT_2019_09


def by_uri(uri: Json, pointer: str, document: Json = None) -> Dialect | None:
    """The dialect that `$schema` names; None where it names none in particular.

    Args:
        document: where meta-schemas of one's own are looked for, under $defs with their $id.
    Raises:
        GrammarError: not a string, or not a known dialect; with the pointer.
    """
    if not isinstance(uri, str):
        raise GrammarError(f"$schema must be a string, not {type_of(uri).name.lower()}", pointer)
    name = uri.strip().rstrip("#").removeprefix("https://").removeprefix("http://").rstrip("/")
    dialect = _BY_URI.get(name)
    if dialect is None and (not name or name.startswith("json-schema.org/")):
        return None  # `json-schema.org/schema`, mistyped and unreleased drafts: judged by what they use
    if dialect is not None:
        return dialect
    for keyword in ("$defs", "definitions"):
        schemas = document.get(keyword) if isinstance(document, dict) else None
        for each in schemas.values() if isinstance(schemas, dict) else ():
            if isinstance(each, dict) and each.get("$id") == uri:
                return _own_dialect(each, pointer)
    raise GrammarError(
        f"unknown dialect {uri!r}; known are {', '.join(f'http://{known}' for known in _BY_URI)}, and a meta-schema of your own "
        "under $defs with this $id",
        pointer,
    )


_VOCABULARIES = {
    "applicator": SCHEMA_KEYWORDS - {"contentSchema", "unevaluatedItems", "unevaluatedProperties"}
    | LIST_KEYWORDS
    | _words("dependentSchemas patternProperties properties"),
    "unevaluated": _words("unevaluatedItems unevaluatedProperties"),
    "validation": _words(
        "const dependentRequired enum exclusiveMaximum exclusiveMinimum maxContains maxItems maxLength maxProperties maximum minContains "
        "minItems minLength minProperties minimum multipleOf pattern required type uniqueItems"
    ),
    "format": _words("format"),
}
"""Keywords that assert something, by the last part of the URI of the vocabulary that has them."""
_NO_ASSERTIONS = _words("core meta-data content")


def _own_dialect(meta_schema: dict[str, Json], pointer: str) -> Dialect:
    """The dialect of a meta-schema: that of its own `$schema`, without the vocabularies that it does not name."""
    base = (by_uri(meta_schema["$schema"], pointer) if "$schema" in meta_schema else None) or DRAFT_2020_12
    named = meta_schema.get("$vocabulary")
    if named is None:
        return base
    if not isinstance(named, dict):
        raise expected(named, "an object", "$vocabulary", pointer)
    begin = f"json-schema.org/draft/{base.name}/vocab/"
    known = {"applicator", "unevaluated"} if base is DRAFT_2019_09 else {"applicator"}
    found: set[str] = set()
    for uri, is_required in named.items():
        vocabulary = uri.removeprefix("https://").removeprefix("http://")
        name = vocabulary.removeprefix(begin).removesuffix("-annotation").removesuffix("-assertion")
        if vocabulary.startswith(begin) and (name in _VOCABULARIES or name in _NO_ASSERTIONS):
            found |= known if name == "applicator" else {name}
        elif is_required is not False:
            raise GrammarError(f"the vocabulary {uri!r} is required and not known", pointer)
    missing = [keywords for name, keywords in _VOCABULARIES.items() if name not in found]
    return base.without(frozenset().union(*missing))


def escape(token: str) -> str:
    """One token of a JSON pointer."""
    return token.replace("~", "~0").replace("/", "~1")


def expected(value: Json, wanted: str, keyword: str, pointer: str) -> GrammarError:
    """The error for a keyword whose value has a wrong type."""
    kind = "boolean" if type_of(value) is JsonType.BOOLEAN else type_of(value).name.lower()
    return GrammarError(f"{keyword} must be {wanted}, not {kind}", pointer)
