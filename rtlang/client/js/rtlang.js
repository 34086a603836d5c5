/**
 * A client of rtlang servers for browsers and Node (22 or newer), without dependencies and without a build step.
 *
 *     import { connect } from "./rtlang.js";
 *     const client = await connect("http://127.0.0.1:8420");
 *     const stream = client.generate({ prompt: "Once upon a time", params: { max_tokens: 40 } });
 *     for await (const delta of stream) process.stdout.write(delta.text);
 *     console.log((await stream.result).values.text);
 *
 * `ClientProtocol` is the protocol rtlang.v1 as a state machine without I/O; `Client` puts a WebSocket around it. A stream
 * grants credit as its reader takes deltas, so a slow reader slows its own stream only. With `resumeMs`, a broken connection is
 * replaced, and every stream goes on behind the last message that arrived; on another server process, which knows nothing of it, it
 * goes on from the tokens and outcomes that arrived. `connect` takes several addresses for that. The protocol is specified in docs/protocol-v1.md.
 */

export const SUBPROTOCOL = "rtlang.v1.json";
const PATH = "/v1/stream";
const DEFAULT_WINDOW = 1024;
const FIRST_PAUSE_MS = 50;
const LAST_PAUSE_MS = 1000;
const CONNECT_MS = 10000;
const MAX_RETRY_MS = 5000;
const MAX_GONE = 3; // times in a row that a stream is opened again because its server does not know it
const RETRIED_CODES = [1001, 1006, 1011, 1012, 1013, 4503]; // broken, too slow, or the server ended; others are decisions

/** An error of the server or of the connection; `code` is stable, `fields` is the whole message. */
export class RtlangError extends Error {
  constructor(fields) {
    super(fields.message ?? "unknown error");
    this.name = "RtlangError";
    this.code = fields.code ?? "internal";
    this.status = fields.status ?? null;
    this.param = fields.param ?? null;
    this.retryAfter = fields.retry_after ?? null;
    this.fields = fields;
  }
}

const connectionError = (message) => new RtlangError({ code: "connection", message });

