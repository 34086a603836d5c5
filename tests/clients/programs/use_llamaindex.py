"""LlamaIndex: completion, chat and streams, structured prediction with its default, which sends strict: false, and with strict outputs."""

from __future__ import annotations

from address import ALIAS, KEY, QUESTION, URL
from llama_index.core.llms import ChatMessage
from llama_index.core.program import FunctionCallingProgram
from llama_index.core.prompts import PromptTemplate
from llama_index.llms.openai import OpenAI
from pydantic import BaseModel, Field
from shared import Person, check_person


class Household(BaseModel):
    """A household."""

    street: str = Field(max_length=20)
    people: list[Person] = Field(max_length=2)


options = {"model": ALIAS, "api_base": URL, "api_key": KEY, "max_retries": 0, "temperature": 1.0}
llm = OpenAI(**options, max_tokens=300)
prompt, question = PromptTemplate("{question}"), ChatMessage(role="user", content=QUESTION)
assert llm.complete(QUESTION).text
assert "".join(part.delta or "" for part in llm.stream_chat([question]))
for model in (Person, Household):
    for seed in range(4):
        seeded = OpenAI(**options, max_tokens=300, additional_kwargs={"seed": seed})
        found = seeded.structured_predict(model, prompt, question=QUESTION)
        model.model_validate(found.model_dump())
        program = FunctionCallingProgram.from_defaults(model, prompt=prompt, llm=seeded)
        model.model_validate(program(question=QUESTION).model_dump())
        answer = seeded.as_structured_llm(model).chat([question])
        model.model_validate_json(answer.message.content)
strict = OpenAI(**options, max_tokens=300, strict=True)
check_person(strict.structured_predict(Person, prompt, question=QUESTION).model_dump())
