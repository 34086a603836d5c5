"""Batches as bodies ask for them, as clients see them and as they are kept; errors name the field."""

from __future__ import annotations

import json
from typing import Any

import openai.types
import pytest

from rtlang.contract.errors import ParameterError
from rtlang.serve.batch.batch_record import Batch, BatchStatus, read_batch

BODY = {"input_file_id": "file-1", "endpoint": "/v1/responses", "completion_window": "24h"}
ENDPOINTS = ("/v1/responses",)


def test_a_batch_is_the_clients_type_in_every_state_and_is_kept_whole() -> None:
    body = BODY | {"metadata": {"a": "b"}, "output_expires_after": {"anchor": "created_at", "seconds": 3600}}
    batch = read_batch(body, "ann", ENDPOINTS, 100.7)
    assert (batch.created_at, batch.expires_at, batch.output_expires_after_s) == (100, 100 + 86_400, 3600)
    for number, status in enumerate(BatchStatus):
        batch.enter(status, 200 + number)
        shown = openai.types.Batch.model_validate(batch.to_object(), strict=True)
        assert shown.status == status.value
        assert shown.metadata == {"a": "b"}
        if status is not BatchStatus.VALIDATING:
            assert getattr(shown, f"{status.value}_at") == 200 + number
        assert Batch.from_plain(json.loads(json.dumps(batch.to_plain()))) == batch
    batch.errors = [{"code": "x", "line": 3, "message": "no", "param": None}]
    errors = openai.types.Batch.model_validate(batch.to_object()).errors
    assert errors is not None
    assert errors.data is not None
    assert errors.data[0].line == 3


def test_windows_have_units() -> None:
    for text, seconds in (("1m", 60), ("90m", 5400), ("24h", 86_400), ("30d", 30 * 86_400)):
        assert read_batch(BODY | {"completion_window": text}, "a", ENDPOINTS, 0).expires_at == seconds


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("input_file_id", None, "input_file_id"),
        ("input_file_id", 5, "input_file_id"),
        ("endpoint", "/v1/embeddings", "endpoint"),
        ("completion_window", "24", "completion_window"),
        ("completion_window", "0h", "completion_window"),
        ("completion_window", "31d", "completion_window"),
        ("completion_window", "9" * 50 + "h", "completion_window"),
        ("completion_window", 24, "completion_window"),
        ("metadata", [1], "metadata"),
        ("metadata", {"a": 1}, "metadata.a"),
        ("metadata", {"a": "x" * 513}, "metadata.a"),
        ("metadata", {str(i): "" for i in range(17)}, "metadata"),
        ("output_expires_after", {"anchor": "now", "seconds": 3600}, "output_expires_after.anchor"),
        ("output_expires_after", {"anchor": "created_at", "seconds": 3599}, "output_expires_after.seconds"),
        ("output_expires_after", {"anchor": "created_at", "seconds": True}, "output_expires_after.seconds"),
        ("output_expires_after", 3600, "output_expires_after"),
        ("model", "m", "model"),
    ],
)
def test_a_field_that_is_wrong_is_named(field: str, value: Any, named: str) -> None:
    with pytest.raises(ParameterError) as caught:
        read_batch(BODY | {field: value}, "ann", ENDPOINTS, 0)
    assert caught.value.field == named
