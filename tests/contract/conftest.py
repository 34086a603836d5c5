"""Fixtures of the contract's tests."""

from tests.support.target_fixture import target as target
