/** A platform that refuses our credentials: its messages wait, and arrive in order once the token is replaced. */
import { afterEach, expect, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeLogger } from "../../../../src/base/log.ts";
import { channelsSchema } from "../../../../src/gateway/channels/config.ts";
import { loadKinds, makeChannels } from "../../../../src/gateway/channels/load.ts";
import type { Channel, SendOutcome } from "../../../../src/gateway/channels/channel.ts";
import type { OutboxDeps } from "../../../../src/gateway/channels/outbox/outbox.ts";
import { textMessages, textOutcome } from "../../../../src/gateway/channels/outbox/messages.ts";
import { eventually } from "../../../e2e/hearth.ts";
import { makeBox, scripted, type Box } from "../fixtures.ts";
import { sectionFor, sections, startPlatform, TOKEN } from "../platforms.ts";

const DAY_MS = 24 * 3_600_000;
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

/** A box whose clocks stand still, and what it logs. */
async function open(channels: readonly Channel[], more: Partial<OutboxDeps> = {}) {
  const lines: { level: string; msg: string; channel?: string; reason?: string }[] = [];
  const log = makeLogger({ write: (line) => void lines.push(JSON.parse(line)), now: () => 0, debug: true });
  const clock = { now: 1_000_000_000 };
  const elapsed = spyOn(performance, "now").mockImplementation(() => clock.now); // else it looks set back
  cleanups.push(() => elapsed.mockRestore());
  const box = makeBox(channels, { log, now: () => clock.now, ...more });
  await box.outbox.start();
  cleanups.push(async () => {
    await box.outbox.stop({ graceMs: 0 });
    await box.remove();
  });
  const put = async (groupId: string, to = "ann", channel = "scripted"): Promise<void> => {
    await box.store.write(() => box.outbox.add({ groupId, target: { channel, to }, text: groupId, now: clock.now }));
    box.outbox.poke();
  };
  return { box, lines, clock, put };
}

const outcomeOf = ({ store }: Box, groupId: string) => store.read(() => textOutcome(groupId));
const isSent = (box: Box, groupId: string) => eventually(async () => (await outcomeOf(box, groupId))?.kind === "sent");

