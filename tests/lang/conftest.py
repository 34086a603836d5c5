"""Fixtures of the language's tests."""

from tests.support.target_fixture import target as target
