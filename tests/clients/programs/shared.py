"""The data that the client programs ask for."""

from __future__ import annotations

from pydantic import BaseModel, Field


class Person(BaseModel):
    """A person."""

    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=120)


SCHEMA = Person.model_json_schema()
TOOL = {"type": "function", "function": {"name": "greet", "description": "Greets a person.", "parameters": SCHEMA}}


def check_person(plain: object) -> None:
    """Fail unless it is a valid person."""
    Person.model_validate(plain)
