// The AI SDK with its providers for OpenAI (chat and responses) and for compatible servers.
import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateObject, generateText, Output, stepCountIs, streamObject, streamText, tool } from "ai";
import { z } from "zod";

const baseURL = `${process.env.RTLANG_CLIENTS_URL}/v1`;
const apiKey = process.env.RTLANG_CLIENTS_KEY;
const Person = z.object({ name: z.string().max(20), age: z.number().int().min(0).max(120) });
const prompt = "Who is at the door? Give a name and an age.";
const compatible = createOpenAICompatible({ name: "rtlang", baseURL, apiKey, supportsStructuredOutputs: true });
const openai = createOpenAI({ baseURL, apiKey });

for (const model of [compatible("rtlang:tiny"), openai.chat("rtlang:tiny"), openai.responses("rtlang:tiny")]) {
  const options = { model, prompt, temperature: 0, maxOutputTokens: 80 };
  const whole = await generateText(options);
  assert.ok(whole.text);
  assert.ok(whole.usage.outputTokens > 0);
  let text = "";
  for await (const piece of streamText(options).textStream) text += piece;
  assert.equal(text, whole.text);
  Person.parse((await generateObject({ ...options, schema: Person })).object);
  Person.parse((await generateText({ ...options, output: Output.object({ schema: Person }) })).output);
  const streamed = streamObject({ ...options, schema: Person });
  for await (const part of streamed.partialObjectStream) assert.ok(part);
  Person.parse(await streamed.object);
  const seen = [];
  const greet = tool({
    description: "Greets a person.",
    inputSchema: Person,
    execute: async (person) => {
      seen.push(person);
      return "hello";
    },
  });
  const called = await generateText({ ...options, tools: { greet }, toolChoice: "required", stopWhen: stepCountIs(2) });
  assert.equal(called.steps.length, 2);
  seen.forEach((person) => Person.parse(person));
  assert.ok(seen.length >= 1);
}
