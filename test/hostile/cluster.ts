/**
 * Nodes as processes on one PostgreSQL database, and a chat that does not recognise repeats, for tests to kill, stop
 * and inspect.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Glob, SQL } from "bun";
import { startPostgres, type PostgresServer } from "../postgres-server.ts";
import { makeNetwork, type Network } from "./network.ts";

export const TOKEN = "a-hook-token-of-32-characters-xx";
export const SCHEMA = "stress";

export interface Node {
  readonly url: string;
  readonly pid: number;
  kill(): Promise<void>;
  signal(name: "SIGSTOP" | "SIGCONT"): void;
}

export interface Cluster {
  readonly server: PostgresServer;
  readonly sql: SQL;
  readonly folder: string;
  /** Number of times that the chat got each text. */
  readonly sentTexts: ReadonlyMap<string, number>;
  /** A separate network for one node's connection to the database; absent: none. */
  readonly network: Network | undefined;
  startNode(how?: Start): Promise<Node>;
  /** Notes of all nodes, sorted by time. */
  notes(): Note[];
  close(): Promise<void>;
}

/** Differences between one node and the others. */
export interface Start {
  /** Offset of its clock in seconds. */
  readonly clock?: number;
  /** True if it reaches the database through the network that can be cut. */
  readonly isFar?: boolean;
  /** Program of another version. */
  readonly program?: string;
}

export interface Note {
  readonly at: number;
  readonly pid: number;
  readonly begins?: string;
  readonly ends?: string;
  readonly log?: { readonly level: string; readonly msg: string; readonly node?: number };
}

/** @param hasNetwork true allows a node whose connection to the database can be cut */
export async function makeCluster({ hasNetwork = false } = {}): Promise<Cluster> {
  const folder = mkdtempSync(join(tmpdir(), "hearth-cluster-"));
  const network = hasNetwork ? makeNetwork() : undefined;
  const here = network?.front.here ?? "127.0.0.1";
  const server = await startPostgres(network && { address: network.back.here });
  const sentTexts = new Map<string, number>();
  const chat = Bun.serve({
    port: 0,
    hostname: here,
    async fetch(request) {
      const { text } = (await request.json()) as { text: string };
      sentTexts.set(text, (sentTexts.get(text) ?? 0) + 1);
      return Response.json({ ok: true, result: { message_id: 1 } });
    },
  });
  const settings = {
    database: { url: server.url, schema: SCHEMA, connections: 4 },
    hooks: { enabled: true, token: TOKEN, queue: { max: 100_000, maxAttempts: 100 } },
    session: { maxEvents: 100_000 }, // no one reads them here
    channels: { telegram: { botToken: "123:abc", baseUrl: `http://${here}:${chat.port}`, spacingMs: 0 } },
    agents: { defaults: { model: "m", heartbeat: { every: 0, target: "none" } } },
  };
  const children: Bun.Subprocess[] = [];
  /** Seconds, by process. */
  const clocks = new Map<number, number>();
  const sql = new SQL({ adapter: "postgres", path: server.socket, username: "hearth", database: "postgres" });
  return {
    server,
    sql,
    folder,
    sentTexts,
    network,
    async startNode({ clock = 0, isFar, program = PROGRAM } = {}) {
      const log = join(folder, `${children.length}.log`);
      const far = isFar ? network! : undefined;
      const url = far ? `postgres://hearth@${far.back.here}/postgres` : server.url;
      const given = JSON.stringify({ ...settings, database: { ...settings.database, url } });
      const command = [process.execPath, program, given, log, far?.front.there ?? "127.0.0.1"];
      const child = Bun.spawn(far?.inside(command) ?? command, {
        stdin: "pipe",
        stdout: "pipe",
        stderr: "ignore",
        env: {
          ...process.env,
          ...(clock !== 0 && { LD_PRELOAD: FAKETIME, FAKETIME: `${clock > 0 ? "+" : ""}${clock}s` }),
        },
      });
      children.push(child);
      clocks.set(child.pid, clock);
      const { now = Date.now(), ...node } = await whenReady(child);
      const off = Math.round((now - Date.now()) / 60_000) * 60;
      if (off !== clock) throw new Error(`a node's clock is off by ${off} s, not ${clock} s`);
      return node;
    },
    notes: () => notesIn(folder, clocks),
    async close() {
      for (const child of children) child.kill("SIGKILL");
      await Promise.all(children.map((child) => child.exited));
      await sql.close({ timeout: 0 });
      chat.stop(true);
      await server.remove();
      network?.remove();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Debian's libfaketime, the one for programs with threads. */
export const FAKETIME = [
  ...new Glob("usr/lib/*/faketime/libfaketimeMT.so.1").scanSync({ cwd: "/", absolute: true }),
][0];

const PROGRAM = join(import.meta.dir, "cluster-node.ts");

async function whenReady(child: Bun.Subprocess<"pipe", "pipe", "ignore">): Promise<Node & { now?: number }> {
  let said = "";
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    said += chunk;
    if (said.endsWith("\n")) break;
  }
  if (said === "") throw new Error(`a node ended with ${await child.exited}`);
  return {
    ...(JSON.parse(said) as { url: string; now?: number }),
    pid: child.pid,
    signal: (name) => child.kill(name),
    async kill() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

/** @param clocks offsets of the processes' clocks in seconds */
function notesIn(folder: string, clocks: ReadonlyMap<number, number>): Note[] {
  const files = readdirSync(folder).filter((name) => name.endsWith(".log"));
  const lines = files.flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n"));
  return lines
    .flatMap((line) => (line.endsWith("}") ? [JSON.parse(line) as Note] : []))
    .map((note) => ({ ...note, at: note.at - 1000 * (clocks.get(note.pid) ?? 0) }))
    .toSorted((a, b) => a.at - b.at);
}