function randomName() {
  const bytes = new Uint8Array(16);
  globalThis.crypto.getRandomValues(bytes);
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function randomSeed() {
  const [high, low] = globalThis.crypto.getRandomValues(new Uint32Array(2));
  return (high % 2 ** 21) * 2 ** 32 + low; // an integer that a number holds exactly
}

const blocksOf = (node) => [...(node.cases ?? []).map(([, block]) => block), node.default, node.body].filter(Boolean);

/** The node with an id among nodes and those of their blocks; in a repeated block, that of its first iteration. */
function findNode(nodes, id) {
  for (const node of nodes) {
    if (node.id === id) return node;
    const isRepeated = node.kind === "repeat" && id > node.id && id <= node.id + node.at_most * node.stride;
    const inner = isRepeated ? node.id + 1 + ((id - node.id - 1) % node.stride) : id;
    for (const block of blocksOf(node)) {
      const found = findNode(block.nodes, inner);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/** The output of a stream so far, from which another server goes on. */
class Ledger {
  constructor() {
    this.known = new Map(); // ends of nodes, by node
    this.tokens = new Map(); // of running nodes, by choice
    this.noted = new Set(); // events that come once
    this.repeated = new Map(); // numbers of tokens that the next server sends again, by "node,choice"
  }

  /** Notes a message; false if an earlier server has sent it already. */
  take({ t, e, s, ...message }) {
    const { n: node = 0, i: choice = 0, d: text, ids = [] } = message;
    if (this.noted.has(`end ${node}`)) return false;
    if (t === "delta") {
      const place = `${node},${choice}`;
      const repeated = this.repeated.get(place) ?? 0;
      if (repeated > 0) {
        this.repeated.set(place, Math.max(0, repeated - ids.length));
        return false;
      }
      if (ids.length === 0) return this.note(`tail ${place} ${text}`);
      if (!this.tokens.has(node)) this.tokens.set(node, new Map());
      const choices = this.tokens.get(node);
      if (!choices.has(choice)) choices.set(choice, []);
      choices.get(choice).push(...ids);
    } else if (e === "end" || e === "error") {
      this.noted.add(`end ${node}`);
      this.tokens.delete(node);
      if (message.code !== "dependency") this.known.set(node, { e, ...message });
    } else if (e !== "waiting") return this.note(`${e} ${node}`);
    return true;
  }

  note(key) {
    const isNew = !this.noted.has(key);
    this.noted.add(key);
    return isNew;
  }

  /** The items of `continue_from` for the next server, by node; `nodes` are those of the graph. */
  continueFrom(nodes) {
    const items = new Map();
    this.repeated.clear();
    for (const [n, choices] of this.tokens) {
      const { kind, params = {} } = findNode(nodes, n) ?? {};
      if (kind === "generate" && (params.best_of ?? 1) === 1) {
        items.set(n, { n, ids: Array.from({ length: params.n ?? 1 }, (_, choice) => choices.get(choice) ?? []) });
      } else for (const [choice, ids] of choices) this.repeated.set(`${n},${choice}`, ids.length);
    }
    return items;
  }
}

/** One stream as the protocol sees it. Changed by `ClientProtocol` only. */
class StreamState {
  constructor(s, opening, granted, ledger) {
    this.s = s;
    this.opening = opening;
    this.granted = granted;
    this.ledger = ledger; // null if the stream ends with its connection
    this.accepted = new Map(); // answered extend messages by q, for another server
    this.again = new Set(); // numbers of those that another server has not answered yet
    this.received = 0; // tokens
    this.taken = 0; // messages
    this.rid = this.epoch = this.requestId = null;
    this.isAttaching = this.hasEnded = this.wasCancelled = this.wasClosed = false;
    this.isContinued = this.isPostponed = false; // opened before on another server; a busy server opens it later
    this.numGone = 0;
    this.openedAt = this.refusedAt = null;
    this.offsets = new Map(); // next offset by "node,choice"
    this.extends = new Map(); // unanswered messages by q
    this.lastQ = this.lastAnsweredQ = 0;
    this.answers = new Map(); // to calls, by node
  }
}

/**
 * The client side of rtlang.v1. `receive` takes the text of a message and returns notices; `takeOutput` returns the texts to send.
 *
 * Notices are maps with `type`: "welcome" (`message`), "ack" (`stream`), "delta", "event", "end" (`stream`, `message`), "error" (`stream`,
 * `error`: the stream is over), "extend" (`stream`, `q`, `error` or null), "drain" (`message`), "fatal" (`error`), "useless" (`error`:
 * the server serves another model), "retry" (`stream`, `afterMs`: call `retry` then).
 */
export class ClientProtocol {
  constructor({ key = null, name = "rtlang.js", resumeMs = null, now = Date.now } = {}) {
    this.now = now;
    this.key = key;
    this.name = name;
    this.resumeMs = resumeMs;
    this.welcome = null;
    this.isConnected = false; // between welcome and the loss of the connection
    this.streams = new Map();
    this.output = [];
    this.nextStream = 1;
  }

  takeOutput() {
    return this.output.splice(0);
  }

  /** A socket has opened: says hello. Streams go on once the server has answered. */
  connected() {
    this.isConnected = false;
    this.output.length = 0;
    this.send({ t: "hello", v: 1, client: this.name, ...(this.key === null ? {} : { auth: this.key }) });
  }

  /** The socket is gone. With `final`, or for streams that cannot be resumed, the streams end with `error`. */
  disconnected(error, { final = false } = {}) {
    this.isConnected = false;
    this.output.length = 0;
    const notices = [];
    for (const stream of [...this.streams.values()]) {
      if (final || this.resumeMs === null) notices.push(this.end(stream, error));
    }
    return notices;
  }

  open(kind, body, { credit = DEFAULT_WINDOW, deadlineMs = null, progress = false, cacheSalt = null, context = null } = {}) {
    const s = this.nextStream++;
    const message = { t: "open", s, kind, body: cacheSalt === null ? body : { ...body, cache_salt: cacheSalt }, credit };
    if (deadlineMs !== null) message.deadline_ms = deadlineMs;
    if (progress) message.progress = true;
    if (context !== null) {
      const { requestId: request_id, traceparent, tracestate } = context;
      message.context = { request_id, traceparent, tracestate }; // JSON leaves out those that are not given
    }
    const isResumable = this.resumeMs !== null;
    if (isResumable) {
      const seed = body.seed ?? randomSeed(); // with which another server gives the same text
      Object.assign(message, { body: { ...message.body, seed }, detach_ms: this.resumeMs, idem: randomName() });
    }
    const stream = new StreamState(s, message, credit, isResumable ? new Ledger() : null);
    stream.openedAt = this.now();
    this.streams.set(s, stream);
    if (this.isConnected) this.send(message);
    return stream;
  }

  extend(stream, nodes, { close = false } = {}) {
    const q = ++stream.lastQ;
    const message = { t: "extend", s: stream.s, nodes, q, ...(close ? { close: true } : {}) };
    stream.extends.set(q, message);
    this.sendTo(stream, message);
    return q;
  }

  close(stream) {
    stream.wasClosed = true;
    this.sendTo(stream, { t: "close", s: stream.s });
  }

  cancel(stream) {
    stream.wasCancelled = true;
    this.sendTo(stream, { t: "cancel", s: stream.s });
  }

  resolve(stream, node, value) {
    this.answer(stream, node, { t: "resolve", s: stream.s, n: node, value });
  }

  reject(stream, node, message, code = "call") {
    this.answer(stream, node, { t: "reject", s: stream.s, n: node, code, message });
  }

  grant(stream, tokens) {
    if (stream.hasEnded || tokens <= 0) return;
    stream.granted += tokens;
    this.sendTo(stream, { t: "credit", s: stream.s, n: tokens });
  }

  /** Opens a stream that a busy server refused; returns notices. */
  retry(stream) {
    return stream.hasEnded || !stream.isPostponed || !this.isConnected ? [] : this.openAgain(stream, true);
  }

  bye() {
    this.send({ t: "bye" });
  }

  receive(text) {
    const found = JSON.parse(text);
    return (Array.isArray(found) ? found : [found]).flatMap((message) => this.take(message));
  }

  // Private

  send(message) {
    if (message.t === "open" && !(this.welcome?.caps ?? ["credit"]).includes("credit")) {
      const { credit: _, ...rest } = message; // such a server sends all text at once, and refuses a limit
      message = rest;
    }
    this.output.push(JSON.stringify(message));
  }

  sendTo(stream, message) {
    if (this.isConnected && !stream.isAttaching && !stream.isPostponed && !stream.hasEnded) this.send({ ...message, s: stream.s });
  }

  answer(stream, node, message) {
    stream.answers.set(node, message);
    this.sendTo(stream, message);
  }

  end(stream, error) {
    stream.hasEnded = true;
    this.streams.delete(stream.s);
    return { type: "error", stream, error };
  }

  take(message) {
    if (message.t === "welcome") {
      const reason = this.otherModel(message);
      if (reason !== null) return [{ type: "useless", error: connectionError(reason) }];
      this.welcome = message;
      this.isConnected = true;
      const streams = [...this.streams.values()].sort((left, right) => left.s - right.s);
      return [{ type: "welcome", message }, ...streams.flatMap((stream) => this.reopen(stream))];
    }
    if (message.t === "drain") return [{ type: "drain", message }];
    if (message.t === "error" && message.fatal) return [{ type: "fatal", error: new RtlangError(message) }];
    const stream = this.streams.get(message.s);
    if (stream === undefined) return [];
    switch (message.t) {
      case "ack":
        return this.takeAck(stream, message);
      case "error":
        if (stream.extends.has(message.q)) return this.answered(stream, message.q, new RtlangError(message));
        return this.refused(stream, new RtlangError(message));
      case "delta": {
        stream.taken += 1;
        stream.received += message.ids?.length ?? 0;
        const place = `${message.n ?? 0},${message.i ?? 0}`;
        const expected = stream.offsets.get(place) ?? 0;
        if (message.o !== expected) throw new RtlangError({ code: "protocol", message: `offset ${message.o}, expected ${expected}` });
        stream.offsets.set(place, expected + 1);
        if (stream.ledger?.take(message) === false) {
          this.grant(stream, message.ids?.length ?? 0); // the reader has had these tokens
          return [];
        }
        return [{ type: "delta", stream, message }];
      }
      case "event":
        stream.taken += 1;
        if (message.e === "end" || message.e === "error") stream.answers.delete(message.n);
        if (stream.ledger?.take(message) === false) {
          if (message.e === "call" && stream.answers.has(message.n)) this.sendTo(stream, stream.answers.get(message.n));
          return [];
        }
        return [{ type: "event", stream, message }];
      case "end":
        stream.hasEnded = true;
        this.streams.delete(stream.s);
        return [{ type: "end", stream, message }];
      default:
        return [];
    }
  }

  takeAck(stream, message) {
    const notices = [];
    if (message.from !== undefined) {
      stream.isAttaching = false;
      for (const q of [...stream.extends.keys()]) {
        if (q <= message.last_q && !message.refused.includes(q)) notices.push(...this.answered(stream, q, null));
      }
      this.repeat(stream, message.refused);
    } else if (message.q !== undefined) {
      if (stream.extends.has(message.q)) notices.push(...this.answered(stream, message.q, null));
    } else {
      stream.rid = message.rid;
      stream.epoch = message.epoch;
      stream.requestId = message.request_id ?? null;
      stream.numGone = 0;
      stream.refusedAt = null;
      if (stream.ledger === null) stream.opening = null;
      notices.push({ type: "ack", stream });
    }
    // Grants may have been lost with an earlier connection.
    if (message.granted !== undefined && message.granted < stream.granted) {
      this.sendTo(stream, { t: "credit", s: stream.s, n: stream.granted - message.granted });
    }
    return notices;
  }

  answered(stream, q, error) {
    if (stream.ledger !== null && error === null) stream.accepted.set(q, stream.extends.get(q));
    stream.extends.delete(q);
    stream.lastAnsweredQ = Math.max(stream.lastAnsweredQ, q);
    if (!stream.again.delete(q)) return [{ type: "extend", stream, q, error }];
    if (error === null) return [];
    this.cancel(stream); // the first server took these nodes, and the stream cannot complete without them
    return [this.end(stream, error)];
  }

  /** Prepares to open a stream on another server, which goes on behind the output that has arrived. */
  startAgain(stream) {
    const { ledger, opening } = stream;
    const graph = opening.body.graph ?? { nodes: [{ id: 1, kind: "generate", params: opening.body.params }] };
    const extensions = [...stream.accepted, ...stream.extends];
    const continueFrom = ledger.continueFrom([graph, ...extensions.map(([, each]) => each)].flatMap((each) => each.nodes));
    const continued = (message, ids) => {
      const { known: _, continue_from: __, ...rest } = message;
      const take = (items) => ids.filter((n) => items.has(n)).map((n) => items.get(n));
      const fields = Object.entries({ known: take(ledger.known), continue_from: take(continueFrom) });
      return { ...rest, ...Object.fromEntries(fields.filter(([, items]) => items.length > 0)) };
    };
    const later = new Set(extensions.flatMap(([, message]) => message.nodes.map((node) => node.id)));
    const first = [...new Set([...ledger.known.keys(), ...continueFrom.keys()])].filter((n) => !later.has(n));
    stream.extends = new Map(extensions.map(([q, message]) => [q, continued(message, message.nodes.map((node) => node.id))]));
    for (const q of stream.accepted.keys()) stream.again.add(q);
    stream.accepted.clear();
    stream.granted = Math.max(0, stream.granted - stream.received);
    stream.opening = { ...continued(opening, first), idem: randomName(), credit: stream.granted };
    if (opening.deadline_ms !== undefined) stream.opening.deadline_ms = this.left(stream, opening.deadline_ms, 1);
    const budget = opening.body.budget;
    if (budget?.seconds !== undefined) {
      const seconds = this.left(stream, 1000 * budget.seconds, 1) / 1000;
      stream.opening.body = { ...opening.body, budget: { ...budget, seconds } };
    }
    stream.openedAt = this.now();
    stream.isContinued = true;
    stream.isPostponed = stream.isAttaching = false;
    stream.rid = stream.epoch = null;
    stream.received = stream.taken = stream.lastAnsweredQ = 0;
    stream.offsets.clear();
  }

  left(stream, wholeMs, leastMs) {
    return Math.max(leastMs, Math.round(wholeMs - (this.now() - stream.openedAt)));
  }

  /** Why a server cannot take the place of the first one; null if it serves the same models, or does not say. */
  otherModel({ models = [] }) {
    for (const field of ["identity", "model"]) {
      const [before, now] = [this.welcome?.models ?? [], models].map((each) => each.map((model) => model[field] ?? ""));
      if (before.length > 0 && now.length > 0 && ![...before, ...now].includes("")) {
        if (before.join() === now.join()) return null;
        return `it serves ${now.join(", ")}, and this connection began with ${before.join(", ")}`;
      }
    }
    return null;
  }

  refused(stream, error) {
    if (stream.ledger === null) return [this.end(stream, error)];
    if (error.code === "gone" && stream.numGone++ < MAX_GONE) return this.openAgain(stream, true);
    if (error.code !== "overload" || !stream.isContinued || stream.rid !== null) return [this.end(stream, error)];
    stream.refusedAt ??= this.now();
    if (this.now() - stream.refusedAt >= this.resumeMs) return [this.end(stream, error)];
    stream.isPostponed = true;
    const afterMs = Math.min(Math.max(FIRST_PAUSE_MS, 1000 * (error.retryAfter ?? 0)), MAX_RETRY_MS);
    return [{ type: "retry", stream, afterMs }];
  }

  /** Opens a stream again behind the output that has arrived; under another id if this connection has seen its id. */
  openAgain(stream, isIdUsed) {
    if (stream.wasCancelled) return [this.end(stream, new RtlangError({ code: "aborted", message: "the graph was cancelled" }))];
    if (isIdUsed) {
      this.streams.delete(stream.s);
      stream.s = this.nextStream++;
      this.streams.set(stream.s, stream);
    }
    this.startAgain(stream);
    this.repeatOpening(stream);
    return [];
  }

  repeatOpening(stream) {
    this.sendTo(stream, stream.opening);
    this.repeat(stream, []);
  }

  reopen(stream) {
    stream.refusedAt = null;
    stream.numGone = 0;
    const isUnknown = stream.rid !== null && stream.epoch !== this.welcome.epoch && stream.ledger !== null;
    if (isUnknown || stream.isPostponed) return this.openAgain(stream, false);
    if (stream.rid === null) this.repeatOpening(stream);
    else {
      stream.isAttaching = true;
      this.send({ t: "attach", s: stream.s, rid: stream.rid, epoch: stream.epoch, from: stream.taken, q: stream.lastAnsweredQ });
    }
    return [];
  }

  /** Sends again what the server may not have received. */
  repeat(stream, refused) {
    for (const [q, message] of stream.extends) if (!refused.includes(q)) this.sendTo(stream, message);
    for (const message of stream.answers.values()) this.sendTo(stream, message);
    if (stream.wasClosed) this.sendTo(stream, { t: "close" });
    if (stream.wasCancelled) this.sendTo(stream, { t: "cancel" });
  }
}

/** A running stream: an async iterable of its deltas, and promises of its acceptance and its result. */
export class Stream {
  constructor(client, state, window, { onEvent = null, calls = {} }) {
    this.client = client;
    this.state = state;
    this.window = window;
    this.onEvent = onEvent;
    this.calls = calls;
    this.deltas = [];
    this.toGrant = 0;
    this.isIterated = false;
    this.wake = null;
    this.failure = null;
    this.isOver = false;
    this.extended = new Map();
    this.accepted = new Promise((resolve, reject) => Object.assign(this, { accept: resolve, refuse: reject }));
    this.result = new Promise((resolve, reject) => Object.assign(this, { finish: resolve, fail: reject }));
    this.accepted.catch(() => {});
    this.result.catch(() => {});
  }

  /** The id of the request in the server's logs and answers; null before it is accepted. */
  get requestId() {
    return this.state.requestId;
  }

  cancel() {
    this.client.act((protocol) => protocol.cancel(this.state));
  }

  close() {
    this.client.act((protocol) => protocol.close(this.state));
  }

  /** Lets the server deliver more tokens than the window allows; needed only by a stream that was opened with `credit: 0`. */
  grant(tokens) {
    this.client.act((protocol) => protocol.grant(this.state, tokens));
  }

  /** Adds nodes to a program that was opened with `open: true`; the promise fails if the server refuses them. */
  extend(nodes, options = {}) {
    return new Promise((resolve, reject) => {
      this.client.act((protocol) => this.extended.set(protocol.extend(this.state, nodes, options), { resolve, reject }));
    });
  }

  async *[Symbol.asyncIterator]() {
    this.isIterated = true;
    try {
      for (;;) {
        while (this.deltas.length > 0) {
          const delta = this.deltas.shift();
          this.consume(delta.ids.length);
          yield delta;
        }
        if (this.failure !== null) throw this.failure;
        if (this.isOver) return;
        await new Promise((resolve) => (this.wake = resolve));
      }
    } finally {
      if (!this.isOver && this.failure === null) this.cancel(); // the reader has left the loop
    }
  }

  // Called by Client

  consume(tokens) {
    this.toGrant += tokens;
    if (2 * this.toGrant >= this.window) {
      const granted = this.toGrant;
      this.toGrant = 0;
      this.client.act((protocol) => protocol.grant(this.state, granted));
    }
  }

  take(notice) {
    switch (notice.type) {
      case "ack":
        this.accept(this);
        break;
      case "delta": {
        const { n: node = 0, i: choice = 0, d: text, ids = [], lp: logprobs = null } = notice.message;
        this.deltas.push({ node, choice, text, ids, logprobs });
        break;
      }
      case "event":
        if (notice.message.e === "call") this.call(notice.message);
        this.onEvent?.(notice.message);
        if (notice.message.e === "waiting" && !this.isIterated) this.flush(); // nobody iterates: only the result is wanted
        break;
      case "extend": {
        const waiting = this.extended.get(notice.q);
        this.extended.delete(notice.q);
        if (notice.error === null) waiting?.resolve();
        else waiting?.reject(notice.error);
        break;
      }
      case "end":
        this.isOver = true;
        if (notice.message.reason === "stop") this.finish(notice.message);
        else this.lose(new RtlangError(notice.message));
        break;
      case "error":
        this.lose(notice.error);
        break;
    }
    this.wake?.();
    this.wake = null;
  }

  flush() {
    const tokens = this.state.received - this.state.granted + this.window;
    this.client.act((protocol) => protocol.grant(this.state, tokens));
  }

  lose(error) {
    this.failure = error;
    this.refuse(error);
    this.fail(error);
    for (const waiting of this.extended.values()) waiting.reject(error);
    this.extended.clear();
  }

  async call({ n, function: name, args }) {
    try {
      if (!Object.hasOwn(this.calls, name)) throw new Error(`no function ${name}`);
      const value = await this.calls[name](...args);
      this.client.act((protocol) => protocol.resolve(this.state, n, value ?? null));
    } catch (error) {
      this.client.act((protocol) => protocol.reject(this.state, n, String(error)));
    }
  }
}

/**
 * The prefix cache of a server, for the namespace of the key. Calls go over HTTP; a refusal is thrown as `RtlangError`.
 *
 * A prompt is a map with `prompt`, `messages` or `token_ids`; `pin` also takes `ttl_s` and `computes`.
 */
export class Cache {
  constructor(url, key) {
    this.key = key;
    this.moveTo(url);
  }

  /** Asks another server from now on. */
  moveTo(url) {
    this.url = url.replace(/^ws/, "http").slice(0, -PATH.length) + "/v1/cache";
  }

  /** How much of a prompt is cached, where it differs from what is stored, and where the rest is; for runs with `cacheSalt`, if given. */
  explain(prompt, { cacheSalt = null } = {}) {
    return this.ask("POST", "/explain", { ...prompt, cache_salt: cacheSalt ?? prompt.cache_salt });
  }

  /** Keeps the pages of a prompt; the answer has `pin_id`, `num_tokens`, `num_granted_tokens` and `ttl_s`. Options as of `explain`. */
  pin(prompt, { cacheSalt = null } = {}) {
    return this.ask("POST", "/pins", { ...prompt, cache_salt: cacheSalt ?? prompt.cache_salt });
  }

  async pins() {
    return (await this.ask("GET", "/pins")).pins;
  }

  /** Ends a pin; false if there is no such pin (any more). */
  async unpin(pinId) {
    try {
      await this.ask("DELETE", `/pins/${encodeURIComponent(pinId)}`);
      return true;
    } catch (error) {
      if (error instanceof RtlangError && error.status === 404) return false;
      throw error;
    }
  }

  async tree(maxNodes = 1000) {
    return (await this.ask("GET", `/tree?max_nodes=${maxNodes}`)).nodes;
  }

  // Private

  async ask(method, path, body) {
    const headers = { "content-type": "application/json" };
    if (this.key !== null) headers.authorization = `Bearer ${this.key}`;
    let response, text;
    try {
      response = await fetch(this.url + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
      text = await response.text();
    } catch (error) {
      throw connectionError(`${this.url}: ${error.cause?.message ?? error.message}`);
    }
    let answer = {};
    try {
      answer = text === "" ? {} : JSON.parse(text);
    } catch {
      if (response.ok) throw connectionError(`${this.url}${path}: the answer is not JSON`);
    }
    if (!response.ok) throw new RtlangError({ message: `HTTP status ${response.status}`, ...answer.error, status: response.status });
    return answer;
  }
}

/** A connection to a server that carries any number of streams. Made by `connect`. `cache` is the server's prefix cache. */
export class Client {
  constructor(url, { key = null, resumeMs = null, window = DEFAULT_WINDOW, WebSocket: Socket = globalThis.WebSocket } = {}) {
    if (Socket === undefined) throw new Error("no WebSocket here: use Node 22 or newer, or pass one as { WebSocket }");
    this.urls = [url].flat().map(socketUrl);
    if (this.urls.length === 0) throw new Error("expected at least one address of a server");
    this.url = this.urls[0];
    this.Socket = Socket;
    this.window = window;
    this.resumeMs = resumeMs;
    this.protocol = new ClientProtocol({ key, resumeMs });
    this.cache = new Cache(this.url, key);
    this.streams = new Map();
    this.isClosed = false;
    this.isLive = false; // between the welcome and the end of a connection
    this.deadline = null; // of the present outage
    this.pause = 0;
    this.numFailed = this.numUseless = 0; // attempts to connect, in the present round through the addresses
    this.fatal = null;
    this.ready = new Promise((resolve, reject) => Object.assign(this, { setReady: resolve, setFailed: reject }));
    this.ready.catch(() => {});
    this.dial();
  }

  get models() {
    return this.protocol.welcome?.models ?? [];
  }

  get limits() {
    return this.protocol.welcome?.limits ?? {};
  }

  /**
   * Continues a prompt, or answers chat messages: `prompt` or `messages`, `params`, `constraint`, `seed`.
   *
   * Options, as of `program`: `deadlineMs`; `credit`; `progress`; `cacheSalt`, text that divides the prefix cache of the key: prefixes of
   * streams with the same salt only are found; `context`, the request that the stream belongs to, as { requestId, traceparent, tracestate };
   * `signal`; `onEvent`. Once `accepted`, the stream has its `requestId`, under which the server logs it.
   */
  generate(body, options = {}) {
    return this.open("messages" in body ? "chat" : "generate", body, options);
  }

  /** Runs a request graph; `calls` maps the names of its host calls to functions. */
  program(body, options = {}) {
    return this.open("program", body, options);
  }

  open(kind, body, options = {}) {
    if (this.isClosed) throw connectionError("the connection is closed");
    const credit = options.credit ?? this.window;
    const state = this.act((protocol) => protocol.open(kind, body, { ...options, credit }));
    const stream = new Stream(this, state, Math.max(1, credit), options);
    this.streams.set(state, stream);
    options.signal?.addEventListener("abort", () => stream.cancel(), { once: true });
    return stream;
  }

  close() {
    if (this.isClosed) return;
    this.act((protocol) => protocol.bye());
    this.isClosed = true;
    this.dispatch(this.protocol.disconnected(connectionError("the connection was closed by this client"), { final: true }));
    this.socket.close(1000);
  }

  // Private

  act(change) {
    const result = change(this.protocol);
    this.flush();
    return result;
  }

  flush() {
    if (this.socket?.readyState !== 1) return;
    for (const text of this.protocol.takeOutput()) this.socket.send(text);
  }

  dispatch(notices) {
    for (const notice of notices) {
      if (notice.type === "welcome") {
        this.isLive = true;
        this.deadline = null;
        this.pause = 0;
        this.cache.moveTo(this.url);
        this.setReady(this);
      } else if (notice.type === "fatal") this.fatal = notice.error;
      else if (notice.type === "useless") {
        this.fatal = connectionError(`${this.url}: ${notice.error.message}`);
        this.numUseless += 1;
        this.socket.close();
      } else if (notice.type === "drain") this.leave();
      else if (notice.type === "retry") {
        setTimeout(() => this.dispatch(this.act((protocol) => protocol.retry(notice.stream))), notice.afterMs);
      }
      else if (notice.stream !== undefined) {
        const stream = this.streams.get(notice.stream);
        if (notice.type === "end" || notice.type === "error") this.streams.delete(notice.stream);
        stream?.take(notice);
      }
    }
  }

  dial() {
    const socket = (this.socket = new this.Socket(this.url, [SUBPROTOCOL]));
    this.fatal = null;
    let isOver = false;
    const over = (event) => {
      clearTimeout(late);
      if (isOver) return;
      isOver = true;
      if (socket === this.socket && !this.isClosed) this.lost(event);
    };
    const broken = { code: 1006, reason: "" };
    const late = setTimeout(() => {
      over(broken);
      socket.close();
    }, CONNECT_MS);
    socket.onopen = () => this.act((protocol) => protocol.connected());
    socket.onmessage = (message) => {
      if (socket !== this.socket) return;
      clearTimeout(late);
      try {
        this.dispatch(this.protocol.receive(message.data));
        this.flush();
      } catch (error) {
        this.fatal = error instanceof RtlangError ? error : connectionError(String(error));
        socket.close();
      }
    };
    socket.onerror = () => setTimeout(() => over(broken)); // Node 20 has no close event where no connection was made
    socket.onclose = over;
  }

  /** Goes on at another server, because this one is going to end. */
  leave() {
    if (this.resumeMs === null || this.urls.length === 1) return;
    this.nextUrl();
    const before = this.socket;
    this.isLive = false;
    this.numFailed = this.numUseless = 0;
    this.protocol.disconnected(connectionError("the server is shutting down"));
    this.dial();
    before.close(1000);
  }

  nextUrl() {
    this.url = this.urls[(this.urls.indexOf(this.url) + 1) % this.urls.length];
  }

  lost(event) {
    const reason = event.reason ? `: ${event.reason}` : "";
    const error = this.fatal ?? connectionError(`the connection is closed (${event.code})${reason}`);
    const now = Date.now();
    const isFirst = this.protocol.welcome === null; // no server has answered yet
    this.deadline ??= now + (this.resumeMs ?? 0);
    let mayRetry = this.resumeMs !== null && !isFirst;
    let pause = 0;
    if (this.isLive) {
      mayRetry &&= RETRIED_CODES.includes(event.code);
      this.numFailed = this.numUseless = 0;
    } else {
      this.nextUrl();
      this.numFailed += 1;
      if (this.numFailed >= this.urls.length) {
        mayRetry &&= this.numUseless < this.numFailed; // else every server serves another model
        this.numFailed = this.numUseless = 0;
        this.pause = pause = Math.min(Math.max(FIRST_PAUSE_MS, 2 * this.pause), LAST_PAUSE_MS);
      } else mayRetry ||= isFirst;
    }
    this.isLive = false;
    if (!mayRetry || (!isFirst && now + pause > this.deadline)) {
      this.isClosed = true;
      this.setFailed(error);
      this.dispatch(this.protocol.disconnected(error, { final: true }));
      return;
    }
    this.dispatch(this.protocol.disconnected(error));
    setTimeout(() => {
      if (!this.isClosed) this.dial();
    }, pause);
  }
}

/**
 * Connects to a server. `url`: http, https, ws or wss, with a path if the server is not at the root; or an array of them, whose servers
 * serve the same model: the first that answers is used, and the others take its place when the connection breaks.
 *
 * Options: `key`; `resumeMs`, for how long a broken connection is replaced and the server keeps streams; `window`, the tokens that a
 * stream may be ahead of its reader; `WebSocket`, a class to use instead of the global one.
 */
export async function connect(url, options = {}) {
  return new Client(url, options).ready;
}

function socketUrl(url) {
  const parsed = new URL(url);
  const scheme = { "http:": "ws:", "https:": "wss:", "ws:": "ws:", "wss:": "wss:" }[parsed.protocol];
  if (scheme === undefined || parsed.search || parsed.hash || parsed.username) throw new Error(`${url}: expected http(s) or ws(s)://host:port`);
  const path = parsed.pathname.replace(/\/+$/, "");
  return `${scheme}//${parsed.host}${path.endsWith(PATH) ? path : path + PATH}`;
}
