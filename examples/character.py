"""A character sheet as JSON: the model writes it, a pydantic model says what it must look like.

rtlang run examples/character.py:character --arg name=Mira --arg role=pilot --arg home=Oslo
python examples/character.py
"""

from __future__ import annotations

from pydantic import BaseModel, Field

import rtlang as rt


class Character(BaseModel):
    name: str
    age: int = Field(ge=0, le=150)
    role: str
    home: str
    traits: list[str] = Field(min_length=2, max_length=4)
    motto: str


@rt.program
def character(s: rt.State, name: str = "Mira", role: str = "pilot", home: str = "Oslo") -> Character:
    """One user message, one constrained answer."""
    s += rt.user(
        f"Describe {name}, a {role} from {home}, as JSON with name, age, role, home, traits, motto.",
    )
    s += rt.assistant(rt.gen("sheet", schema=Character, max_tokens=160))
    return s["sheet"]


def main() -> None:
    with rt.Runtime() as runtime:
        sheet = character.run(runtime=runtime).value
        print(f"{sheet.name}, {sheet.age}, {sheet.role} from {sheet.home}: {', '.join(sheet.traits)}.")
        print(f'"{sheet.motto}"')


if __name__ == "__main__":
    main()
