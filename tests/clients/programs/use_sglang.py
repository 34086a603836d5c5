"""SGLang's frontend language on its RuntimeEndpoint: generations, types, regexes, all ways to select, streams, batches."""

from __future__ import annotations

import re

import sglang as sgl
from address import KEY, MODEL, SERVER
from sglang.lang.backend.runtime_endpoint import RuntimeEndpoint

endpoint = RuntimeEndpoint(SERVER, api_key=KEY)
sgl.set_default_backend(endpoint)
assert endpoint.get_model_name() == MODEL
assert endpoint.get_server_info()["version"]


@sgl.function
def program(s, question):
    s += sgl.user(question)
    s += sgl.assistant(sgl.gen("answer", max_tokens=8, temperature=0))
    s += "In short: " + sgl.gen("word", regex="[a-z]{3,8}", max_tokens=16)
    s += ", number " + sgl.gen("number", dtype=int, max_tokens=8)
    forks = s.fork(2)
    for i, fork in enumerate(forks):
        fork += f" {i}: " + sgl.gen("more", max_tokens=4)
    forks.join()
    s += forks[0]["more"] + " so " + sgl.select("verdict", ["yes", "no", "perhaps not"])


@sgl.function
def choose(s, method):
    s += "The sun is " + sgl.select("choice", ["warm", "a dog", "zqxj vvk"], choices_method=method)


state = program.run(question="Who is there?")
assert re.fullmatch("[a-z]{3,8}", state["word"])
int(state["number"])
assert state["number"] == state["number"].strip()
assert state["verdict"] in ("yes", "no", "perhaps not")
assert state.get_meta_info("answer")["prompt_tokens"] > 0
for method in (sgl.token_length_normalized, sgl.greedy_token_selection, sgl.unconditional_likelihood_normalized):
    assert choose.run(method=method)["choice"] != "zqxj vvk"
streamed = program.run(question="Who is there?", stream=True)
assert "".join(streamed.text_iter("answer")) == state["answer"]
states = program.run_batch([{"question": "a"}, {"question": "b"}, {"question": "c"}])
assert all(each["verdict"] for each in states)
endpoint.cache_prefix("The sun is")
endpoint.flush_cache()
