/** Bounds of the kept responses. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KeptResponses } from "../../../src/server/responses/kept.ts";

const folder = mkdtempSync(join(tmpdir(), "hearth-kept-"));
afterAll(() => rmSync(folder, { recursive: true }));

const LIMITS = { count: 1000, bytes: 1e9, ageMs: Infinity };
const owner = "o";
const KIB = 1024;

function open(limits: Partial<typeof LIMITS> = {}) {
  const clock = { now: 1e12 };
  const path = join(folder, `${crypto.randomUUID()}.db`);
  const kept = new KeptResponses(path, { ...LIMITS, ...limits }, () => clock.now);
  const keep = (id: string, { previous, text = "" }: { previous?: string; text?: string } = {}): void => {
    clock.now++;
    const input = [{ id: `i-${id}`, type: "message", text }];
    kept.keep({ owner, id }, { response: { id, output: [{ id: `o-${id}` }] }, input, previous });
  };
  const left = (ids: readonly string[]) => ids.filter((id) => kept.find({ owner, id }));
  return { kept, keep, left, clock, path };
}

const range = (count: number) => Array.from({ length: count }, (_, i) => `r${i}`);

test("above the limit of responses, the least recently used go first, and a continued conversation stays whole", () => {
  const { kept, keep, left, clock } = open({ count: 5 });
  keep("r0");
  keep("r1", { previous: "r0" });
  for (const id of ["r2", "r3", "r4"]) keep(id);
  clock.now++;
  expect(kept.conversation({ owner, id: "r1" }).items.map(({ id }) => id)).toEqual(["i-r0", "o-r0", "i-r1", "o-r1"]);
  keep("r5");
  keep("r6");
  expect(left(range(7))).toEqual(["r0", "r1", "r4", "r5", "r6"]);
});

test("above the limit of bytes, old responses go; a response larger than the limit is refused and removes nothing", () => {
  const { keep, left } = open({ bytes: 10 * KIB });
  const text = "x".repeat(4 * KIB);
  for (const id of range(4)) keep(id, { text });
  expect(left(range(4))).toEqual(["r2", "r3"]);
  expect(() => keep("big", { text: "x".repeat(11 * KIB) })).toThrow(/expected at most 10240 bytes with its input/);
  expect(left([...range(4), "big"])).toEqual(["r2", "r3"]);
});

test("expired responses are not found, and are removed", () => {
  const { kept, keep, left, clock } = open({ ageMs: 1000 });
  keep("r0");
  keep("r1");
  clock.now += 990;
  kept.conversation({ owner, id: "r1" });
  clock.now += 100;
  expect(left(["r0", "r1"])).toEqual(["r1"]);
  expect(kept.conversation({ owner, id: "r0" })).toEqual({ items: [], missing: "r0" });
});

test("a conversation has at most 1,000 responses", () => {
  const { kept, keep } = open({ count: 2000 });
  const ids = range(1001);
  for (const [i, id] of ids.entries()) keep(id, i === 0 ? {} : { previous: ids[i - 1]! });
  expect(kept.conversation({ owner, id: "r999" }).items).toHaveLength(2000);
  expect(() => kept.conversation({ owner, id: "r1000" })).toThrow(/at most 1000 responses/);
});

test.skipIf(process.platform === "win32")(
  "the file is readable only by its user, and loses the text of deleted responses",
  async () => {
    const { kept, keep, path } = open();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    keep("r0", { text: "a very secret text" });
    kept.remove({ owner, id: "r0" });
    for (const file of [path, `${path}-wal`]) expect(await Bun.file(file).text()).not.toContain("a very secret text");
    kept.close();
  },
);
