/** A run's state for its sender: status, events, and answers that wait; through a real socket. */
import { expect, test } from "bun:test";
import { AppError } from "../../src/base/errors.ts";
import { HOOK_TOKEN, json, startGateway } from "../gateway/operate/world.ts";

const gate = () => Promise.withResolvers<void>();

test("GET {hooks.path}/runs/:id: shows the state, and the answer of an ended run", async () => {
  const world = await startGateway();
  const { runId } = await json(await world.hook("agent", { message: "hi" }, { headers: { prefer: "wait=60" } }));
  const response = await world.hook(`runs/${runId}`);
  expect(response.status).toBe(200);
  expect(await json(response)).toMatchObject({
    ok: true,
    run: { id: runId, kind: "agent", state: "succeeded", answer: "Done it.", callback: null },
  });
});

test("POST {hooks.path}/agent: 202 has the Location of its run, also for a repeat and another path; 200 has none", async () => {
  const world = await startGateway({ settings: { hooks: { path: "/in/coming" } } });
  const headers = { authorization: `Bearer ${HOOK_TOKEN}`, "idempotency-key": "k" };
  const send = (more = {}) =>
    fetch(`${world.url}/in/coming/agent`, {
      method: "POST",
      headers: { ...headers, ...more },
      body: JSON.stringify({ message: "hi" }),
    });
  for (const response of [await send(), await send()]) {
    const { runId } = await json(response);
    expect([response.status, response.headers.get("location")]).toEqual([202, `/in/coming/runs/${runId}`]);
    const run = await fetch(new URL(response.headers.get("location")!, response.url), { headers });
    expect((await json(run)).run.id).toBe(runId);
  }
  const waited = await send({ prefer: "wait=60" });
  expect([waited.status, waited.headers.get("location")]).toEqual([200, null]);
});

test("U+0000 from models and senders is replaced, so that answers, errors, keys and ids can be stored", async () => {
  const callbacks = { allowFromRequest: true, allowPrivateAddresses: true };
  const mapping = { match: { path: "hooked" }, action: "agent", messageTemplate: "hi" };
  const world = await startGateway({
    settings: { hooks: { callbacks, mappings: [mapping], presets: ["stripe"] } },
    script: (_, i) => (i === 0 ? { text: "one\0two" } : { error: new AppError("bad_request", "bad\0luck") }),
  });
  const wait = { headers: { prefer: "wait=60" } };
  const [good, bad] = [
    await json(await world.hook("agent", { message: "hi \0", name: "n\0", to: "t\0" }, wait)),
    await json(await world.hook("agent", { message: "hi" }, wait)),
  ];
  expect(good.run).toMatchObject({ state: "succeeded", attempts: 1, answer: "one\ufffdtwo" });
  expect(bad.run).toMatchObject({ state: "failed", attempts: 1, reason: "bad\ufffdluck" });
  const keyed = await json(await world.hook("wake", { text: "hi", idempotencyKey: "k\0" }));
  expect(keyed.warnings).toEqual([expect.stringContaining("without U+0000")]);
  const urls = await world.hook("agent", { message: "hi", callbackUrl: "https://example.org/\0" });
  expect((await json(urls)).code).toBe("callback_not_allowed");
  const event = { id: "evt\0", type: "payout.paid", data: { object: {} } };
  const answers = [await world.hook("stripe", event), await world.hook("stripe", event)];
  expect(answers.map(({ status }) => status)).toEqual([202, 202]);
  expect(answers[1]!.headers.get("idempotency-replayed")).toBe("true");
});

test("GET {hooks.path}/runs/:id: 401 without the token, 404 for an unknown run, 405 for other methods", async () => {
  const world = await startGateway();
  const { runId } = await json(await world.hook("wake", { text: "hi", mode: "next-heartbeat" }));
  expect((await fetch(`${world.url}/hooks/runs/${runId}`)).status).toBe(401);
  expect((await world.hook("runs/nothing")).status).toBe(404);
  expect((await world.hook("runs/nothing/events")).status).toBe(404);
  expect((await world.hook(`runs/${runId}`, undefined, { method: "DELETE" })).status).toBe(405);
  expect((await world.hook(`runs/${runId}`, undefined, { method: "HEAD" })).status).toBe(200);
});

