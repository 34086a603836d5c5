"""Documents of schemas: resources, anchors and the resolution of references.

A *resource* is a schema with its own base URI: the document, and every subschema with an `$id`. A *node* is one schema at its location,
together with the dynamic scope it was reached through (empty unless some schema has a dynamic anchor). Nodes are created on demand, and the
same location in the same scope is always the same node, so that recursive schemas have finitely many. Nothing is ever fetched: references
can only lead into the document itself and to the published meta-schemas, which an installed package provides.

Source: JSON Schema Core 2020-12, sections 7.1 (dynamic scope), 8.2 (identifiers, anchors, references) and 9 (documents).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urljoin

from rtlang_grammars.schema.reading.dialects import (
    DRAFT_2020_12,
    LIST_KEYWORDS,
    MAP_KEYWORDS,
    SCHEMA_KEYWORDS,
    Dialect,
    detect_dialect,
    dialect_by_uri,
    escape,
    invalid_value,
    survey,
    unescape,
)
from rtlang_grammars.schema.reading.report import LazyLocation, LazyPointer, pointer_of
from rtlang_grammars.schema.reading.values import Json
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget


@dataclass(eq=False, slots=True)
class Resource:
    """A schema resource: a schema with its own base URI. Owned by `Documents`; filled while its document is indexed.

    Attributes:
        uri: its base URI without a fragment; absolute if an `$id` makes it so.
        document: index of its document.
        pointer: JSON pointer of its root in that document.
        schema: its root schema.
        dialect: its dialect.
        anchors: JSON pointers in the document by plain-name fragment.
        dynamic: the anchors that are dynamic.
        is_recursive: its root has `"$recursiveAnchor": true`.
        is_identity_keyed: it is the only resource of its document, in which no Python object occurs twice, so that nodes can be
            keyed by the identity of their schema instead of a pointer.
    """

    uri: str
    document: int
    pointer: str
    schema: Json
    dialect: Dialect
    anchors: dict[str, str] = field(default_factory=dict)
    dynamic: set[str] = field(default_factory=set)
    is_recursive: bool = False
    is_identity_keyed: bool = False


class SchemaNode:
    """One schema at its location.

    Attributes:
        schema: an object or a boolean.
        resource: the resource it belongs to.
        lazy_pointer: its JSON pointer in the document, not yet formatted.
        scope: its dynamic scope, outermost first, reduced to the resources that are the first to define some dynamic anchor.
        index: its number among all nodes of the compile.
        is_synthetic: the algebra created it for the schema at this location; no document holds it.
    """

    __slots__ = ("_pointer", "index", "is_synthetic", "lazy_pointer", "resource", "schema", "scope")

    def __init__(
        self,
        schema: dict[str, Json] | bool,
        resource: Resource,
        lazy_pointer: LazyPointer,
        scope: tuple[Resource, ...],
        index: int,
        is_synthetic: bool = False,
    ) -> None:
        self.schema, self.resource, self.lazy_pointer, self.scope = schema, resource, lazy_pointer, scope
        self.index, self.is_synthetic = index, is_synthetic
        self._pointer: str | None = None

    @property
    def pointer(self) -> str:
        """JSON pointer of the schema in its document."""
        if self._pointer is None:
            self._pointer = pointer_of(self.lazy_pointer)
        return self._pointer

    @property
    def location(self) -> str:
        """Location of the schema as a URI, for messages: `#/properties/a` in the given document."""
        prefix = self.resource.uri if self.resource.document else ""
        return f"{prefix}#{self.pointer}"

    @property
    def lazy_location(self) -> LazyLocation:
        """The location, not yet formatted."""
        return (self.resource.uri if self.resource.document else "", self.lazy_pointer)

    @property
    def dialect(self) -> Dialect:
        """Dialect of the resource."""
        return self.resource.dialect


class Documents:
    """The document of one compile and the meta-schemas it refers to. Owned by that compile.

    Attributes:
        root: the resource of the document.
    """

    def __init__(
        self, schema: Json, budget: Budget, default_dialect: str | None = None, lenient: frozenset[str] = frozenset()
    ) -> None:
        """Survey and index the document.

        Args:
            schema: the document, as parsed JSON.
            budget: charged for each schema that is indexed.
            default_dialect: name of the dialect of documents without `$schema`; None means to detect it.
            lenient: keywords to ignore.
        Raises:
            GrammarError: the dialect is unknown, an `$id` is not a URI reference, or the document is nested too deeply.
        """
        self._budget, self._default_dialect, self._lenient = budget, default_dialect, lenient
        self._nodes: dict[Hashable, SchemaNode] = {}
        self._targets: dict[tuple[int, str], SchemaNode] = {}
        self._by_index: list[SchemaNode] = []
        self._resources: dict[str, Resource] = {}
        self._at: dict[tuple[int, str], Resource] = {}
        self._values: list[Json] = []
        self._has_dynamic = False
        true = Resource("", -1, "", True, DRAFT_2020_12)
        self._by_index.append(SchemaNode(True, true, "", (), 0, True))  # demands 0 and 1 are `true` and `false`
        self.root = self._add_document("", schema, None)

    def _add_document(self, uri: str, schema: Json, dialect: Dialect | None) -> Resource:
        found = survey(schema, 4 * self._budget.limits.max_depth)  # a subschema is two to three levels below its schema
        dialect = (dialect or detect_dialect(schema, found, self._default_dialect)).without(self._lenient)
        index = len(self._values)
        self._values.append(schema)
        self._has_dynamic |= found.has_dynamic
        root = Resource(self._declared_uri(uri, schema, dialect, "") or uri, index, "", schema, dialect)
        self._resources.setdefault(root.uri, root)
        self._resources.setdefault(uri, root)
        self._at[index, ""] = root
        if found.has_identifiers:
            self._index_resources(root)
        root.is_identity_keyed = not (found.has_identifiers or found.has_shared)
        return root

    def _declared_uri(self, base: str, schema: Json, dialect: Dialect, pointer: str) -> str | None:
        """Return the base URI that a schema declares with `$id` or `id`; None if it declares none."""
        if not isinstance(schema, dict) or (dialect.ref_hides_siblings and "$ref" in schema):
            return None
        name = schema.get(dialect.id_keyword)
        if not isinstance(name, str) or (dialect.id_fragments and name.startswith("#")):
            return None
        return join_uri(base, name, f"#{pointer}").partition("#")[0]

    def _index_resources(self, root: Resource) -> None:
        stack: list[tuple[Json, str, Resource]] = [(root.schema, "", root)]
        while stack:
            schema, pointer, resource = stack.pop()
            if not isinstance(schema, dict):
                continue
            self._budget.spend()
            if pointer:
                uri = self._declared_uri(resource.uri, schema, resource.dialect, pointer)
                if uri is not None:
                    named = (
                        dialect_by_uri(schema["$schema"], f"#{pointer}", root.schema) if "$schema" in schema else None
                    )
                    dialect = named.without(self._lenient) if named else resource.dialect
                    resource = Resource(uri, root.document, pointer, schema, dialect)
                    self._resources.setdefault(uri, resource)
                    self._at[root.document, pointer] = resource
            self._index_anchors(schema, pointer, resource)
            if resource.dialect.ref_hides_siblings and "$ref" in schema:
                continue
            stack.extend((value, pointer + path, resource) for path, value in _subschemas(schema))

    def _index_anchors(self, schema: dict[str, Json], pointer: str, resource: Resource) -> None:
        for keyword in ("$anchor", "$dynamicAnchor"):
            name = schema.get(keyword)
            if isinstance(name, str):
                resource.anchors.setdefault(name, pointer)
                if keyword == "$dynamicAnchor":
                    resource.dynamic.add(name)
        if resource.pointer == pointer and schema.get("$recursiveAnchor") is True:
            resource.is_recursive = True
        if resource.dialect.id_fragments and "$ref" not in schema:
            name = schema.get(resource.dialect.id_keyword)
            if isinstance(name, str):
                anchor = name.partition("#")[2]
                if anchor:
                    resource.anchors.setdefault(anchor, pointer)

    def node(self, index: int) -> SchemaNode:
        """Return the node with the given index."""
        return self._by_index[index]

    def root_node(self) -> SchemaNode:
        """Return the node of the root schema.

        Raises:
            GrammarError: it is neither an object nor a boolean.
        """
        return self._node_at(self.root.schema, self.root, "", ())

    def child(self, node: SchemaNode, *tokens: str | int) -> SchemaNode:
        """Return the subschema of a node at a relative JSON pointer, given as its tokens.

        Raises:
            GrammarError: the value there is neither an object nor a boolean.
        """
        value: Json = node.schema
        for token in tokens:
            value = value[token]  # type: ignore[index]
        resource = node.resource
        if resource.is_identity_keyed and not node.scope:
            key: Hashable = (resource.document, id(value) if isinstance(value, dict) else (id(node.schema), *tokens))
            return self._nodes.get(key) or self._add_node(key, value, resource, (node.lazy_pointer, *tokens), ())
        pointer = pointer_of((node.pointer, *tokens))
        return self._node_at(value, self._at.get((resource.document, pointer), resource), pointer, node.scope)

    def children(self, node: SchemaNode, keyword: str, values: Mapping[str, Json]) -> Iterator[SchemaNode]:
        """Yield the subschemas in `values`, the object of schemas that is the value of a keyword of a node.

        Raises:
            GrammarError: as `child`.
        """
        resource = node.resource
        is_identity_keyed, nodes, document = (
            resource.is_identity_keyed and not node.scope,
            self._nodes,
            resource.document,
        )
        for name, value in values.items():
            if is_identity_keyed and isinstance(value, dict):
                key = (document, id(value))
                yield nodes.get(key) or self._add_node(key, value, resource, (node.lazy_pointer, keyword, name), ())
            else:
                yield self.child(node, keyword, name)

    def _node_at(self, value: Json, resource: Resource, pointer: str, scope: tuple[Resource, ...]) -> SchemaNode:
        if self._has_dynamic:
            scope = _enter_resource(scope, resource)
        by_identity = resource.is_identity_keyed and not scope and isinstance(value, dict)
        key: Hashable = (resource.document, id(value)) if by_identity else (resource.document, pointer, scope)
        return self._nodes.get(key) or self._add_node(key, value, resource, pointer, scope)

    def _add_node(
        self, key: Hashable, value: Json, resource: Resource, lazy_pointer: LazyPointer, scope: tuple[Resource, ...]
    ) -> SchemaNode:
        if not isinstance(value, dict | bool):
            raise invalid_value(value, "an object or a boolean", "a schema", f"#{pointer_of(lazy_pointer)}")
        self._budget.spend(states=1)
        node = self._nodes[key] = SchemaNode(value, resource, lazy_pointer, scope, len(self._by_index))
        self._by_index.append(node)
        return node

    def synthetic(self, schema: dict[str, Json], like: SchemaNode) -> SchemaNode:
        """Return a new node for a schema that no document holds, with the location and dialect of another node."""
        self._budget.spend(states=1)
        node = SchemaNode(schema, like.resource, like.lazy_pointer, like.scope, len(self._by_index), True)
        self._by_index.append(node)
        return node

    def resolve(self, node: SchemaNode, keyword: str) -> SchemaNode:
        """Return the target of the reference that a keyword of a node holds.

        Args:
            keyword: `$ref`, `$dynamicRef` or `$recursiveRef`.
        Raises:
            GrammarError: the target does not exist, is not a schema, or would have to be fetched; with the location of the reference.
        Source: JSON Schema Core 2020-12, section 8.2.3; 2019-09, section 8.2.4.2 (`$recursiveRef`).
        """
        assert isinstance(node.schema, dict)
        reference = node.schema[keyword]
        is_identity_keyed = node.resource.is_identity_keyed and not node.scope and isinstance(reference, str)
        if is_identity_keyed and (found := self._targets.get((node.resource.document, str(reference)))) is not None:
            return found
        if not isinstance(reference, str):
            raise invalid_value(reference, "a string", keyword, node.location)
        uri, _, fragment = join_uri(node.resource.uri, reference, node.location).partition("#")
        fragment = unquote(fragment)
        resource = self._resources.get(uri) or self._load_meta_schema(uri, node, keyword, reference)
        if keyword == "$recursiveRef" and resource.is_recursive:
            resource = next((outer for outer in node.scope if outer.is_recursive), resource)
        if keyword == "$dynamicRef" and fragment in resource.dynamic:
            resource = next((outer for outer in node.scope if fragment in outer.dynamic), resource)
        if fragment and not fragment.startswith("/"):
            pointer = resource.anchors.get(fragment)
            if pointer is None:
                raise GrammarError(f"{keyword} = {reference!r}: there is no anchor {fragment!r}", node.location)
            fragment = pointer.removeprefix(resource.pointer)
        target = self._locate(resource, fragment, node, keyword, reference)
        if is_identity_keyed:
            self._targets[node.resource.document, reference] = target
        return target

    def _locate(self, resource: Resource, fragment: str, node: SchemaNode, keyword: str, reference: str) -> SchemaNode:
        value, pointer = resource.schema, resource.pointer
        for token in fragment.split("/")[1:]:
            name = unescape(token)
            if isinstance(value, dict) and name in value:
                value = value[name]
            elif isinstance(value, list) and name.isdecimal() and name.isascii() and int(name) < len(value):
                value = value[int(name)]
            else:
                raise GrammarError(f"{keyword} = {reference!r}: there is nothing at this JSON pointer", node.location)
            pointer += f"/{escape(name)}"
            resource = self._at.get((resource.document, pointer), resource)
        if not isinstance(value, dict | bool):
            raise invalid_value(
                value, "an object or a boolean", f"the target of {keyword} = {reference!r}", node.location
            )
        return self._node_at(value, resource, pointer, node.scope)

    def _load_meta_schema(self, uri: str, node: SchemaNode, keyword: str, reference: str) -> Resource:
        """Add a published meta-schema to the documents and return its resource."""
        if "json-schema.org/" in uri:
            from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

            for name in (uri, f"{uri}#"):
                if name in REGISTRY:
                    self._add_document(uri, REGISTRY.contents(name), None)
                    return self._resources[uri]
        raise GrammarError(
            f"{keyword} = {reference!r}: the target is in another document, which is never fetched; "
            "embed that document under $defs with its $id",
            node.location,
        )


def _enter_resource(scope: tuple[Resource, ...], resource: Resource) -> tuple[Resource, ...]:
    """Return the dynamic scope inside a resource, without resources that no reference could find, so that scopes are few."""
    if resource in scope:
        return scope
    known = {name for outer in scope for name in outer.dynamic}
    is_first = resource.is_recursive and not any(outer.is_recursive for outer in scope)
    return (*scope, resource) if is_first or not resource.dynamic <= known else scope


def _subschemas(schema: dict[str, Json]) -> Iterator[tuple[str, Json]]:
    """Yield the relative JSON pointers and the values of the direct subschemas in known keywords."""
    for keyword, value in schema.items():
        if isinstance(value, dict):
            if keyword in MAP_KEYWORDS:
                yield from ((f"/{keyword}/{escape(name)}", item) for name, item in value.items())
            elif keyword in SCHEMA_KEYWORDS:
                yield f"/{keyword}", value
        elif isinstance(value, list) and keyword in LIST_KEYWORDS:
            yield from ((f"/{keyword}/{index}", item) for index, item in enumerate(value))


def join_uri(base: str, reference: str, location: str | None = None) -> str:
    """Resolve a URI reference against a base URI, fragment included.

    A fragment-only reference keeps the base as it is, because `urljoin` drops the path of a non-hierarchical base (`urn:`).

    Args:
        location: the location of the reference, for errors.
    Raises:
        GrammarError: the reference is malformed.
    Source: RFC 3986, section 5.
    """
    if reference.startswith("#") or not reference:
        return base.partition("#")[0] + reference
    try:
        return urljoin(base, reference)
    except ValueError:
        raise GrammarError(f"{reference!r} is not a URI reference (RFC 3986)", location) from None
