import { expect, test } from "bun:test";
import { AppError } from "../../../../../src/base/errors.ts";
import { nextTurnAt } from "../../../../../src/gateway/hooks/queue/deliveries/claims.ts";
import { eventually } from "../../../../e2e/hearth.ts";
import { agent, START, wake } from "../deliveries/fixtures.ts";
import { ended, makeWorkerBench, ok, send } from "./parts.ts";
import { queryAll } from "../../../../../src/gateway/database/store.ts";

const MINUTE_MS = 60_000;

test("a wake posts its event, and requests a heartbeat if its mode is now", async () => {
  await using at = makeWorkerBench();
  const now = await send(at, wake("disk full"));
  const later = await send(at, wake("for later", { mode: "next-heartbeat" }));
  expect((await at.settled(now)).state).toBe("succeeded");
  expect((await at.settled(later)).state).toBe("succeeded");
  expect(await at.parts.events()).toEqual(["disk full", "for later"]);
  expect(at.parts.heartbeats).toEqual([`hook:${now}`]);
  expect(at.parts.turns).toEqual([]);
});

test("an agent call runs a turn in its session, posts a summary, then requests a heartbeat", async () => {
  await using at = makeWorkerBench();
  let beatsDuringTurn = -1;
  at.parts.answer = async () => {
    beatsDuringTurn = at.parts.heartbeats.length;
    return ok("done");
  };
  const action = agent("Read the mail", { name: "Email", sessionKey: "hook:Mail", model: "fast", thinking: "low" });
  const runId = await send(at, action, { path: "agent" });
  expect(await at.settled(runId)).toMatchObject({
    state: "succeeded",
    answer: "done",
    model: "hearth",
    attempts: 1,
    reply: "none",
    reason: null,
    startedAt: START,
    finishedAt: START,
  });
  expect(await at.parts.events()).toEqual(["Hook Email: done"]);
  expect(beatsDuringTurn).toBe(0);
  expect(at.parts.heartbeats).toEqual([`hook:${runId}`]);
  const [turn] = at.parts.turns;
  expect(turn).toMatchObject({ runId, sessionKey: "hook:mail", model: "fast", thinking: "low", tools: [] });
  expect(turn!.prompt).toContain("EXTERNAL_UNTRUSTED_CONTENT");
  expect(await at.bench.store.read(() => queryAll("SELECT run_id, session_key, ephemeral FROM test_turns"))).toEqual([
    { run_id: runId, session_key: "hook:mail", ephemeral: 0 },
  ]);
});

test("wakeMode next-heartbeat: no heartbeat is requested", async () => {
  await using at = makeWorkerBench();
  await at.settled(await send(at, agent("x", { wakeMode: "next-heartbeat" })));
  expect(await at.parts.events()).toHaveLength(1);
  expect(at.parts.heartbeats).toEqual([]);
});

test("allowUnsafeExternalContent: the prompt is the unchanged message", async () => {
  await using at = makeWorkerBench();
  await at.settled(await send(at, agent("as it is", { isWrapped: false })));
  expect(at.parts.turns[0]?.prompt).toBe("as it is");
});

test("deliver: the reply is queued in the transaction that stores the turn, and its outcome becomes the run's", async () => {
  await using at = makeWorkerBench();
  const runId = await send(at, agent("x", { deliver: true }));
  expect(await at.until(runId, (status) => status.reply === "pending")).toMatchObject({ state: "succeeded" });
  expect(await at.parts.replies()).toEqual([{ group_id: runId, text: expect.stringContaining("answer to") }]);
  await at.parts.settle(runId, { kind: "sent" });
  expect(await at.settled(runId)).toMatchObject({ state: "succeeded", reply: "sent", replyReason: null });
  expect(await at.parts.events()).toHaveLength(1);
  expect(await at.bench.store.read(() => queryAll("SELECT delivered FROM test_events"))).toEqual([{ delivered: 1 }]);
});

test.each([
  ["deliver: false sends nothing", { deliver: false }, ok("done"), "none", [], "done"],
  ["an acknowledgement sends nothing", { deliver: true }, ok("HEARTBEAT_OK"), "skipped", [], "HEARTBEAT_OK"],
  [
    "text beside an acknowledgement is sent",
    { deliver: true },
    ok("Disk full. HEARTBEAT_OK"),
    "pending",
    ["Disk full."],
    "Disk full.",
  ],
  [
    "a cut answer is marked",
    { deliver: true },
    { ...ok("and so"), isTruncated: true },
    "pending",
    ["and so […]"],
    "and so […]",
  ],
] as const)("%s, and the summary is posted", async (_, changes, result, reply, sent, summary) => {
  await using at = makeWorkerBench();
  at.parts.answer = async () => result;
  await at.until(
    await send(at, agent("x", changes)),
    (status) => status.state === "succeeded" && status.reply === reply,
  );
  expect((await at.parts.replies()).map((row) => row.text)).toEqual([...sent]);
  expect(await at.parts.events()).toEqual([`Hook: ${summary}`]);
});