test("GET {hooks.path}/runs/:id: a further token sees only its own runs, and the main token sees all", async () => {
  const tokens = [
    { id: "ci", token: "token-of-ci-with-24-characters" },
    { id: "mail", token: "token-of-mail-with-24-characters" },
    { id: "wakes", token: "token-of-wakes-with-24-characters", paths: ["wake"] },
  ];
  const world = await startGateway({ settings: { hooks: { tokens } } });
  const as = (i: number) => ({ headers: { authorization: `Bearer ${tokens[i]!.token}` } });
  const { runId } = await json(await world.hook("agent", { message: "hi" }, as(0)));
  expect((await world.hook(`runs/${runId}`, undefined, as(0))).status).toBe(200);
  expect((await world.hook(`runs/${runId}`, undefined, as(1))).status).toBe(404);
  expect((await world.hook(`runs/${runId}`, undefined, as(2))).status).toBe(403);
  expect((await world.hook(`runs/${runId}`)).status).toBe(200);
});

test("GET {hooks.path}/runs/:id/events: streams the status, the text as it is generated, the last status and the end", async () => {
  const open = gate();
  const world = await startGateway({ script: () => ({ text: "Hello you", until: open.promise }) });
  const { runId } = await json(await world.hook("agent", { message: "hi" }));
  const response = await world.hook(`runs/${runId}/events`);
  expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  let text = "";
  for await (const bytes of response.body!) {
    text += new TextDecoder().decode(bytes);
    if (text.includes("running")) open.resolve();
  }
  const frames = text.trimEnd().split("\n\n");
  const events = frames.map((frame) => /^event: (\w+)/.exec(frame)?.[1]);
  expect(events.at(-1)).toBe("end");
  expect(events).toContain("text");
  const last = JSON.parse(frames.at(-2)!.replace(/^event: status\ndata: /, ""));
  expect(last.run).toMatchObject({ id: runId, state: "succeeded", answer: "Hello you" });
});

test("a stream of events ends when its client disconnects or the server stops", async () => {
  const world = await startGateway({ script: () => ({ text: "Hello you", until: gate().promise }) });
  const { runId } = await json(await world.hook("agent", { message: "hi" }));
  const gone = new AbortController();
  const headers = { authorization: `Bearer ${HOOK_TOKEN}` };
  const first = await fetch(`${world.url}/hooks/runs/${runId}/events`, { headers, signal: gone.signal });
  gone.abort();
  await first.text().catch(() => "");
  const second = await world.hook(`runs/${runId}/events`);
  world.gateway.ingress.drain(5000);
  expect(await second.text()).not.toContain("event: end"); // not the end: a client may reconnect
  expect((await world.hook("wake", { text: "late" })).status).toBe(503);
});

test("POST {hooks.path}/agent with Prefer: wait=N: 200 with the outcome, or 202 if the run takes longer", async () => {
  const open = gate();
  const script = () => ({ text: "Slow answer", until: open.promise });
  const world = await startGateway({ script });
  const early = await world.hook("agent", { message: "hi" }, { headers: { prefer: "wait=1" } });
  expect([early.status, early.headers.get("preference-applied")]).toEqual([202, "wait=1"]);
  expect(await json(early)).not.toHaveProperty("run");
  open.resolve();
  const late = await world.hook("agent", { message: "hi" }, { headers: { prefer: "respond-async, wait=60" } });
  expect(late.status).toBe(200);
  expect(await json(late)).toMatchObject({ ok: true, run: { state: "succeeded", answer: "Slow answer" } });
});

test("Prefer: wait=N: a repeat with the same idempotency key gets the outcome again", async () => {
  const world = await startGateway({ script: () => ({ text: "x" }) });
  const headers = { prefer: "wait=60", "idempotency-key": "k" };
  const body = { message: "hi", wakeMode: "next-heartbeat" }; // a heartbeat would ask the model too
  const first = await json(await world.hook("agent", body, { headers }));
  const again = await world.hook("agent", body, { headers });
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  expect(await json(again)).toMatchObject({ runId: first.runId, run: { answer: "x" } });
  expect(world.runtime.requests).toHaveLength(1);
});

test.each(["wait=0", "wait=-1", "wait=soon", "return=minimal", "await=9"])(
  "Prefer: %s is ignored, and the answer is 202",
  async (prefer) => {
    const world = await startGateway({ script: () => ({ text: "x", until: gate().promise }) });
    expect((await world.hook("agent", { message: "hi" }, { headers: { prefer } })).status).toBe(202);
  },
);
