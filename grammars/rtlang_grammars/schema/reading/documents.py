"""Schemas by place and by name: resources, anchors, references.

A *resource* is a schema with its own base URI: the document, and every subschema with an `$id`. A *node* is one schema in its
place, together with the dynamic scope it was reached by (kept only where some schema has a dynamic anchor). Nodes are made when
something asks for them, and the same place in the same scope is always the same node, so that recursive schemas stay finite.
Nothing is ever fetched: only the document itself and the published meta-schemas, which come with a package, can be referred to.
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
    by_uri,
    detect,
    escape,
    expected,
    survey,
)
from rtlang_grammars.schema.reading.report import Place, Spot, pointer_of
from rtlang_grammars.schema.reading.values import Json
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget


@dataclass(eq=False, slots=True)
class Resource:
    """A schema with a base URI of its own. Owned by `Documents`; filled while its document is indexed.

    Attributes:
        uri: absolute where anything named it so; without a fragment.
        document: index of the document it is in.
        pointer: its place in that document.
        schema: its root.
        dialect: how it is read.
        anchors: names to places in the document; `dynamic` are those of them that are dynamic anchors.
        is_recursive: its root has `"$recursiveAnchor": true`.
        is_plain: it is all of its document, and no object stands in two places of that: a schema is known by its object.
    """

    uri: str
    document: int
    pointer: str
    schema: Json
    dialect: Dialect
    anchors: dict[str, str] = field(default_factory=dict)
    dynamic: set[str] = field(default_factory=set)
    is_recursive: bool = False
    is_plain: bool = False


class Node:
    """One schema in its place.

    Attributes:
        schema: an object or a boolean.
        resource: what it belongs to.
        place: where it is in the document.
        scope: those resources entered on the way to it, outermost first, that are the first to have some dynamic anchor.
        index: number among all nodes of a compile.
        is_synthetic: made by the algebra, in the name of the schema at that place.
    """

    __slots__ = ("_pointer", "index", "is_synthetic", "place", "resource", "schema", "scope")

    def __init__(
        self,
        schema: dict[str, Json] | bool,
        resource: Resource,
        place: Place,
        scope: tuple[Resource, ...],
        index: int,
        is_synthetic: bool = False,
    ) -> None:
        self.schema, self.resource, self.place, self.scope = schema, resource, place, scope
        self.index, self.is_synthetic = index, is_synthetic
        self._pointer: str | None = None

    @property
    def pointer(self) -> str:
        """The place as a JSON pointer."""
        if self._pointer is None:
            self._pointer = pointer_of(self.place)
        return self._pointer

    @property
    def location(self) -> str:
        """The place as a URI, for messages: `#/properties/a` in the given document."""
        prefix = self.resource.uri if self.resource.document else ""
        return f"{prefix}#{self.pointer}"

    @property
    def spot(self) -> Spot:
        """The same, not yet written out."""
        return (self.resource.uri if self.resource.document else "", self.place)

    @property
    def dialect(self) -> Dialect:
        """How it is read."""
        return self.resource.dialect


class Documents:
    """The document of one compile, and the meta-schemas it refers to. Owned by that compile."""

    def __init__(
        self, schema: Json, budget: Budget, default_dialect: str | None = None, lenient: frozenset[str] = frozenset()
    ) -> None:
        """Look over and index the document.

        Args:
            default_dialect: name of the dialect of documents that name none.
            lenient: keywords that are not to be read.

        Raises:
            GrammarError: an unknown dialect, or identifiers that cannot be read.
        """
        self._budget, self._default_dialect, self._lenient = budget, default_dialect, lenient
        self._nodes: dict[Hashable, Node] = {}
        self._targets: dict[tuple[int, str], Node] = {}
        self._by_index: list[Node] = []
        self._resources: dict[str, Resource] = {}
        self._at: dict[tuple[int, str], Resource] = {}
        self._values: list[Json] = []
        self._has_dynamic = False
        true = Resource("", -1, "", True, DRAFT_2020_12)
        self._by_index.append(Node(True, true, "", (), 0, True))  # demands 0 and 1 are `true` and `false`
        self.root = self._add("", schema, None)

    def _add(self, uri: str, schema: Json, dialect: Dialect | None) -> Resource:
        found = survey(schema, 4 * self._budget.limits.max_depth)  # a schema in a schema takes two to three levels
        dialect = (dialect or detect(schema, found, self._default_dialect)).without(self._lenient)
        index = len(self._values)
        self._values.append(schema)
        self._has_dynamic |= found.has_dynamic
        root = Resource(self._identified(uri, schema, dialect) or uri, index, "", schema, dialect)
        self._resources.setdefault(root.uri, root)
        self._resources.setdefault(uri, root)
        self._at[index, ""] = root
        if found.has_identifiers:
            self._index(root)
        root.is_plain = not (found.has_identifiers or found.has_shared)
        return root

    def _identified(self, base: str, schema: Json, dialect: Dialect) -> str | None:
        """The URI that a schema gives itself; None where it gives none."""
        if not isinstance(schema, dict) or (dialect.ref_hides_siblings and "$ref" in schema):
            return None
        name = schema.get(dialect.id_keyword)
        if not isinstance(name, str) or (dialect.id_fragments and name.startswith("#")):
            return None
        return join(base, name).partition("#")[0]

    def _index(self, root: Resource) -> None:
        stack: list[tuple[Json, str, Resource]] = [(root.schema, "", root)]
        while stack:
            schema, pointer, resource = stack.pop()
            if not isinstance(schema, dict):
                continue
            self._budget.spend()
            if pointer:
                uri = self._identified(resource.uri, schema, resource.dialect)
                if uri is not None:
                    named = by_uri(schema["$schema"], pointer, root.schema) if "$schema" in schema else None
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

    def node(self, index: int) -> Node:
        """The node of a number."""
        return self._by_index[index]

    def root_node(self) -> Node:
        """The schema of the whole value."""
        return self._node_at(self.root.schema, self.root, "", ())

    def child(self, node: Node, *tokens: str | int) -> Node:
        """The subschema at `tokens` below a node.

        Raises:
            GrammarError: what is there is no schema.
        """
        value: Json = node.schema
        for token in tokens:
            value = value[token]  # type: ignore[index]
        resource = node.resource
        if resource.is_plain and not node.scope:
            key: Hashable = (resource.document, id(value) if isinstance(value, dict) else (id(node.schema), *tokens))
            return self._nodes.get(key) or self._add_node(key, value, resource, (node.place, *tokens), ())
        pointer = pointer_of((node.pointer, *tokens))
        return self._node_at(value, self._at.get((resource.document, pointer), resource), pointer, node.scope)

    def children(self, node: Node, keyword: str, values: Mapping[str, Json]) -> Iterator[Node]:
        """The subschemas in an object of schemas, which is the value of a keyword of a node.

        Raises:
            GrammarError: as `child`.
        """
        resource = node.resource
        is_plain, nodes, document = resource.is_plain and not node.scope, self._nodes, resource.document
        for name, value in values.items():
            if is_plain and isinstance(value, dict):
                key = (document, id(value))
                yield nodes.get(key) or self._add_node(key, value, resource, (node.place, keyword, name), ())
            else:
                yield self.child(node, keyword, name)

    def _node_at(self, value: Json, resource: Resource, pointer: str, scope: tuple[Resource, ...]) -> Node:
        if self._has_dynamic:
            scope = _entered(scope, resource)
        is_known_by_object = resource.is_plain and not scope and isinstance(value, dict)
        key: Hashable = (resource.document, id(value)) if is_known_by_object else (resource.document, pointer, scope)
        return self._nodes.get(key) or self._add_node(key, value, resource, pointer, scope)

    def _add_node(
        self, key: Hashable, value: Json, resource: Resource, place: Place, scope: tuple[Resource, ...]
    ) -> Node:
        if not isinstance(value, dict | bool):
            raise expected(value, "an object or a boolean", "a schema", f"#{pointer_of(place)}")
        self._budget.spend(states=1)
        node = self._nodes[key] = Node(value, resource, place, scope, len(self._by_index))
        self._by_index.append(node)
        return node

    def synthetic(self, schema: dict[str, Json], like: Node) -> Node:
        """A node for a schema that is not in any document, in the place of another."""
        self._budget.spend(states=1)
        node = Node(schema, like.resource, like.place, like.scope, len(self._by_index), True)
        self._by_index.append(node)
        return node

    def resolve(self, node: Node, keyword: str) -> Node:
        """The target of `$ref`, `$dynamicRef` or `$recursiveRef` of a node.

        Raises:
            GrammarError: no such place, or one that would have to be fetched; with the place of the reference.
        """
        assert isinstance(node.schema, dict)
        reference = node.schema[keyword]
        is_plain = node.resource.is_plain and not node.scope and isinstance(reference, str)
        if is_plain and (found := self._targets.get((node.resource.document, str(reference)))) is not None:
            return found
        if not isinstance(reference, str):
            raise expected(reference, "a string", keyword, node.location)
        uri, _, fragment = join(node.resource.uri, reference).partition("#")
        fragment = unquote(fragment)
        resource = self._resources.get(uri) or self._published(uri, node, reference)
        if keyword == "$recursiveRef" and resource.is_recursive:
            resource = next((outer for outer in node.scope if outer.is_recursive), resource)
        if keyword == "$dynamicRef" and fragment in resource.dynamic:
            resource = next((outer for outer in node.scope if fragment in outer.dynamic), resource)
        if fragment and not fragment.startswith("/"):
            pointer = resource.anchors.get(fragment)
            if pointer is None:
                raise GrammarError(f"no anchor {fragment!r} for the reference {reference!r}", node.location)
            fragment = pointer.removeprefix(resource.pointer)
        target = self._place(resource, fragment, node, reference)
        if is_plain:
            self._targets[node.resource.document, reference] = target
        return target

    def _place(self, resource: Resource, fragment: str, node: Node, reference: str) -> Node:
        value, pointer = resource.schema, resource.pointer
        for token in fragment.split("/")[1:]:
            name = token.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and name in value:
                value = value[name]
            elif isinstance(value, list) and name.isdecimal() and name.isascii() and int(name) < len(value):
                value = value[int(name)]
            else:
                raise GrammarError(f"the reference {reference!r} leads nowhere", node.location)
            pointer += f"/{escape(name)}"
            resource = self._at.get((resource.document, pointer), resource)
        if not isinstance(value, dict | bool):
            raise GrammarError(f"the reference {reference!r} leads to something that is no schema", node.location)
        return self._node_at(value, resource, pointer, node.scope)

    def _published(self, uri: str, node: Node, reference: str) -> Resource:
        """The resource of a meta-schema."""
        if "json-schema.org/" in uri:
            from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

            for name in (uri, f"{uri}#"):
                if name in REGISTRY:
                    self._add(uri, REGISTRY.contents(name), None)
                    return self._resources[uri]
        raise GrammarError(
            f"the reference {reference!r} is to another document, which is never fetched: put it under $defs with its $id",
            node.location,
        )


def _entered(scope: tuple[Resource, ...], resource: Resource) -> tuple[Resource, ...]:
    """The scope inside a resource. Only what a reference could find is kept, so that there are few scopes."""
    if resource in scope:
        return scope
    known = {name for outer in scope for name in outer.dynamic}
    is_first = resource.is_recursive and not any(outer.is_recursive for outer in scope)
    return (*scope, resource) if is_first or not resource.dynamic <= known else scope


def _subschemas(schema: dict[str, Json]) -> Iterator[tuple[str, Json]]:
    """Places and values of the direct subschemas in known keywords."""
    for keyword, value in schema.items():
        if isinstance(value, dict):
            if keyword in MAP_KEYWORDS:
                yield from ((f"/{keyword}/{escape(name)}", item) for name, item in value.items())
            elif keyword in SCHEMA_KEYWORDS:
                yield f"/{keyword}", value
        elif isinstance(value, list) and keyword in LIST_KEYWORDS:
            yield from ((f"/{keyword}/{index}", item) for index, item in enumerate(value))


def join(base: str, reference: str) -> str:
    """A reference against a base URI, fragment kept; a base that is no hierarchy (`urn:`) keeps its own text for `#...`."""
    if reference.startswith("#") or not reference:
        return base.partition("#")[0] + reference
    try:
        return urljoin(base, reference)
    except ValueError:
        raise GrammarError(f"not a URI reference: {reference!r}") from None
