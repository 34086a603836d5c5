"""The OpenAPI document: every route, and each field as the code takes it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import jsonschema
import pytest

from rtlang.contract.errors import ParameterError
from rtlang.serve.http.app import TABLES
from rtlang.serve.http.openapi import entries
from tests.support.models.family_table import table_in
from tests.support.servers.field_table import MARKERS, PAGE, field_table
from tests.support.servers.http_client import HttpClient
from tests.support.servers.serving import serving


@pytest.fixture(scope="module")
def client() -> Iterator[HttpClient]:
    with serving() as server:
        yield HttpClient(server.url)


def test_the_document_describes_every_route_and_body(client: HttpClient) -> None:
    answer = client.get("/openapi.json")
    found = answer.json
    assert (answer.status, found["openapi"]) == (200, "3.1.0")
    for name, table in TABLES.items():
        method, path = name.split(" ")
        schema = found["paths"][path][method.lower()]["requestBody"]["content"]["application/json"]["schema"]
        jsonschema.Draft202012Validator.check_schema(schema)
        assert set(schema["properties"]) == {entry.name for entry in entries(table)}
    operations = [each for methods in found["paths"].values() for each in methods.values()]
    assert len({each["operationId"] for each in operations}) == len(operations)
    parameters = found["paths"]["/v1/responses/{id}"]["get"]["parameters"]
    assert [each["name"] for each in parameters] == ["id"]
    assert found["paths"]["/health"]["get"]["security"] == []
    assert found["paths"]["/v1/models"]["get"]["security"] == [{"key": []}]


def test_the_document_takes_what_the_code_takes() -> None:
    for table in TABLES.values():
        for entry in entries(table):
            value = {"accepted": "x", "hint": "x", "refused": "x"}.get(entry.taken)
            if entry.taken == "fixed":
                for allowed in table.fixed[entry.name]:
                    assert table.given({entry.name: allowed}) == {}
                assert entry.note == " or ".join(json.dumps(each) for each in table.fixed[entry.name])
                value = "nothing allowed"
            if entry.taken in ("fixed", "refused"):
                with pytest.raises(ParameterError) as refused:
                    table.given({entry.name: value})
                assert refused.value.field == entry.name
            else:
                assert table.given({entry.name: value}) == ({entry.name: "x"} if entry.taken == "accepted" else {})


def test_the_documentation_lists_the_same_fields() -> None:
    assert table_in(PAGE.read_text(encoding="utf-8"), MARKERS) == field_table()