test("a reply without a recipient fails with the reason, which is posted to the main session", async () => {
  await using at = makeWorkerBench();
  at.parts.target = { reason: "no channel is configured" };
  const status = await at.settled(await send(at, agent("x", { deliver: true, name: "CI" })));
  expect(status).toMatchObject({ state: "succeeded", reply: "failed", replyReason: "no channel is configured" });
  expect(await at.parts.events()).toEqual([
    expect.stringContaining("Hook CI: answer"),
    "Hook CI: the reply could not be delivered: no channel is configured",
  ]);
});

test.each([
  ["failed", "Hook CI: the reply could not be delivered: blocked by the user"],
  ["unknown", "Hook CI: the reply may not have been delivered, and is not sent again: blocked by the user"],
] as const)("a reply that ends as %s is reported to the main session", async (kind, text) => {
  await using at = makeWorkerBench();
  const runId = await send(at, agent("x", { deliver: true, name: "CI" }));
  await at.until(runId, (status) => status.reply === "pending");
  await at.parts.settle(runId, { kind, reason: "blocked by the user" });
  expect(await at.settled(runId)).toMatchObject({ reply: kind, replyReason: "blocked by the user" });
  expect((await at.parts.events()).at(-1)).toBe(text);
  expect(at.parts.heartbeats).toEqual([`hook:${runId}`, `reply:${runId}`]);
});

test("wakeMode next-heartbeat: a failed reply requests no heartbeat either", async () => {
  await using at = makeWorkerBench();
  const runId = await send(at, agent("x", { deliver: true, wakeMode: "next-heartbeat" }));
  await at.until(runId, (status) => status.reply === "pending");
  await at.parts.settle(runId, { kind: "failed" });
  expect((await at.settled(runId)).reply).toBe("failed");
  expect(at.parts.heartbeats).toEqual([]);
});

test("the report of a failed reply that finds no room requests a heartbeat to make room", async () => {
  await using at = makeWorkerBench();
  at.parts.eventsMax = 1;
  const runId = await send(at, agent("x", { deliver: true }));
  await at.until(runId, (status) => status.reply === "pending");
  await at.parts.settle(runId, { kind: "failed" });
  const asked = (): boolean => at.parts.heartbeats.includes("events have no room");
  expect(await eventually(asked, 10_000)).toBe(true);
  expect((await at.deliveries.run(runId))?.reply).toBe("pending");
  at.parts.eventsMax = 2;
  at.worker.poke();
  expect((await at.settled(runId)).reply).toBe("failed");
  expect(at.parts.heartbeats).toEqual([`hook:${runId}`, "events have no room", `reply:${runId}`]);
}, 30_000);

test("a reply that ends while no worker runs is recorded by the next worker", async () => {
  await using at = makeWorkerBench();
  const runId = await send(at, agent("x", { deliver: true }));
  await at.until(runId, (status) => status.reply === "pending");
  await at.worker.stop(0);
  await at.parts.settle(runId, { kind: "sent" });
  at.worker = at.anotherWorker();
  at.worker.start();
  expect((await at.settled(runId)).reply).toBe("sent");
});

test("a turn that fails temporarily is retried with growing delays, and is dead after the last attempt", async () => {
  await using at = makeWorkerBench();
  at.parts.answer = async () => ended({ status: "error", error: "the model crashed", isTemporary: true });
  const runId = await send(at, agent("x", { name: "CI" }));
  for (const [attempts, waitMs] of [
    [1, 1000],
    [2, 2000],
  ] as const) {
    const status = await at.until(runId, (each) => each.state === "queued" && each.attempts === attempts);
    expect(status.reason).toBe("the model crashed");
    expect(at.parts.turns).toHaveLength(attempts);
    at.bench.clock.now += waitMs - 1;
    at.worker.poke();
    await at.settled(await send(at, wake("a round went by")));
    expect(at.parts.turns).toHaveLength(attempts);
    at.bench.clock.now += 1;
    at.worker.poke();
  }
  expect(await at.settled(runId)).toMatchObject({ state: "dead", attempts: 3, reason: "the model crashed" });
  expect((await at.parts.events()).at(-1)).toBe("Hook CI (error): the model crashed");
  const fields = JSON.stringify({ runId, mapping: null, reason: "the model crashed" });
  expect(at.logged).toEqual([`hooks: a run was given up and will not be retried ${fields}`]);
});

test("the log names a run that failed, and one whose reply has no recipient", async () => {
  await using at = makeWorkerBench();
  at.parts.answer = async () => ended({ status: "error", error: "called a tool instead of answering" });
  const failed = await send(at, agent("x"));
  expect(await at.settled(failed)).toMatchObject({ state: "failed" });
  at.parts.answer = async () => ok("done");
  at.parts.target = { reason: "no channel is configured" };
  const lost = await send(at, agent("y", { deliver: true }));
  expect(await at.settled(lost)).toMatchObject({ state: "succeeded", reply: "failed" });
  const fields = { runId: failed, mapping: null, reason: "called a tool instead of answering" };
  expect(at.logged).toEqual([
    `hooks: a run failed ${JSON.stringify(fields)}`,
    `hooks: a reply has no recipient ${JSON.stringify({ runId: lost, mapping: null })}`,
  ]);
});

