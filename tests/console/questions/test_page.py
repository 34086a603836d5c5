"""The page for open questions: forms from schemas, checked answers, and no help for other sites."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from rtlang.cassette.answers import AnswersFile
from rtlang.cassette.questions import open_questions
from rtlang.console.questions.page import create_app
from tests.cassette.test_questions import intent, journal

ORDER = {
    "type": "object",
    "properties": {
        "item": {"type": "string"},
        "count": {"type": "integer", "minimum": 1},
        "fast": {"type": "boolean"},
        "size": {"enum": ["S", "M"]},
    },
    "required": ["item", "count"],
    "additionalProperties": False,
}
EVIL = '</pre><script>alert("x")</script>'
INTENTS = {
    "ask": intent("rt.ask", [EVIL, {"type": "boolean"}, None], at=1.0),
    "order": intent("rt.ask", ["What?", ORDER, None], at=2.0),
    "list": intent("rt.ask", ["Which?", {"type": "array", "items": {"type": "integer"}}, None], at=3.0),
    "name": intent("rt.ask", ["Who?", None, None], at=4.0),
    "pay()": intent("pay", [EVIL], at=5.0),
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    with journal(tmp_path / "run.journal", INTENTS):
        pass
    return str(tmp_path / "run.journal")


@pytest.fixture
def client(path: str) -> TestClient:
    return TestClient(create_app(Path(path).parent), base_url="http://127.0.0.1:8000", follow_redirects=False)


def answers(path: str) -> dict[str, Any]:
    file = AnswersFile(path)
    return {name: [each.answer for each in file.of(name)] for name in INTENTS}


def token_of(client: TestClient) -> str:
    found = re.search(r'name="token" value="([^"]+)"', client.get("/").text)
    assert found is not None
    return found[1]


def test_the_page_has_a_form_for_each_question_and_escapes_texts(client: TestClient) -> None:
    response = client.get("/")
    assert response.status_code == 200
    assert "<script" not in response.text
    assert "&lt;script&gt;" in response.text
    assert response.text.count("<form") == 5
    for part in (
        '<select name="=" required><option value=""></option><option value="true">',
        '<textarea name=".item"',
        '<input type="number" name=".count" step="1" required>',
        '<select name=".size"><option value=""></option><option value="&quot;S&quot;">',
    ):
        assert part in response.text
    assert "default-src 'none'" in response.headers["content-security-policy"]
    listed = client.get("/questions").json()["questions"]
    assert [each["path"] for each in listed] == list(INTENTS)


def test_forms_give_checked_answers(client: TestClient, path: str) -> None:
    token = token_of(client)

    def post(name: str, **fields: str) -> Any:
        return client.post("/answers", data={"token": token, "journal": path, "path": name} | fields)

    assert post("ask", **{"=": "maybe"}).status_code == 422
    assert post("ask", **{"=": "true"}).status_code == 303
    assert post("order", **{".item": "tea", ".count": "0"}).status_code == 422
    assert post("order", **{".item": "5", ".count": "2", ".fast": "", ".size": '"M"'}).status_code == 303
    assert post("list", **{"=": "[1, 2]"}).status_code == 303
    assert post("name", **{"=": "Ada\r\nL"}).status_code == 303
    assert post("pay()", **{"=": "retry"}).status_code == 303
    assert answers(path) == {
        "ask": [True],
        "order": [{"item": "5", "count": 2, "size": "M"}],
        "list": [[1, 2]],
        "name": ["Ada\nL"],
        "pay()": [{"outcome": "retry"}],
    }
    assert all(each.is_answered for each in open_questions(path))
    assert post("none", **{"=": "x"}).status_code == 404


def test_the_api_gives_checked_answers(client: TestClient, path: str) -> None:
    def post(answer: Any, name: str = "ask", **options: Any) -> Any:
        return client.post("/answers", json={"journal": path, "path": name, "answer": answer}, **options)

    assert post("maybe").status_code == 422
    assert post(True).json() == {"answered": "ask"}
    assert post(False).status_code == 409
    assert post(1, "none").status_code == 404
    assert client.post("/answers", json={"journal": "/etc/passwd", "path": "ask", "answer": 1}).status_code == 404
    assert client.post("/answers", json=[1]).status_code == 400
    assert client.post("/answers", content="{", headers={"content-type": "application/json"}).status_code == 400
    large = json.dumps({"journal": path, "path": "name", "answer": "x" * (1 << 20)})
    assert client.post("/answers", content=large, headers={"content-type": "application/json"}).status_code == 413
    assert answers(path)["ask"] == [True]


def test_other_sites_and_names_are_refused(client: TestClient, path: str) -> None:
    body = {"journal": path, "path": "ask", "answer": True}
    for headers, status in (
        ({"host": "evil.example"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"content-type": "text/plain"}, 415),
    ):
        response = client.post(
            "/answers", content=json.dumps(body), headers={"content-type": "application/json"} | headers
        )
        assert response.status_code == status, headers
    assert client.get("/questions", headers={"host": "evil.example"}).status_code == 403
    assert client.get("/", headers={"host": "evil.example"}).status_code == 403
    form = {"token": "x", "journal": path, "path": "ask", "=": "true"}
    assert client.post("/answers", data=form).status_code == 403
    assert answers(path)["ask"] == []
    allowed = client.post("/answers", json=body, headers={"origin": "http://127.0.0.1:8000"})
    assert allowed.status_code == 200


def test_an_empty_place_says_so(tmp_path: Path) -> None:
    client = TestClient(create_app(tmp_path), base_url="http://localhost:1")
    assert "No open questions." in client.get("/").text
    missing = TestClient(create_app(tmp_path / "none"), base_url="http://[::1]:1", raise_server_exceptions=False)
    assert missing.get("/").status_code == 500
