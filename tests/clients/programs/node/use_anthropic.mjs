// The official JavaScript client of the Messages API: messages, streams, tools, structured output, counts, models, errors.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { z } from "zod";

const model = "rtlang:tiny";
const client = new Anthropic({
  baseURL: process.env.RTLANG_CLIENTS_URL,
  apiKey: process.env.RTLANG_CLIENTS_KEY,
  maxRetries: 0,
});
const Person = z.object({ name: z.string().max(20), age: z.number().int().min(0).max(120) });
const Mood = z.object({ mood: z.enum(["calm", "loud"]), again: z.boolean() }); // the client sends no limits of lengths
const messages = [{ role: "user", content: "Who is at the door? Give a name and an age." }];
const options = { model, messages, max_tokens: 4 };

const whole = await client.messages.create(options);
assert.equal(whole.type, "message");
assert.equal(whole.stop_reason, "max_tokens");
assert.equal(whole.usage.output_tokens, 4);
const counted = await client.messages.countTokens({ model, messages });
assert.equal(counted.input_tokens, whole.usage.input_tokens + whole.usage.cache_read_input_tokens);

let shown = "";
const stream = client.messages.stream(options).on("text", (delta) => (shown += delta));
const final = await stream.finalMessage();
assert.equal(final.content[0].text, shown);
assert.equal(final.usage.output_tokens > 0, true);
assert.ok(stream.request_id);
const kinds = [];
for await (const event of await client.messages.create({ ...options, stream: true })) kinds.push(event.type);
assert.equal(kinds[0], "message_start");
assert.equal(kinds.at(-1), "message_stop");

const parsed = await client.messages.parse({
  ...options,
  max_tokens: 200,
  output_config: { format: zodOutputFormat(Mood) },
});
Mood.parse(parsed.parsed_output);

const tools = [{ name: "greet", description: "Greets a person.", input_schema: z.toJSONSchema(Person) }];
const called = await client.messages
  .stream({ ...options, max_tokens: 200, tools, tool_choice: { type: "any" } })
  .on("inputJson", (part, snapshot) => assert.equal(typeof snapshot, "object"))
  .finalMessage();
const use = called.content.find((block) => block.type === "tool_use");
Person.parse(use.input);
assert.equal(called.stop_reason, "tool_use");
const result = { type: "tool_result", tool_use_id: use.id, content: "hello" };
const history = [...messages, { role: "assistant", content: called.content }, { role: "user", content: [result] }];
await client.messages.create({ ...options, messages: history, tools });

const greeted = [];
const greet = betaZodTool({
  name: "greet",
  description: "Greets a person.",
  inputSchema: Mood,
  run: ({ mood }) => {
    greeted.push(mood);
    return `Hello, ${mood} person!`;
  },
});
const runner = client.beta.messages.toolRunner({
  ...options,
  max_tokens: 200,
  tools: [greet],
  tool_choice: { type: "any" },
  max_iterations: 2,
});
for await (const message of runner) assert.equal(message.type, "message");
assert.ok(greeted.length);

const listed = [];
for await (const each of client.models.list({ limit: 5 })) listed.push(each.id);
assert.deepEqual(listed, [model, process.env.RTLANG_CLIENTS_ALIAS]);
await assert.rejects(client.messages.create({ ...options, bogus: 2 }), Anthropic.BadRequestError);
await assert.rejects(client.messages.create({ ...options, model: "other" }), (error) => error instanceof Anthropic.NotFoundError && Boolean(error.requestID));
const stranger = new Anthropic({ baseURL: process.env.RTLANG_CLIENTS_URL, apiKey: "wrong", maxRetries: 0 });
await assert.rejects(stranger.messages.create(options), Anthropic.AuthenticationError);
const long = [{ role: "user", content: "word ".repeat(5000) }];
await assert.rejects(client.messages.create({ ...options, messages: long }), /prompt is too long: \d+ tokens > \d+ maximum/);