test("an outage that ends after the clock was set back has lasted no negative time", async () => {
  await using at = makeWorkerBench();
  at.parts.answer = async () => ended({ status: "error", error: "away", isTemporary: true, isUntried: true });
  const runId = await send(at, agent("x"));
  await at.until(runId, (each) => each.state === "queued" && at.parts.turns.length === 1);
  at.bench.clock.now -= 60 * MINUTE_MS;
  at.parts.answer = async () => ok("there");
  const later = await send(at, agent("y"));
  expect(await at.settled(later)).toMatchObject({ state: "succeeded" });
  expect(at.logged.at(-1)).toBe('hooks: the model is back: turns continue {"seconds":0}');
});

test("a run waits while the model is unavailable, and uses none of its attempts", async () => {
  await using at = makeWorkerBench();
  const away = "the model server at http://m cannot be reached: ConnectionRefused";
  at.parts.answer = async () => ended({ status: "error", error: away, isTemporary: true, isUntried: true });
  const runId = await send(at, agent("x"));
  const waited: number[] = [];
  for (let turn = 1; turn <= 9; turn++) {
    const status = await at.until(runId, (each) => each.state === "queued" && at.parts.turns.length === turn);
    expect(status).toMatchObject({ attempts: 0, reason: away });
    waited.push((await at.bench.store.read(() => nextTurnAt(at.bench.clock.now)))! - at.bench.clock.now);
    at.bench.clock.now += waited.at(-1)!;
    if (turn === 9) at.parts.answer = async () => ok("there");
    at.worker.poke();
  }
  expect(waited).toEqual([1000, 1000, 1000, 1500, 2250, 3375, 5063, 7594, 11_391]);
  expect(await at.settled(runId)).toMatchObject({ state: "succeeded", attempts: 1, answer: "there", reason: null });
  const logged = at.logged.filter((line) => line.includes("the model is"));
  expect(logged).toEqual([
    expect.stringContaining("the model is unavailable"),
    expect.stringContaining('"seconds":34'),
  ]);
});

test("a model server's Retry-After may have a fraction of a millisecond", async () => {
  await using at = makeWorkerBench();
  const failed = {
    status: "error",
    error: "full",
    isTemporary: true,
    isUntried: true,
    retryAfterMs: 19_999.5,
  } as const;
  at.parts.answer = async () => ended(failed);
  const runId = await send(at, agent("x"));
  await at.until(runId, (each) => each.state === "queued" && at.parts.turns.length === 1);
  expect(await at.bench.store.read(() => nextTurnAt(at.bench.clock.now))).toBe(at.bench.clock.now + 20_000);
});

test("a run waits as long as the model server asks, and is dead after a day", async () => {
  await using at = makeWorkerBench();
  const failed = { status: "error", error: "full", isTemporary: true, isUntried: true, retryAfterMs: 20_000 } as const;
  at.parts.answer = async () => ended(failed);
  const runId = await send(at, agent("x"));
  await at.until(runId, (each) => each.state === "queued" && at.parts.turns.length === 1);
  const askAt = at.bench.clock.now + 20_000;
  expect(await at.bench.store.read(() => nextTurnAt(at.bench.clock.now))).toBe(askAt);
  at.bench.clock.now += 24 * 60 * MINUTE_MS + 1;
  at.worker.poke();
  expect(await at.settled(runId)).toMatchObject({ state: "dead", reason: "full" });
});

test.each([
  ["bad_request", new AppError("bad_request", "no such model"), "failed", 1],
  ["busy", new AppError("busy", "the queue is full"), "dead", 3],
  ["a TypeError", new TypeError("undefined is not a function"), "dead", 3],
])("a turn that throws %s ends or is retried by the kind of error", async (_, error, state, attempts) => {
  await using at = makeWorkerBench();
  at.parts.answer = () => Promise.reject(error);
  const runId = await send(at, agent("x"));
  for (let i = 1; i < attempts; i++) {
    await at.until(runId, (status) => status.attempts === i && status.state === "queued");
    at.bench.clock.now += MINUTE_MS;
    at.worker.poke();
  }
  expect(await at.settled(runId)).toMatchObject({ state: state as "dead", attempts, reason: error.message });
});

test("timeoutSeconds is passed to the agent, and the summary reports the timeout", async () => {
  await using at = makeWorkerBench();
  at.parts.answer = async () => ended({ status: "timeout", error: "the turn took longer than 0.05 s" });
  const runId = await send(at, agent("x", { timeoutSeconds: 0.05 }));
  expect(await at.settled(runId)).toMatchObject({ state: "failed", reason: "the turn took longer than 0.05 s" });
  expect(at.parts.turns[0]?.timeoutMs).toBe(50);
  expect(await at.parts.events()).toEqual(["Hook (timeout): the turn took longer than 0.05 s"]);
});
