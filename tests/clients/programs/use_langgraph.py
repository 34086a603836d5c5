"""LangGraph: an agent with tools over chat completions and the responses API, parallel calls, streams, a checkpointed second turn."""

from __future__ import annotations

from address import ALIAS, KEY, SCRIPTED
from dialogue import ADA, ANSWER, COMPARED, DOOR, STORY, THOUGHT, TOLD, TWO_CITIES, WEATHER, get_weather, take_asked
from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from shared import Person

for uses_responses in (False, True):
    model = ChatOpenAI(base_url=SCRIPTED, api_key=KEY, model=ALIAS, max_retries=0, use_responses_api=uses_responses)
    agent = create_agent(model, tools=[get_weather], checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "a"}}
    messages = agent.invoke({"messages": [("user", WEATHER)]}, thread)["messages"]
    assert messages[-1].text == ANSWER, messages
    assert take_asked() == ["Oslo"]
    assert [each.type for each in messages] == ["human", "ai", "tool", "ai"]
    assert messages[-1].usage_metadata["input_token_details"]["cache_read"] > 0
    if uses_responses:
        thoughts = [part for part in messages[1].content if part["type"] == "reasoning"]
        assert THOUGHT in str(thoughts)
    again = agent.invoke({"messages": [("user", TWO_CITIES)]}, thread)["messages"]
    assert again[-1].text == COMPARED
    assert sorted(take_asked()) == ["Oslo", "Rome"]
    assert len(again) == 9
    pieces = [
        part.text
        for part, where in agent.stream(
            {"messages": [("user", STORY)]}, {"configurable": {"thread_id": "b"}}, stream_mode="messages"
        )
        if where["langgraph_node"] == "model"
    ]
    assert "".join(pieces) == TOLD
    assert len(pieces) > 3
    former = create_agent(model, tools=[get_weather], response_format=ProviderStrategy(Person))
    found = former.invoke({"messages": [("user", DOOR)]})["structured_response"]
    assert found.model_dump() == ADA
