"""Fixtures of the contract's tests."""

from tests.support.programs.target_fixture import target as target
