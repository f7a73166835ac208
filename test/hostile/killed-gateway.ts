/**
 * The real server under load, killed at random moments and restarted, with senders that repeat a request until it is
 * accepted and a chat that records its messages, like Discord: the first of equal nonces counts.
 */
import { Database } from "bun:sqlite";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually, startHearth, type Hearth } from "../e2e/hearth.ts";
import { testRng } from "../seed.ts";

const TOKEN = "a-hook-token-of-32-characters-xx";
const SENDERS = 4;
const SESSIONS = 3;
/** One of a sender's requests in this many runs a model: a second accepts more turns than models run in a minute. */
const AGENT_EVERY = 40;
/** After a start, so that models are loaded in some rounds and not in others. */
const KILL_WITHIN_MS = 1500;
/** Time without any ending run after which they count as stuck. */
const STALL_MS = 60_000;

export interface KillReport {
  readonly kills: number;
  readonly accepted: number;
  /** Runs that were reported to a sender and that the server does not know, or has not finished. */
  readonly lost: readonly string[];
  /** Keys with several runs, turns stored twice, messages that arrived twice. */
  readonly duplicates: readonly string[];
  /** Messages that only one of server and chat counts as sent. */
  readonly mismatches: readonly string[];
  /** Sessions whose turns are not in the order of acceptance. */
  readonly disordered: readonly string[];
  /** Final states and replies, each with its number. */
  readonly outcomes: Readonly<Record<string, number>>;
}

function recordingChat() {
  const nonces = new Map<string, number>();
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { nonce } = (await request.json()) as { nonce: string };
      nonces.set(nonce, (nonces.get(nonce) ?? 0) + 1);
      return Response.json({ id: nonce });
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, nonces, stop: () => server.stop(true) };
}

const settings = (baseUrl: string) => ({
  hooks: { enabled: true, token: TOKEN }, // a kill ends no attempt
  channels: { discord: { token: "t.o.k", baseUrl, defaultTo: "channel:123456", spacingMs: 0 } },
  session: { maxEvents: 100_000 }, // no one reads them here
  agents: { defaults: { heartbeat: { every: 0, target: "none" } } },
});

/** The senders' knowledge: runs by idempotency key. */
type Ledger = Map<string, string>;

export async function killGateway({ kills }: { kills: number }): Promise<KillReport> {
  const home = mkdtempSync(join(tmpdir(), "hearth-gateway-kill-"));
  const chat = recordingChat();
  mkdirSync(join(home, ".hearth"));
  writeFileSync(join(home, ".hearth", "hearth.json5"), JSON.stringify(settings(chat.url)), { mode: 0o600 });
  const ledger: Ledger = new Map();
  const senders = Array.from({ length: SENDERS }, (_, id) => new Sender(id, ledger));
  const rng = testRng("killed-gateway");
  let last: Hearth | undefined;
  try {
    for (let kill = 0; kill < kills; kill++) {
      const hearth = await startHearth({ home, isSteady: true });
      const work = senders.map((sender) => sender.sendUntilDown(hearth.url));
      await Bun.sleep(rng.float() * KILL_WITHIN_MS);
      await hearth.stop(); // SIGKILL
      await Promise.all(work);
    }
    last = await startHearth({ home, isSteady: true });
    const { url } = last;
    await Promise.all(senders.map((sender) => sender.sendPending(url)));
    await settle(home);
    return { kills, ...examine(home, { ledger, nonces: chat.nonces }) };
  } finally {
    await last?.stop();
    chat.stop();
    rmSync(home, { recursive: true, force: true });
  }
}

class Sender {
  readonly #id: number;
  readonly #ledger: Ledger;
  #next = 0;

  constructor(id: number, ledger: Ledger) {
    this.#id = id;
    this.#ledger = ledger;
  }

  async sendUntilDown(url: string): Promise<void> {
    while (await this.sendPending(url)) this.#next++;
  }

  /** Repeats the same request until it is answered. Returns true if it was. */
  async sendPending(url: string): Promise<boolean> {
    const key = `${this.#id}-${this.#next}`;
    const isWake = this.#next % AGENT_EVERY !== 0;
    const agent = {
      message: "Hello! Who are you?",
      sessionKey: `hook:s${(this.#id + this.#next / AGENT_EVERY) % SESSIONS}`,
      wakeMode: "next-heartbeat",
    };
    const body = isWake ? { text: `event ${key}`, mode: "next-heartbeat" } : agent;
    try {
      const response = await fetch(`${url}/hooks/${isWake ? "wake" : "agent"}`, {
        method: "POST",
        headers: { authorization: `Bearer ${TOKEN}`, "idempotency-key": key },
        body: JSON.stringify(body),
      });
      const { ok, runId } = (await response.json()) as { ok: boolean; runId: string };
      if (!ok) throw new Error(`${key}: ${response.status}`);
      this.#ledger.set(key, runId);
      return true;
    } catch {
      return false;
    }
  }
}

