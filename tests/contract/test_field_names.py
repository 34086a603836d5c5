"""Unknown fields are errors that name them."""

from __future__ import annotations

import pytest

from rtlang.contract.errors import GraphError
from rtlang.contract.field_names import check_fields


def test_known_fields_pass() -> None:
    check_fields({"prompt": 1}, ("prompt", "params"), "a body")


def test_an_unknown_field_is_named_with_its_node_and_the_closest_known_one() -> None:
    with pytest.raises(GraphError, match="did you mean temperature") as caught:
        check_fields({"temperatur": 1}, ("temperature", "top_p"), "a node", 7)
    assert (caught.value.node_id, caught.value.field) == (7, "temperatur")
