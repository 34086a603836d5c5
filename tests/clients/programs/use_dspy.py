"""dspy: chat and JSON adapters, held to their formats by the server; a completion model; a stream of predictions."""

from __future__ import annotations

import dspy
from address import KEY, MODEL, QUESTION, URL
from shared import SCHEMA

options = {"api_base": URL, "api_key": KEY, "cache": False, "temperature": 0.5, "max_tokens": 100}
form = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}}
dspy.configure(lm=dspy.LM(f"openai/{MODEL}", response_format=form, **options), adapter=dspy.JSONAdapter())
person = dspy.Predict("question -> name: str, age: int")(question=QUESTION)
assert 0 <= person.age <= 120
assert isinstance(person.name, str)

markers = r"\[\[ ## answer ## \]\]\n(yes|no)\n\n\[\[ ## completed ## \]\]"
held = dspy.LM(f"openai/{MODEL}", extra_body={"regex": markers}, **options)
dspy.configure(lm=held, adapter=dspy.ChatAdapter())
assert dspy.Predict("question -> answer: bool")(question=QUESTION).answer in (True, False)
predictions = dspy.Predict("question -> answer").batch([dspy.Example(question="a").with_inputs("question")] * 3)
assert all(each.answer in ("yes", "no") for each in predictions)

assert dspy.LM(f"openai/{MODEL}", model_type="text", **options)(QUESTION)
assert dspy.LM(f"openai/{MODEL}", model_type="responses", **options)(QUESTION)