/** Waits until every run is over, for as long as some end: their number depends on the speed of acceptance. */
async function settle(home: string): Promise<void> {
  let open = openRuns(home);
  const hasShrunk = (): boolean => open > (open = openRuns(home));
  while (open > 0 && (await eventually(hasShrunk, STALL_MS)));
}

const openDb = (home: string): Database => new Database(join(home, ".hearth", "gateway.db"), { readonly: true });

function openRuns(home: string): number {
  using db = openDb(home);
  const sql = "SELECT count(*) AS n FROM runs WHERE finished_at IS NULL OR reply = 'pending'";
  return db.query<{ n: number }, []>(sql).get()!.n;
}

interface RunRow {
  readonly key: string;
  readonly id: string;
  readonly kind: string;
  readonly state: string;
  readonly reply: string;
  readonly session: string;
}

function examine(home: string, { ledger, nonces }: { ledger: Ledger; nonces: ReadonlyMap<string, number> }) {
  using db = openDb(home);
  const runs = db
    .query<RunRow, []>(
      `SELECT idempotency_key AS key, runs.id, action ->> 'kind' AS kind, state, reply, session_key AS session FROM runs
       JOIN deliveries ON deliveries.id = delivery_id ORDER BY runs.seq`,
    )
    .all();
  const byKey = Map.groupBy(runs, (run) => run.key);
  const isWhole = (run: RunRow): boolean =>
    run.state === "succeeded" && (run.kind === "wake" || run.reply !== "pending");
  const lost = [...ledger].filter(([key, id]) => !byKey.get(key)?.some((run) => run.id === id && isWhole(run)));
  const twice = [...byKey].filter(([, { length }]) => length > 1).map(([key]) => `runs of ${key}`);
  const asked = db.query<{ run: string; n: number }, []>(
    "SELECT run_id AS run, count(*) AS n FROM session_entries WHERE body ->> 'role' = 'user' GROUP BY run_id HAVING n > 1",
  );
  const groups = db.query<{ id: string; n: number }, []>(
    "SELECT group_id AS id, count(*) AS n FROM outbox GROUP BY group_id, chunk_index HAVING n > 1",
  );
  const outcomes = Map.groupBy(runs, ({ kind, state, reply }) => `${kind} ${state}, reply ${reply}`);
  return {
    accepted: ledger.size,
    lost: lost.map(([key]) => key),
    duplicates: [
      ...twice,
      ...asked.all().map(({ run }) => `turns of ${run}`),
      ...groups.all().map(({ id }) => `messages of ${id}`),
    ],
    mismatches: mismatchesOf(db, nonces),
    disordered: disorderedOf(db, runs),
    outcomes: Object.fromEntries([...outcomes].map(([name, { length }]) => [name, length])),
  };
}

/** The server counts exactly the arrived messages as `sent`. */
function mismatchesOf(db: Database, nonces: ReadonlyMap<string, number>): string[] {
  const rows = db.query<{ key: string; state: string }, []>("SELECT key, state FROM outbox").all();
  const nonceOf = (key: string): string => createHash("sha256").update(key).digest("base64url").slice(0, 25);
  const known = new Set(rows.map(({ key }) => nonceOf(key)));
  const strangers = [...nonces.keys()].filter((nonce) => !known.has(nonce)).map((nonce) => `${nonce} has no row`);
  const missing = rows.filter(({ key, state }) => state !== "sent" || !nonces.has(nonceOf(key)));
  return [...strangers, ...missing.map(({ key, state }) => `${key} is ${state}`)];
}

function disorderedOf(db: Database, runs: readonly RunRow[]): string[] {
  const stored = db
    .query<{ run: string; session: string }, []>(
      "SELECT run_id AS run, session_key AS session FROM session_entries GROUP BY run_id ORDER BY min(seq)",
    )
    .all();
  const sessions = Map.groupBy(
    runs.filter(({ kind }) => kind === "agent"),
    (run) => run.session,
  );
  return [...sessions].flatMap(([session, own]) => {
    const order = stored.filter((each) => each.session === session).map(({ run }) => run);
    return Bun.deepEquals(
      order,
      own.map(({ id }) => id),
    )
      ? []
      : [session];
  });
}
