"""The routes of files through the official client, and forms as no client sends them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import openai
import pytest
from openai import OpenAI
from python_multipart.multipart import MultipartParser

from rtlang.serve.batch.batch_record import Batch
from rtlang.serve.batch.file_store import StoredFile
from rtlang.serve.http import form_upload
from tests.support.long_tests import sized
from tests.support.programs.fake_target import FakeTarget
from tests.support.servers.fuzz import shuffled_bytes
from tests.support.servers.http_client import HttpClient
from tests.support.servers.serving import serving

KEYS = {"ann": "a" * 20, "bob": "b" * 20}
FORM = (
    b'--xyz\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
    b'--xyz\r\nContent-Disposition: form-data; name="file"; filename="in.jsonl"\r\n\r\n{"a": 1}\r\n--xyz--\r\n'
)
FORM_TYPE = {"content-type": "multipart/form-data; boundary=xyz"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with FakeTarget() as target, serving(target, keys=keys_text(), files_bytes=4 << 20) as server:  # type: ignore[arg-type]
        yield server.url


def keys_text() -> str:
    from rtlang.serve.network.key_table import digest_of

    return json.dumps({"keys": [{"name": name, "sha256": digest_of(key)} for name, key in KEYS.items()]})


def client_of(url: str, name: str) -> OpenAI:
    return OpenAI(base_url=url.replace("ws", "http", 1) + "/v1", api_key=KEYS[name], max_retries=0)


def test_a_file_is_uploaded_listed_read_and_deleted_by_its_principal_alone(url: str) -> None:
    ann, bob = client_of(url, "ann"), client_of(url, "bob")
    data = b"".join(b'{"line": %d}\r\n--xyz\r\n' % i for i in range(50_000))  # looks like the end of a form
    made = ann.files.create(
        file=("ü.jsonl", data), purpose="batch", expires_after={"anchor": "created_at", "seconds": 3600}
    )
    assert (made.bytes, made.filename, made.purpose, made.status) == (len(data), "ü.jsonl", "batch", "processed")
    assert made.expires_at == made.created_at + 3600
    assert ann.files.content(made.id).read() == data
    assert ann.files.retrieve(made.id) == made
    others = [ann.files.create(file=(f"{i}", b"x"), purpose="batch").id for i in range(4)]
    assert {each.id for each in ann.files.list()} == {made.id, *others}
    assert [each.id for each in ann.files.list(limit=2, order="asc")] == [
        each.id for each in ann.files.list(order="asc")
    ]
    assert list(ann.files.list(purpose="batch_output")) == []
    assert list(bob.files.list()) == []
    for call in (bob.files.retrieve, bob.files.delete, bob.files.content):
        with pytest.raises(openai.NotFoundError):
            call(made.id)
    assert ann.files.delete(made.id).deleted
    for call in (ann.files.retrieve, ann.files.delete, ann.files.content):
        with pytest.raises(openai.NotFoundError):
            call(made.id)
    with pytest.raises(openai.BadRequestError) as caught:
        ann.files.list(after=made.id)
    assert caught.value.param == "after"
    for _ in range(2):
        with pytest.raises(openai.APIStatusError) as large:
            ann.files.create(file=("x", b"x" * (5 << 20)), purpose="batch")
        assert large.value.status_code == 413
    for each in others:
        ann.files.delete(each)


def test_lists_and_forms_are_worked_on_outside_the_event_loop(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    on_loop: list[bool] = []

    def watched(fn: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop()
                on_loop.append(True)
                return fn(*args)
            on_loop.append(False)
            return fn(*args)

        return call

    client = client_of(url, "ann")
    hostile = b"\r\n--xy" * 20_000  # the parser looks at each byte
    with monkeypatch.context() as patch:
        patch.setattr(form_upload, "_BUFFER_BYTES", 1 << 16)
        patch.setattr(MultipartParser, "write", watched(MultipartParser.write))
        made = client.files.create(file=("x", hostile), purpose="batch")
    num_pieces = len(on_loop)
    assert 1 <= num_pieces <= 2, "of 64 KiB at least"
    assert client.files.content(made.id).read() == hostile
    batch = client.batches.create(input_file_id=made.id, endpoint="/v1/completions", completion_window="1h")  # type: ignore[arg-type]
    with monkeypatch.context() as patch:
        for kind in (StoredFile, Batch):
            patch.setattr(kind, "to_object", watched(kind.to_object))
        assert made.id in {each.id for each in client.files.list()}
        assert [each.id for each in client.batches.list()] == [batch.id]
    assert len(on_loop) >= num_pieces + 2
    assert not any(on_loop)
    client.files.delete(made.id)


def test_forms_that_are_no_upload_are_refused_by_field_and_leave_nothing(url: str) -> None:
    client = HttpClient(url, KEYS["bob"])

    def refused(form: bytes, kind: dict[str, str] = FORM_TYPE) -> tuple[int, str | None]:
        answer = client.request("POST", "/v1/files", form, **kind)
        return answer.status, answer.json["error"]["param"]

    field = b'--xyz\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
    assert refused(FORM, {"content-type": "application/json"}) == (415, "file")
    assert refused(FORM.replace(b"batch", b"assistants")) == (400, "purpose")
    assert refused(FORM.replace(b"purpose", b"purpos")) == (400, "purpos")
    assert refused(FORM.replace(b'; filename="in.jsonl"', b"")) == (400, "file")
    assert refused(field % (b"purpose", b"batch") + FORM) == (400, "purpose")
    assert refused(field % (b"x", b"y" * 2000) + FORM) == (400, "x")
    assert refused(field % (b"expires_after[seconds]", b"5") + FORM) == (400, "expires_after.anchor")
    assert refused(field % (b"purpose", b"batch") + b"--xyz--\r\n") == (400, "file")
    assert refused(FORM[:-10])[0] == 400
    assert refused(b"--xyz\r\n" + b"a" * 5000 + b": b\r\n\r\n")[0] == 400
    assert refused(b"".join(field % (b"f%d" % i, b"") for i in range(20)) + FORM)[0] == 400
    rng = Random(3)
    for _ in range(sized(5_000, usual=60)):
        assert client.request("POST", "/v1/files", shuffled_bytes(FORM, rng), **FORM_TYPE).status < 500
    for each in client.get("/v1/files").json["data"]:
        assert client.request("DELETE", f"/v1/files/{each['id']}").status == 200
    assert client.request("POST", "/v1/files", FORM, **FORM_TYPE).status == 200
    with client_of(url, "bob") as bob:
        assert bob.files.create(file=("x", b"x" * ((4 << 20) - 8)), purpose="batch").bytes
    assert refused(FORM) == (400, "file")  # exactly all bytes are in use
