/**
 * Nodes as processes on one PostgreSQL database, and a chat that recognises no repeats: what a test kills, stops and
 * looks at.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { startPostgres, type PostgresServer } from "../postgres-server.ts";

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
  /** How often the chat got each text. */
  readonly told: ReadonlyMap<string, number>;
  startNode(): Promise<Node>;
  /** What nodes noted, in the order of time. */
  notes(): Note[];
  close(): Promise<void>;
}

export interface Note {
  readonly at: number;
  readonly pid: number;
  readonly begins?: string;
  readonly ends?: string;
  readonly log?: { readonly level: string; readonly msg: string; readonly node?: number };
}

export async function makeCluster(): Promise<Cluster> {
  const folder = mkdtempSync(join(tmpdir(), "hearth-cluster-"));
  const server = await startPostgres();
  const told = new Map<string, number>();
  const chat = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { text } = (await request.json()) as { text: string };
      told.set(text, (told.get(text) ?? 0) + 1);
      return Response.json({ ok: true, result: { message_id: 1 } });
    },
  });
  const settings = {
    database: { url: server.url, schema: SCHEMA, connections: 4 },
    hooks: { enabled: true, token: TOKEN, queue: { max: 100_000, maxAttempts: 100 } },
    session: { maxEvents: 100_000 }, // nobody reads them here
    channels: { telegram: { botToken: "123:abc", baseUrl: `http://127.0.0.1:${chat.port}`, spacingMs: 0 } },
    agents: { defaults: { model: "m", heartbeat: { every: 0, target: "none" } } },
  };
  const children: Bun.Subprocess[] = [];
  const path = new URL(server.url).searchParams.get("host")!;
  const sql = new SQL({ adapter: "postgres", path: `${path}/.s.PGSQL.5432`, username: "hearth", database: "postgres" });
  return {
    server,
    sql,
    folder,
    told,
    startNode() {
      const log = join(folder, `${children.length}.log`);
      const child = Bun.spawn([process.execPath, PROGRAM, JSON.stringify(settings), log], {
        stdin: "pipe",
        stdout: "pipe",
        stderr: "ignore",
      });
      children.push(child);
      return whenReady(child);
    },
    notes: () => notesIn(folder),
    async close() {
      for (const child of children) child.kill("SIGKILL");
      await Promise.all(children.map((child) => child.exited));
      await sql.close({ timeout: 0 });
      chat.stop(true);
      await server.remove();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const PROGRAM = join(import.meta.dir, "cluster-node.ts");

async function whenReady(child: Bun.Subprocess<"pipe", "pipe", "ignore">): Promise<Node> {
  let said = "";
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    said += chunk;
    if (said.endsWith("\n")) break;
  }
  if (said === "") throw new Error(`a node ended with ${await child.exited}`);
  return {
    ...(JSON.parse(said) as { url: string }),
    pid: child.pid,
    signal: (name) => child.kill(name),
    async kill() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

function notesIn(folder: string): Note[] {
  const files = readdirSync(folder).filter((name) => name.endsWith(".log"));
  const lines = files.flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n"));
  return lines
    .flatMap((line) => (line.endsWith("}") ? [JSON.parse(line) as Note] : []))
    .toSorted((a, b) => a.at - b.at);
}
