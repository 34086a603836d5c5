// The official client for JavaScript in WebSocket mode of the Responses API: turns, prepared prompts, tools, structured output, errors.
import assert from "node:assert/strict";
import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { ResponsesWS } from "openai/resources/responses/ws";
import { z } from "zod";

const last = ["response.completed", "response.incomplete", "response.failed", "error"];
const question = "Who is at the door? Give a name and an age.";
const Person = z.object({ name: z.string().max(20), age: z.number().int().min(0).max(120) });

/** A connection whose `ask` sends a request and returns the last event of its response, with the text that came before it. */
function connected(base) {
  const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: process.env.RTLANG_CLIENTS_KEY, maxRetries: 0 });
  const socket = new ResponsesWS(client);
  let take = () => {};
  let text = "";
  socket.on("error", (error) => take({ type: "error", error }));
  socket.on("event", (event) => {
    if (event.type === "response.output_text.delta") text += event.delta;
    if (last.includes(event.type) && event.type !== "error") take(event);
  });
  const ask = async (body) => {
    text = "";
    const ended = new Promise((resolve) => (take = resolve));
    socket.send({ type: "response.create", ...body });
    const event = await ended;
    return { ...event, text };
  };
  return { client, socket, ask };
}

const model = "rtlang:tiny";
const limits = { model, max_output_tokens: 40, temperature: 0, store: false };
const plain = connected(process.env.RTLANG_CLIENTS_URL);
const expected = await plain.client.responses.create({ ...limits, input: question });
assert.deepEqual((await plain.ask({ ...limits, input: question, generate: false })).response.output, []);
const whole = await plain.ask({ ...limits, input: question });
assert.equal(whole.text, expected.output_text);
assert.ok(whole.response.usage.input_tokens_details.cached_tokens > 0);
const more = { input: "And now?", previous_response_id: whole.response.id };
const second = await plain.ask({ ...limits, ...more });
assert.ok(second.response.usage.input_tokens > whole.response.usage.input_tokens);
const formed = await plain.ask({ model, input: question, text: { format: zodTextFormat(Person, "person") } });
Person.parse(JSON.parse(formed.text));
assert.equal((await plain.ask({ ...limits, ...more })).error.error.error.code, "previous_response_not_found");
assert.equal((await plain.ask({ model, input: question, temperature: -3 })).error.error.error.param, "temperature");
assert.equal((await plain.ask({ model: "unknown", input: question })).error.error.status, 404);
plain.socket.close();

// A loop of a tool, of which each turn sends the new item only.
const scripted = connected(process.env.RTLANG_CLIENTS_SCRIPTED);
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tools = [{ type: "function", name: "get_weather", parameters, strict: false }];
const given = { model: process.env.RTLANG_CLIENTS_ALIAS, tools, store: false };
const { response } = await scripted.ask({ ...given, input: "What is the weather in Oslo?" });
const [call] = response.output.filter((item) => item.type === "function_call");
assert.deepEqual(JSON.parse(call.arguments), { city: "Oslo" });
const output = { type: "function_call_output", call_id: call.call_id, output: "9 degrees" };
const answered = await scripted.ask({ ...given, input: [output], previous_response_id: response.id });
assert.equal(answered.text, "It is 9 degrees in Oslo.");
scripted.socket.close();
