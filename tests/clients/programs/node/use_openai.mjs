// The official client for JavaScript: chat, completions, responses, streams, structured output, errors.
import assert from "node:assert/strict";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const model = "rtlang:tiny";
const client = new OpenAI({
  baseURL: `${process.env.RTLANG_CLIENTS_URL}/v1`,
  apiKey: process.env.RTLANG_CLIENTS_KEY,
  maxRetries: 0,
});
const Person = z.object({ name: z.string().max(20), age: z.number().int().min(0).max(120) });
const question = "Who is at the door? Give a name and an age.";
const messages = [{ role: "user", content: question }];
const options = { model, messages, temperature: 0, max_tokens: 10 };

const whole = (await client.chat.completions.create(options)).choices[0].message.content;
assert.ok(whole);
let text = "";
for await (const chunk of await client.chat.completions.create({ ...options, stream: true })) {
  text += chunk.choices[0]?.delta?.content ?? "";
}
assert.equal(text, whole);
const parsed = await client.chat.completions.parse({ model, messages, response_format: zodResponseFormat(Person, "person") });
Person.parse(parsed.choices[0].message.parsed);
const tools = [{ type: "function", function: { name: "greet", parameters: z.toJSONSchema(Person) } }];
const stream = client.chat.completions.stream({ model, messages, tools, tool_choice: "required" });
const called = await stream.finalChatCompletion();
Person.parse(JSON.parse(called.choices[0].message.tool_calls[0].function.arguments));
assert.ok((await client.completions.create({ model, prompt: "The sun is", max_tokens: 4 })).choices[0].text);

const first = await client.responses.create({ model, input: question, temperature: 0, max_output_tokens: 8 });
assert.ok(first.output_text);
const more = await client.responses.create({ model, input: "And?", previous_response_id: first.id, max_output_tokens: 4 });
assert.ok(more.usage.input_tokens > first.usage.input_tokens);
const formed = await client.responses.parse({ model, input: question, text: { format: zodTextFormat(Person, "person") } });
Person.parse(formed.output_parsed);
let numbers = [];
for await (const event of await client.responses.create({ model, input: question, max_output_tokens: 8, stream: true })) {
  numbers.push(event.sequence_number);
}
assert.deepEqual(numbers, [...numbers.keys()]);
await assert.rejects(client.chat.completions.create({ ...options, speed: 2 }), (error) => error.status === 400 && error.param === "speed");

// With a scripted model: a runner of tools, and a loop over the responses API.
const scripted = new OpenAI({ baseURL: `${process.env.RTLANG_CLIENTS_SCRIPTED}/v1`, apiKey: process.env.RTLANG_CLIENTS_KEY, maxRetries: 0 });
const alias = process.env.RTLANG_CLIENTS_ALIAS;
const weather = "What is the weather in Oslo?";
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const asked = [];
const getWeather = ({ city }) => (asked.push(city), "9 degrees and rain");
const runnable = { type: "function", function: { name: "get_weather", description: "The weather.", parameters, parse: JSON.parse, function: getWeather } };
for (const streams of [false, true]) {
  const runner = scripted.chat.completions.runTools({ model: alias, stream: streams, messages: [{ role: "user", content: weather }], tools: [runnable] });
  assert.equal(await runner.finalContent(), "It is 9 degrees in Oslo.");
}
assert.deepEqual(asked, ["Oslo", "Oslo"]);
const declared = [{ type: "function", name: "get_weather", parameters, strict: false }];
const made = await scripted.responses.create({ model: alias, input: weather, tools: declared });
const call = made.output.find((item) => item.type === "function_call");
assert.equal(made.output.find((item) => item.type === "reasoning").type, "reasoning");
assert.deepEqual(JSON.parse(call.arguments), { city: "Oslo" });
const result = { type: "function_call_output", call_id: call.call_id, output: "9 degrees" };
const replied = await scripted.responses.create({ model: alias, previous_response_id: made.id, input: [result], tools: declared });
assert.equal(replied.output_text, "It is 9 degrees in Oslo.");
const whole2 = await scripted.responses.create({ model: alias, input: [{ role: "user", content: weather }, ...made.output, result], tools: declared });
assert.equal(whole2.output_text, "It is 9 degrees in Oslo.");
