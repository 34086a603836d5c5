"""Fixtures of the language's tests."""

from tests.support.programs.target_fixture import target as target
