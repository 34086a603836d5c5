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
