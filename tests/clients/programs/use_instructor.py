"""instructor in the modes that hold the model to a schema, with partial objects and lists of objects as they stream."""

from __future__ import annotations

import instructor
import openai
from address import KEY, MESSAGES, MODEL, URL
from shared import Person, check_person

for mode in ("TOOLS", "TOOLS_STRICT", "JSON_SCHEMA", "RESPONSES_TOOLS"):
    client = instructor.from_openai(openai.OpenAI(base_url=URL, api_key=KEY), mode=instructor.Mode[mode])
    check_person(client.chat.completions.create(model=MODEL, messages=MESSAGES, response_model=Person, max_retries=0))

client = instructor.from_openai(openai.OpenAI(base_url=URL, api_key=KEY))
parts = list(client.chat.completions.create_partial(model=MODEL, messages=MESSAGES, response_model=Person))
assert len(parts) > 1
check_person(parts[-1].model_dump())
people = client.chat.completions.create_iterable(model=MODEL, messages=MESSAGES, response_model=Person)
for person in people:
    check_person(person)
