"""A backend with the model of the package, shared by all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import rtlang.compat.sglang as sgl


@pytest.fixture(scope="module")
def tiny() -> Iterator[sgl.Runtime]:
    with sgl.Runtime(model_path="rtlang:tiny", dtype="float32", speculation="off") as runtime:
        yield runtime


@pytest.fixture
def backend(tiny: sgl.Runtime) -> Iterator[sgl.Runtime]:
    """The model of the package as the default backend."""
    sgl.set_default_backend(tiny)
    yield tiny
    sgl.set_default_backend(None)
