"use strict";
// Tests of the logic of the live page: node live_page_test.js LOGIC, which test_routes_page.py takes from the page.
const assert = require("node:assert/strict");
const page = require(process.argv[2]);

const tests = {
  "numbers are readable"() {
    assert.equal(page.count(1234567.4), "1,234,567");
    assert.deepEqual([0, 1, 2000].map((n) => page.counted(n, "page")), ["0 pages", "1 page", "2,000 pages"]);
    assert.equal(page.percent(1, 3), "33 %");
    assert.equal(page.percent(0, 0), "–");
    assert.equal(page.bytes(999), "999 B");
    assert.equal(page.bytes(3 * 1024 ** 3), "3 GiB");
  },

  "a request has the id that its answer has"() {
    const request = { request_id: 7, door_request_id: "abc", principal: "ana", state: "running", num_prompt_tokens: 1, num_output_tokens: 20, age_s: 1.25 };
    assert.equal(page.requestLine(request), "abc of ana: running, 1 prompt token, 20 generated, 1.3 s");
    assert.match(page.requestLine({ ...request, door_request_id: "", principal: "" }), /^request 7 of this process: /);
  },

  "a problem in JSON has a place"() {
    assert.deepEqual(page.checkJson('{"a": 1}'), { value: { a: 1 }, problem: null });
    const cases = [
      ['{\n "a": x\n}', "Line 2, column 7: expected a value."],
      ["", "Line 1, column 1: expected a value."],
      ['{"a": 1,}', "Line 1, column 9: expected a name in double quotes."],
      ["[1 2]", "Line 1, column 4: expected , or ]."],
      ['{"a" 1}', "Line 1, column 6: expected :."],
      ['{"a": {"b": [true, []]}\n', "Line 2, column 1: expected , or }."],
      ['{"a": "x\ny"}', "Line 1, column 7: expected the end of the string, without line breaks and unknown escapes."],
      ["{} {}", "Line 1, column 4: expected nothing more."],
      ["01", "Line 1, column 2: expected nothing more."],
      ["{'a': 1}", "Line 1, column 2: expected a name in double quotes or }."],
    ];
    for (const [text, problem] of cases) assert.deepEqual(page.checkJson(text), { value: undefined, problem });
    const whole = JSON.stringify({ a: [1, -2.5e3, "x\\u00e9\n", null, { b: true, c: [] }], d: {} }, null, 1);
    for (let cut = 0; cut < whole.length; cut++) assert.match(page.checkJson(whole.slice(0, cut)).problem ?? "", /^Line/);
    for (let at = 0; at < whole.length; at++) {
      const text = `${whole.slice(0, at)}~${whole.slice(at + 1)}`, { problem } = page.checkJson(text);
      if (problem) assert.ok(page.checkJson(text).problem.startsWith("Line"), text);
    }
  },

  "a form becomes the message of the protocol"() {
    const form = { mode: "prompt", prompt: "Hello", system: "", kind: "", source: "", max_tokens: "8", temperature: "0.5", top_p: "1", seed: "" };
    assert.deepEqual(page.openOf(form), { problem: null, fields: { kind: "generate", body: { prompt: "Hello", params: { max_tokens: 8, temperature: 0.5, top_p: 1 } } } });
    const chat = page.openOf({ ...form, mode: "chat", system: "Be brief.", seed: "7" }).fields;
    assert.equal(chat.kind, "chat");
    assert.deepEqual(chat.body.messages, [{ role: "system", content: "Be brief." }, { role: "user", content: "Hello" }]);
    assert.equal(chat.body.params.seed, 7);
    const schema = page.openOf({ ...form, kind: "json_schema", source: '{"type": "integer"}' }).fields.body;
    assert.deepEqual(schema.constraint, { kind: "json_schema", source: '{"type": "integer"}', whitespace: "compact" });
    assert.equal(schema.params.distortion, true);
    const choice = page.openOf({ ...form, kind: "choice", source: "yes\n no \n\nyes" }).fields.body.constraint;
    assert.deepEqual(choice, { kind: "choice", source: '["yes","no"]' });
  },

  "what the form cannot send is said by name"() {
    const form = { mode: "prompt", prompt: "x", system: "", kind: "", source: "", max_tokens: "8", temperature: "0", top_p: "1", seed: "" };
    for (const [name, value] of [["max_tokens", "0"], ["max_tokens", "1.5"], ["max_tokens", ""], ["temperature", "-1"], ["temperature", "warm"], ["top_p", "0"], ["top_p", "1.1"], ["seed", "-3"], ["seed", "1e400"]]) {
      assert.match(page.openOf({ ...form, [name]: value }).problem, new RegExp(`^${name} = `), `${name} ${value}`);
    }
    assert.equal(page.openOf({ ...form, prompt: "" }).fields, null);
    for (const source of ["{", "[1]", "3", "null", "  "]) assert.ok(page.openOf({ ...form, kind: "json_schema", source }).problem, source);
    assert.equal(page.openOf({ ...form, kind: "json_schema", source: "true" }).problem, null);
  },

  "events are read however they are cut"() {
    const text = 'event: snapshot\ndata: {"a":1}\n\n: nothing\n\ndata: x\ndata: y\n\nevent: end\ndata: {}\n\ndata: incomp';
    const whole = page.eventReader()(text);
    assert.deepEqual(whole, [{ event: "snapshot", data: '{"a":1}' }, { event: "message", data: "x\ny" }, { event: "end", data: "{}" }]);
    for (let size = 1; size < 20; size++) {
      const read = page.eventReader(), found = [];
      for (let i = 0; i < text.length; i += size) found.push(...read(text.slice(i, i + size)));
      assert.deepEqual(found, whole);
    }
  },

  "boxes lie beside those that they continue and never overlap"() {
    let state = 1;
    const random = (n) => (state = (state * 48271) % 2147483647) % n;
    for (let round = 0; round < 200; round++) {
      const prefixes = [];
      for (let id = 1; id <= 1 + random(30); id++) {
        const parent = prefixes.length && random(4) ? prefixes[random(prefixes.length)].prefix_id : null;
        prefixes.push({ prefix_id: id * 7919 % 1009, parent_id: parent, num_tokens: 1 + random(300), num_users: random(3), text: "" });
      }
      const { boxes, numLines, width } = page.layOut(prefixes.slice(random(3)), prefixes.slice(0, random(3)));
      const byId = new Map(boxes.map((box) => [box.prefix_id, box]));
      assert.equal(byId.size, boxes.length);
      const area = boxes.filter((box) => !boxes.some((other) => other.parent_id === box.prefix_id)).length;
      assert.equal(numLines, area, "one line for each end");
      for (const box of boxes) {
        const parent = byId.get(box.parent_id);
        assert.ok(box.x + box.width <= width + 1e-9 && box.top + box.height <= numLines);
        if (parent) {
          assert.equal(box.x, parent.x + parent.width);
          assert.equal(box.start, parent.start + parent.num_tokens);
          assert.ok(box.top >= parent.top && box.top + box.height <= parent.top + parent.height);
        } else assert.equal(box.x, 0);
        for (const other of boxes) {
          const apart = box === other || box.x + box.width <= other.x + 1e-9 || other.x + other.width <= box.x + 1e-9 || box.top + box.height <= other.top || other.top + other.height <= box.top;
          assert.ok(apart, "boxes overlap");
        }
      }
    }
  },

  "a shared beginning is as high as all that continue it"() {
    const prefixes = [{ prefix_id: 1, parent_id: null, num_tokens: 400, num_users: 3 }, ...[2, 3, 4].map((id) => ({ prefix_id: id, parent_id: 1, num_tokens: 9, num_users: 1 }))];
    const { boxes } = page.layOut(prefixes);
    assert.equal(boxes.find((box) => box.prefix_id === 1).height, 3);
    assert.deepEqual(prefixes.map(page.useOf), ["shared", "single", "single", "single"]);
    assert.equal(page.useOf({ num_users: 0 }), "stored");
  },

  "prefixes that are gone are lost, and known ones win over lost ones"() {
    const before = [{ prefix_id: 1 }, { prefix_id: 2 }, { prefix_id: 3 }];
    assert.deepEqual(page.lostOf(before, [{ prefix_id: 2 }, { prefix_id: 9 }]), [{ prefix_id: 1 }, { prefix_id: 3 }]);
    const { boxes } = page.layOut([{ prefix_id: 1, parent_id: null, num_tokens: 4 }], [{ prefix_id: 1, parent_id: null, num_tokens: 4 }, { prefix_id: 5, parent_id: 1, num_tokens: 2 }]);
    assert.deepEqual(boxes.map((box) => [box.prefix_id, box.isLost, box.start]), [[1, false, 0], [5, true, 4]]);
  },

  "requests keep their line while they are visible, and lines are used again"() {
    const timeline = page.timeline(3), step = (number, ...ids) => ({ number, rows: ids.map((id) => [id, 1, 8, 4, false, true, ""]) });
    timeline.add(step(1, 10, 11));
    assert.deepEqual(timeline.steps[0].rows[1], { request_id: 11, num_tokens: 1, num_computed_tokens: 8, num_cached_tokens: 4, is_prompt: false, is_constrained: true });
    timeline.add(step(2, 11, 12));
    assert.deepEqual([...timeline.lines], [[10, 0], [11, 1], [12, 2]]);
    timeline.add(step(3, 12));
    timeline.add(step(4, 12, 13)); // step 1 leaves, and request 10 with it
    assert.deepEqual([...timeline.lines], [[11, 1], [12, 2], [13, 0]]);
    assert.equal(timeline.steps.length, 3);
    assert.equal(timeline.numLines, 3);
    timeline.add(step(1, 5)); // a new engine counts from the start
    assert.deepEqual([...timeline.lines], [[5, 0]]);
  },

  "rates are differences, and none without a time or across engines"() {
    const at = (taken_s, num_steps, num_generated_tokens, num_queried_tokens, num_hit_tokens) => ({ taken_s, num_steps, num_generated_tokens, num_queried_tokens, num_hit_tokens });
    assert.deepEqual(page.ratesOf(at(1, 1, 10, 100, 50), at(3, 5, 30, 200, 125)), { speed: 10, hitRate: 0.75 });
    assert.deepEqual(page.ratesOf(at(1, 1, 10, 100, 50), at(1, 1, 10, 100, 50)), { speed: 0, hitRate: null });
    assert.deepEqual(page.ratesOf(at(9, 50, 10, 100, 50), at(10, 1, 10, 100, 50)), { speed: 0, hitRate: null });
    assert.equal(page.linePoints([0, 5, 10], 10, 3), "0.0,21.0 50.0,11.0 100.0,1.0");
  },

  "tokens are cut by their lengths in characters, not in units of UTF-16"() {
    const spans = page.steeredSpans("a🦊bc", [[0.1, 1], [2.0, 2], [0.2, 4]]);
    assert.deepEqual(spans, [{ text: "a", isSteered: false }, { text: "🦊", isSteered: true }, { text: "bc", isSteered: false }]);
    assert.deepEqual(page.steeredSpans("abc", [[5, 1], [5, 1]]), [{ text: "a", isSteered: true }, { text: "bc", isSteered: false }]);
  },

  "the demonstration says what was saved"() {
    const figures = page.demoFigures([{ prompt_tokens: 410, cached_tokens: 0 }, { prompt_tokens: 390, cached_tokens: 380 }]);
    assert.deepEqual([figures.asked, figures.computed, figures.cached], [800, 420, 380]);
    assert.match(figures.sentence, /2 requests asked for 800 prompt tokens; 420 were computed.*saved 380 tokens \(48 %\)/);
    const prompts = page.demoPrompts(5);
    assert.equal(new Set(prompts).size, 6);
    const shared = (a, b) => { let n = 0; while (a[n] === b[n]) n++; return n; };
    assert.ok(shared(prompts[0], prompts[5]) > 0.9 * prompts[0].length);
    assert.ok(shared(page.demoPrompts(5)[0], page.demoPrompts(6)[0]) < 20, "a new number is a new beginning");
  },
};

for (const [name, test] of Object.entries(tests)) {
  try {
    test();
  } catch (error) {
    console.error(`FAILED: ${name}`);
    throw error;
  }
}
console.log(`${Object.keys(tests).length} tests passed`);
