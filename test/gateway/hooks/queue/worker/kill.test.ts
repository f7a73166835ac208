import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundled } from "../../../../bundled.ts";
import { testRng } from "../../../../seed.ts";

const PROGRAM = await bundled(join(import.meta.dir, "killable.ts"));
const KILLS = 50;
const PER_LIFE = 6;
/** The turns of each fifth life do not end: it is killed as soon as one has begun. */
const TURN_EVERY = 5;

interface Child {
  say(line: object): void;
  /** Its next line; undefined once it has ended. */
  hear(): Promise<any>;
  kill(): Promise<void>;
}

function start(folder: string, life: number): Child {
  const args = [
    join(folder, "gateway.db"),
    join(folder, "log"),
    `${life}`,
    ...(life % TURN_EVERY === 0 ? ["hangs"] : []),
  ];
  const child = Bun.spawn([process.execPath, PROGRAM, ...args], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const lines = (async function* () {
    let rest = "";
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      const all = (rest + chunk).split("\n");
      rest = all.pop()!;
      for (const line of all) yield JSON.parse(line);
    }
  })();
  return {
    say: (line) => {
      child.stdin.write(`${JSON.stringify(line)}\n`);
      child.stdin.flush();
    },
    hear: async () => (await lines.next()).value,
    kill: async () => {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

test("after fifty kills at random moments, every accepted run ends, no stored turn runs again, and nothing is sent twice", async () => {
  const folder = mkdtempSync(join(tmpdir(), "hearth-kill-"));
  const rng = testRng("hooks/worker/kill");
  try {
    const accepted = new Map<string, string>(); // key → run
    let keys = 0;
    for (let life = 0; life < KILLS; life++) {
      const child = start(folder, life);
      await child.hear(); // ready
      const unheard = Array.from({ length: keys }, (_, i) => `${i}`).filter((key) => !accepted.has(key));
      for (const key of unheard) child.say({ accept: key });
      for (let i = 0; i < PER_LIFE; i++) child.say({ accept: `${keys++}` });
      const isInTurn = life % TURN_EVERY === 0;
      const killed = isInTurn ? undefined : Bun.sleep(rng.float() * 100).then(() => child.kill());
      for (let line = await child.hear(); line; line = await child.hear()) {
        if (line.key !== undefined) accepted.set(line.key, line.runIds[0]);
        else await child.kill(); // in the middle of a turn
      }
      await killed;
    }
    const last = start(folder, KILLS + 1);
    await last.hear();
    for (let key = 0; key < keys; key++) last.say({ accept: `${key}` });
    for (let answered = 0; answered < keys; answered++) {
      const line = await last.hear();
      const known = accepted.get(line.key);
      if (known === undefined) accepted.set(line.key, line.runIds[0]);
      else expect(line).toMatchObject({ kind: "replayed", runIds: [known] });
    }
    for (let open = 1; open > 0;) {
      last.say({ look: true });
      open = (await last.hear()).open;
      await Bun.sleep(10);
    }
    await last.kill();
    check(folder, [...accepted.values()]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 300_000);

function check(folder: string, runIds: readonly string[]): void {
  using db = new Database(join(folder, "gateway.db"), { readonly: true });
  const all = <T>(sql: string): T[] => db.query<T, []>(sql).all();
  expect(new Set(runIds).size).toBe(KILLS * PER_LIFE);
  const ids = (rows: { id: string }[]): string[] => rows.map((row) => row.id).toSorted();
  expect(ids(all("SELECT id FROM runs WHERE state = 'succeeded'"))).toEqual([...runIds].toSorted());
  // one event for every run and for every reply that may not have arrived, one stored turn for every agent call
  const unknown = all("SELECT id FROM runs WHERE reply = 'unknown'").length;
  expect(all("SELECT text FROM test_events").length).toBe(runIds.length + unknown);
  expect(all("SELECT text FROM test_events GROUP BY text HAVING count(*) > 1")).toEqual([]);
  const agents = ids(all("SELECT id FROM runs WHERE action ->> 'kind' = 'agent'"));
  expect(ids(all("SELECT run_id AS id FROM test_turns"))).toEqual(agents);
  // turns of a session were stored in the order of their acceptance
  const orders = all<{ ordered: number }>(
    `SELECT test_turns.seq > lag(test_turns.seq) OVER (PARTITION BY runs.session_key ORDER BY runs.seq) AS ordered
     FROM test_turns JOIN runs ON runs.id = run_id`,
  );
  expect(orders.every((row) => row.ordered !== 0)).toBe(true);

  const log = readFileSync(join(folder, "log"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(log.filter((line) => line.error)).toEqual([]);
  const sends = log.filter((line) => line.send).map((line) => line.send as string);
  expect(sends.length).toBe(new Set(sends).size);
  const replies = all<{ id: string; reply: string }>("SELECT id, reply FROM runs WHERE reply <> 'none'");
  for (const { id, reply } of replies) {
    expect(["sent", "unknown"]).toContain(reply);
    if (reply === "sent") expect(sends).toContain(id);
  }
  expect(replies.length).toBe(ids(all("SELECT group_id AS id FROM test_replies")).length);
  const stored = new Set<string>();
  let repeated = 0;
  const begun = new Set<string>();
  for (const line of log) {
    for (const id of line.boot ?? []) stored.add(id);
    if (!line.turn) continue;
    expect(stored.has(line.turn)).toBe(false);
    if (begun.has(line.turn)) repeated++;
    begun.add(line.turn);
  }
  expect(repeated).toBeGreaterThanOrEqual(KILLS / TURN_EVERY); // they were killed in the middle of a turn
}