test("the messages of a revoked token wait, cost no attempt, and arrive in order after it was replaced", async () => {
  const server = startPlatform("slack");
  const folder = mkdtempSync(join(tmpdir(), "hearth-refused-"));
  cleanups.push(() => (server.stop(), rmSync(folder, { recursive: true })));
  const file = join(folder, "token");
  const refusals: string[] = [];
  server.reply = ({ path, headers }) => {
    if (headers.get("authorization") === `Bearer ${TOKEN}`) return undefined;
    refusals.push(path);
    return Response.json({ ok: false, error: "token_revoked" });
  };
  const load = async (token: string) => {
    writeFileSync(file, token);
    const { botToken: _, ...section } = sectionFor("slack", server.url) as Record<string, unknown>;
    const config = channelsSchema.parse({ slack: { ...section, tokenFile: "token", spacingMs: 0 } });
    const { kinds } = await loadKinds(config, { folder });
    return makeChannels(config, kinds, { fetch, folder, now: Date.now }).channels;
  };
  let channels = await load("old");
  const tried: string[] = [];
  const { box, lines, clock, put } = await open([], {
    channels: () => channels,
    onTried: (_, kind) => tried.push(kind),
  });
  const groups = ["one", "two", "three"];
  for (const group of groups) await put(group, sections.slack.to.replace(/^#/, "channel:"), "slack");
  expect(await eventually(() => box.outbox.troubled.some(({ isRefused }) => isRefused))).toBe(true);
  const first = async () => (await box.store.read(() => textMessages("one")))[0]!;
  for (let hour = 0; hour < 4; hour++) {
    const before = refusals.length;
    clock.now += 3_600_000; // more pauses than attempts that a message has
    box.outbox.poke();
    expect(await eventually(async () => refusals.length > before && (await first()).state === "queued")).toBe(true);
  }
  expect(await first()).toMatchObject({ attempts: 0, reason: "slack: token_revoked" });
  channels = await load(TOKEN);
  box.outbox.channelsChanged();
  expect(await isSent(box, "three")).toBe(true);
  const taken = server.seen.filter(({ headers }) => headers.get("authorization") === `Bearer ${TOKEN}`);
  expect(taken.map(({ body }) => body["text"])).toEqual(groups);
  expect(box.outbox.troubled).toEqual([]);
  expect(new Set(tried)).toEqual(new Set(["refused", "sent"]));
  expect(lines.map(({ level, msg, reason }) => [level, msg, reason])).toEqual([
    ["warn", "a channel refuses our credentials: its messages wait until they are replaced", "slack: token_revoked"],
    ["info", "a channel's outage is over: no message is waiting for a retry", undefined],
  ]);
});

test("only one message at a time asks whether the credentials are taken again, after a growing pause", async () => {
  let sends = 0;
  let outcome: SendOutcome = { kind: "refused", reason: "401" };
  const { box, clock, put, lines } = await open([scripted(() => (sends++, outcome))]);
  await put("first", "lane-0");
  expect(await eventually(() => box.outbox.troubled.length === 1 && sends === 1)).toBe(true);
  for (let i = 1; i < 10; i++) await put(`g${i}`, `lane-${i}`);
  const asksAfter = async (ms: number): Promise<boolean> => {
    const before = sends;
    clock.now += ms - 1;
    box.outbox.poke();
    await box.store.read(() => textOutcome("first"));
    await Bun.sleep(20); // a claim takes a millisecond
    expect(sends).toBe(before);
    clock.now += 1;
    box.outbox.poke();
    return eventually(() => sends === before + 1);
  };
  expect(await asksAfter(15_000)).toBe(true);
  expect(await asksAfter(15_000)).toBe(true);
  clock.now += 100 * 60_000;
  box.outbox.poke();
  expect(await eventually(() => sends === 4)).toBe(true);
  expect(await asksAfter(300_000)).toBe(true);
  outcome = { kind: "sent" };
  clock.now += 300_000;
  box.outbox.poke();
  expect(await isSent(box, "g9")).toBe(true);
  expect(lines.map(({ msg }) => msg)).toContain("a channel takes our credentials again");
});

test("after a restart the messages are tried at once", async () => {
  let outcome: SendOutcome = { kind: "refused", reason: "401" };
  const { box, put } = await open([scripted(() => outcome)]);
  await put("g");
  expect(await eventually(() => box.outbox.troubled.length === 1)).toBe(true);
  await box.outbox.stop({ graceMs: 0 });
  outcome = { kind: "sent" };
  const again = box.again();
  cleanups.push(() => again.stop({ graceMs: 0 }));
  await again.start();
  expect(await isSent(box, "g")).toBe(true);
});

test("a message that has waited for a day fails, without a further request", async () => {
  let sends = 0;
  const { box, clock, put } = await open([scripted(() => (sends++, { kind: "refused", reason: "x: expired" }))]);
  await put("old");
  expect(await eventually(() => box.outbox.troubled.length === 1)).toBe(true);
  clock.now += DAY_MS - 10_000;
  await put("young", "ben");
  expect(await eventually(() => sends === 2)).toBe(true);
  const failed = async () => (await outcomeOf(box, "old"))?.kind === "failed";
  clock.now += 10_001; // within the pause of the last attempt
  box.outbox.poke();
  expect(await eventually(failed)).toBe(true);
  expect([sends, await outcomeOf(box, "old"), await outcomeOf(box, "young")]).toEqual([
    2,
    { kind: "failed", reason: "x: expired", messageIds: [] },
    undefined,
  ]);
});

test("a text with another channel does not wait", async () => {
  let sends = 0;
  const { box, put } = await open([scripted(() => (sends++, { kind: "refused", reason: "x: expired" }))], {
    goElsewhere: async (groupIds) => new Set(groupIds.filter((id) => id.startsWith("elsewhere"))),
  });
  await put("elsewhere-1");
  await put("waits", "ben");
  await put("elsewhere-2");
  for (const group of ["elsewhere-1", "elsewhere-2"]) {
    expect(await eventually(async () => (await outcomeOf(box, group))?.kind === "failed")).toBe(true);
  }
  expect(await outcomeOf(box, "waits")).toBeUndefined();
  expect(sends).toBeLessThan(3);
});
