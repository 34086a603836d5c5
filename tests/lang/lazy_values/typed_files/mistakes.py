"""Mistakes that users make, one a function; type checkers find the marked lines."""

from __future__ import annotations

import enum
from typing import Literal

from pydantic import BaseModel

import rtlang as rt


class Invoice(BaseModel):
    total: int
    customer: str


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


def search(query: str) -> str:
    """Search."""
    return query


@rt.program
def greet(s: rt.State, name: str, tone: str = "warm") -> str:
    s += rt.user("Greet ", name, tone)
    return s.gen("greeting", max_tokens=20)


@rt.program
async def triage(s: rt.State, review: str) -> str:
    s += rt.text(review)
    s += rt.gen("label", max_tokens=4)
    return str(await s["label"])


@rt.program
def appends_nothing(s: rt.State) -> None:
    s += None  # refused


@rt.program
def appends_a_function(s: rt.State) -> None:
    s += search  # refused


@rt.program
def adds_to_the_state(s: rt.State) -> None:
    s + rt.gen("x")  # refused


@rt.program
def puts_an_optional_into_text(s: rt.State, hint: str | None = None) -> None:
    s += rt.user("Hint: ", hint)  # refused


@rt.program
def misspells_a_field(s: rt.State) -> int:
    invoice = s.gen("invoice", Invoice)
    return invoice.totl  # refused


@rt.program
def forgets_that_it_may_be_none(s: rt.State) -> int:
    invoice = s.gen("invoice", Invoice | None)
    return invoice.total  # refused


@rt.program
def returns_another_type(s: rt.State) -> int:
    return s.gen("number", max_tokens=4)  # refused


@rt.program
def takes_text_for_a_number(s: rt.State) -> str:
    return s.gen("number", int).strip()  # refused


@rt.program
def gives_a_number_for_the_type(s: rt.State) -> None:
    s.gen("text", 20)  # refused


@rt.program
def misspells_an_option(s: rt.State) -> None:
    s += rt.gen("x", temprature=0.5)  # refused


@rt.program
def misspells_an_option_of_a_handle(s: rt.State) -> None:
    s.gen("x", Invoice, max_token=20)  # refused


@rt.program
def gives_an_option_of_a_wrong_type(s: rt.State) -> None:
    s += rt.gen("x", max_tokens="20")  # refused


@rt.program
def names_an_unknown_method(s: rt.State) -> None:
    s += rt.select("x", ["a", "b"], method="nope")  # refused


@rt.program
def takes_a_choice_for_another(s: rt.State) -> Literal["small", "large"]:
    return s.select("size", ["small", "medium"])  # refused


@rt.program
def misspells_a_member(s: rt.State) -> bool:
    return s.select("color", Color) == Color.GREEN  # refused


@rt.program
def takes_a_call_for_a_reply(s: rt.State) -> int:
    return len(s.gen("call", tools=[search]).calls)  # refused


@rt.program
def takes_one_value_for_a_list(s: rt.State) -> list[int]:
    return s.gen("x", int)  # refused


@rt.program
def takes_a_list_for_one_value(s: rt.State) -> str:
    return s.fork(2).gen("x")  # refused


@rt.program
def misspells_metadata(s: rt.State) -> int:
    s += rt.gen("x")
    return s.meta("x").usage.prompt_token  # refused


@rt.program
async def forgets_to_await(s: rt.State) -> str:
    label: str = triage(s, review="x")  # refused
    return label


@rt.program
async def drops_a_coroutine(s: rt.State) -> None:
    triage(s, review="x")  # refused


def wrong_runs() -> None:
    greet.run(nam="Ada")  # refused
    greet.run(name=3)  # refused
    greet.run("Ada", on_error="ignore")  # refused
    length: int = greet.run("Ada").value  # refused
    print(greet.run("Ada").meta("greeting").finish_reson, length)  # refused


def wrong_settings() -> None:
    rt.Runtime(devise="cpu")  # refused
    rt.Runtime(device="gpu")  # refused
    rt.Runtime(num_threads="4")  # refused
    rt.connect("ws://127.0.0.1:8420", timeout=3)  # refused
    rt.Sampling(temprature=0.5)  # refused
    rt.Sampling(stop=3)  # refused
