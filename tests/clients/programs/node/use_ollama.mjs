// Ollama's client for JavaScript: chat, generate, streams, formats, models, errors.
import assert from "node:assert/strict";
import { Ollama } from "ollama";

const model = "rtlang:tiny";
const headers = { authorization: `Bearer ${process.env.RTLANG_CLIENTS_KEY}` };
const client = new Ollama({ host: process.env.RTLANG_CLIENTS_URL, headers });
const question = "Who is at the door? Give a name and an age.";
const messages = [{ role: "user", content: question }];
const options = { temperature: 0, num_predict: 10 };
const schema = { type: "object", properties: { age: { type: "integer", minimum: 0, maximum: 120 } }, required: ["age"] };

assert.equal((await client.list()).models[0].model, model);
assert.equal((await client.ps()).models[0].model, model);
assert.ok((await client.show({ model })).capabilities.includes("completion"));
assert.match((await client.version()).version, /^\d+\.\d+\.\d+$/);
const whole = await client.chat({ model, messages, options });
assert.equal(whole.eval_count, 10);
let text = "";
let last;
for await (const part of await client.chat({ model, messages, options, stream: true })) {
  text += part.message.content;
  last = part;
}
assert.equal(text, whole.message.content);
assert.equal(last.done_reason, "length");
assert.ok("age" in JSON.parse((await client.chat({ model, messages, format: schema })).message.content));
const raw = await client.generate({ model, prompt: "The sun is", raw: true, options });
text = "";
for await (const part of await client.generate({ model, prompt: "The sun is", raw: true, options, stream: true })) {
  text += part.response;
}
assert.equal(text, raw.response);
await assert.rejects(client.chat({ model: "other", messages }), /other/);
await assert.rejects(client.chat({ model, messages, options: { top_p: 7 } }), /top_p/);
await assert.rejects(client.embed({ model, input: "x" }), /embeddings/);
const stream = await client.chat({ model, messages, options: { num_predict: 500 }, stream: true });
for await (const _ of stream) {
  stream.abort();
  break;
}
