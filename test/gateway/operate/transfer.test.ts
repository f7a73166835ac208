/** A gateway's state as a file, and from there into another database: completely or not at all. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { execute, queryAll, type Store } from "../../../src/gateway/database/store.ts";
import type { ConfigSources } from "../../../src/base/config/config.ts";
import { exportGateway, importGateway, migrateGateway } from "../../../src/gateway/operate/transfer/index.ts";
import { TABLES } from "../../../src/gateway/operate/transfer/tables.ts";
import { eventually, runHearth } from "../../e2e/hearth.ts";
import { hasPostgres, startPostgres, type PostgresServer } from "../../postgres-server.ts";
import { quiet, startGateway, TOKEN, type GatewayBench } from "./fixtures.ts";

/** Tables that are not transferred: migrations, counts kept by triggers, and processes. */
const LEFT_TABLES = [
  "migrations",
  "session_event_counts",
  "session_event_parts",
  "open_runs",
  "open_lanes",
  "workers",
  "nodes",
  "leases",
  "rate_buckets",
  "server_lives", // about the database's processes
];
const WAIT_MS = 60_000;
const cleanups: (() => unknown)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "hearth-transfer-"));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const settings = { hooks: { enabled: true, token: TOKEN }, agents: quiet };

/** The command line's sources for a gateway in this folder. */
function sourcesOf(folder: string, config: object = settings): ConfigSources {
  const file = join(folder, "transfer.json5");
  writeFileSync(file, JSON.stringify(config));
  return { env: { HEARTH_HOME: folder }, flags: { config: file }, home: folder };
}

const linesOf = (path: string): any[] =>
  readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
/** All but the first line, which has the time. */
const contentOf = (path: string): unknown[] => linesOf(path).slice(1);

/** With U+0000, which one of the databases cannot hold, replaced. */
const storable = (content: unknown[]): unknown[] =>
  JSON.parse(JSON.stringify(content), (_, value) =>
    typeof value === "string" ? value.replaceAll("\0", "\uFFFD") : value,
  );

const ask = async (bench: GatewayBench, message: string): Promise<string> => {
  const response = await bench.post("agent", { message, sessionKey: "hook:talk", wakeMode: "next-heartbeat" });
  expect(response.status).toBe(202);
  return ((await response.json()) as { runId: string }).runId;
};
const isDone = async (bench: GatewayBench, runId: string): Promise<boolean> =>
  (await bench.gateway.deliveries.run(runId))?.finishedAt != null;

/** A gateway that has answered, has waiting events, and was stopped in the middle of a turn. */
async function usedGateway(): Promise<{ folder: string; waiting: string }> {
  const folder = tempFolder();
  const never = new Promise(() => {});
  const script = (_: unknown, index: number) => (index === 0 ? { text: "one" } : { text: "two", until: never });
  const bench = await startGateway(settings, { folder, script });
  const first = await ask(bench, "hello");
  expect(await eventually(() => isDone(bench, first), WAIT_MS)).toBe(true);
  for (const text of ["disk full", "disk \u0000 empty"]) await bench.post("wake", { text, mode: "next-heartbeat" });
  const waiting = await ask(bench, "and now?");
  expect(await eventually(() => bench.prompts().length === 2, WAIT_MS)).toBe(true);
  await fill(bench.gateway.store);
  await bench.stop();
  return { folder, waiting };
}

/** More rows than a page has, a body of bytes, and used sequence numbers. */
async function fill(store: Store): Promise<void> {
  await store.write(function* () {
    for (let i = 0; i < 120; i++) {
      yield* execute(
        "INSERT INTO mail_handled (mailbox, id_hash, handled_at) VALUES ($1, $2, $3)",
        `m${i % 2}`,
        `${i}`,
        i,
      );
    }
    yield* execute("UPDATE deliveries SET body = $1", Uint8Array.of(0, 255, 10));
    yield* execute(
      `INSERT INTO session_events (seq, session_key, text, is_wrapped, source, wants_heartbeat, is_delivered, count,
         created_at, last_at) VALUES (4711, 'agent:main:gone', 'x', 0, 'hook', 0, 0, 1, 1, 1)`,
    );
    yield* execute("DELETE FROM session_events WHERE seq = 4711");
  });
}

test("an export is complete and private, and an import into an empty home restores the same rows", async () => {
  const { folder } = await usedGateway();
  const [first, second] = [join(folder, "first.ndjson"), join(folder, "second.ndjson")];
  const counts = await exportGateway(sourcesOf(folder), first);
  expect(counts).toMatchObject({ sessions: 1, session_entries: 2, runs: 4, deliveries: 4, mail_handled: 120 });
  expect(statSync(first).mode & 0o777).toBe(0o600);
  const lines = linesOf(first);
  expect(lines[0]).toMatchObject({ format: "hearth-gateway-1" });
  expect(lines.at(-1)).toMatchObject({ counts, last: { session_events: 4711 } });
  const other = tempFolder();
  expect(await importGateway(sourcesOf(other), first)).toEqual(counts);
  await exportGateway(sourcesOf(other), second);
  expect(contentOf(second)).toEqual(storable(contentOf(first)));
  await expect(importGateway(sourcesOf(other), first)).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("not empty"),
  });
});

test("an import into an empty paused database keeps it paused", async () => {
  const from = tempFolder();
  const bench = await startGateway(settings, { folder: from });
  await bench.post("wake", { text: "disk full", mode: "next-heartbeat" });
  await bench.stop();
  const file = join(from, "from.ndjson");
  for (const isPaused of [false, true]) {
    if (isPaused) await pause(from);
    const exported = await exportGateway(sourcesOf(from), file);
    expect(exported["pauses"]).toBe(isPaused ? 1 : undefined);
    const to = tempFolder();
    await pause(to);
    expect(await importGateway(sourcesOf(to), file)).toEqual({ ...exported, pauses: 1 });
  }
});

async function pause(folder: string): Promise<void> {
  const bench = await startGateway(settings, { folder });
  await bench.gateway.worker.setPaused(true);
  await bench.stop();
}

test("an export does not replace a folder or a pipe", async () => {
  const folder = tempFolder();
  const sources = sourcesOf(folder);
  await migrateGateway(sources);
  const pipe = join(folder, "pipe");
  Bun.spawnSync(["mkfifo", pipe]);
  for (const [path, is] of [
    [folder, "a folder"],
    [pipe, "a device or a pipe"],
  ] as const) {
    const message = `cannot export to '${path}': expected a file, got ${is}`;
    await expect(exportGateway(sources, path)).rejects.toMatchObject({ code: "bad_request", message });
  }
  expect(statSync(pipe).isFIFO()).toBe(true);
});

test("an import of a truncated, changed or foreign file leaves the database empty", async () => {
  const { folder } = await usedGateway();
  const path = join(folder, "all.ndjson");
  const counts = await exportGateway(sourcesOf(folder), path);
  const text = readFileSync(path, "utf8");
  const lines = text.trimEnd().split("\n");
  const bad: [string, string | RegExp][] = [
    [text.slice(0, -20), "the file is cut"],
    [`${lines.slice(0, -1).join("\n")}\n`, "without its last line"],
    [`${lines.toSpliced(-5, 1).join("\n")}\n`, "expected 120 rows of mail_handled, got 119"],
    [`${text}${lines[1]}\n`, "lines behind its end"],
    [
      text.replace('"table":"runs","row":{', '"table":"runs","row":{"x) SELECT 1 --":1,'),
      "a column 'x) SELECT 1 --' of runs",
    ],
    [text.replace('"table":"runs"', '"table":"walks"'), "a table 'walks'"],
    [
      `${lines.filter((line) => !line.startsWith('{"table":"sessions"')).join("\n")}\n`,
      /all\.ndjson:2: expected an export of a gateway, got from there on rows that the tables refuse \(FOREIGN KEY/,
    ],
    ['{"format":"other","version":"1","at":""}\n', "format"],
    ["\u0001\n", "not JSON"],
    ["", "without its last line"],
  ];
  const target = sourcesOf(tempFolder());
  for (const [content, problem] of bad) {
    writeFileSync(path, content);
    await expect(importGateway(target, path)).rejects.toThrow(problem);
  }
  writeFileSync(path, text);
  expect(await importGateway(target, path)).toEqual(counts);
});

test("an export and an import are refused while a gateway runs on the database", async () => {
  const bench = await startGateway(settings);
  const path = join(tempFolder(), "x");
  for (const work of [exportGateway, importGateway]) {
    await expect(work(sourcesOf(bench.folder), path)).rejects.toMatchObject({ code: "conflict" });
  }
});

test("hearth migrate creates the tables of a home without any", async () => {
  const folder = tempFolder();
  expect(await migrateGateway(sourcesOf(folder))).toBe(`the gateway's tables in '${folder}' are up to date`);
  expect(await exportGateway(sourcesOf(folder), join(folder, "none"))).toEqual({});
});

test("without a gateway in the configuration or on the disk, nothing is created, migrated or exported", async () => {
  const home = tempFolder();
  const folder = join(home, ".hearth");
  const sources = { env: {}, flags: {}, home };
  const none = `no gateway is configured in '${folder}/hearth.json5', and there is no gateway.db in '${folder}'`;
  expect(await migrateGateway(sources)).toBe(`${none}: nothing to migrate`);
  await expect(exportGateway(sources, join(home, "x"))).rejects.toThrow(`${none}: nothing to export`);
  expect(readdirSync(home)).toEqual([]);
  const migrated = await runHearth(["migrate"], { home, env: { HEARTH_HOME: folder } });
  expect([migrated.code, migrated.stderr]).toEqual([0, ""]);
  expect(migrated.stdout).toEndWith("nothing to migrate\n");
  mkdirSync(folder);
  writeFileSync(join(folder, "gateway.db"), "");
  expect(await migrateGateway(sources)).toBe(`the gateway's tables in '${folder}' are up to date`);
}, 30_000);

test("the commands report the number of rows, and fail with one line", async () => {
  const { folder } = await usedGateway();
  const sources = sourcesOf(folder);
  const [file, config] = [join(folder, "all.ndjson"), String(sources.flags["config"])];
  const gateway = (verb: string, home: string) =>
    runHearth(["gateway", verb, file, "--config", config], { home, env: { HEARTH_HOME: home } });
  const went = await gateway("export", folder);
  expect(went).toEqual({
    code: 0,
    stdout: expect.stringContaining(`exported to ${file}: 1 sessions, 2 session_`),
    stderr: "",
  });
  const home = tempFolder();
  expect((await gateway("import", home)).stdout).toBe(went.stdout.replace("exported to", "imported from"));
  const again = await gateway("import", home);
  expect([again.code, again.stdout, again.stderr.split("\n").length]).toEqual([1, "", 2]);
}, 60_000);

test("every table is transferred or listed as not transferred", async () => {
  const bench = await startGateway(settings);
  const rows = await bench.gateway.store.read(() =>
    queryAll<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"),
  );
  const known = [...TABLES.map(({ name }) => name), ...LEFT_TABLES];
  expect(rows.map(({ name }) => name).filter((name) => !known.includes(name))).toEqual([]);
});

describe.skipIf(!hasPostgres)("PostgreSQL (Debian's postgresql)", () => {
  let server: PostgresServer;
  beforeAll(async () => void (server = await startPostgres()), 120_000);
  afterAll(() => server?.remove(), 60_000);

  const onServer = (schema: string) => ({ ...settings, database: { url: server.url, schema, connections: 4 } });

  test("rows survive a transfer from SQLite and back, and the interrupted turn and the conversation continue", async () => {
    const { folder, waiting } = await usedGateway();
    const [first, second, third] = ["first", "second", "third"].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    const config = onServer("moved");
    const counts = await exportGateway(sourcesOf(folder), first);
    expect(await migrateGateway(sourcesOf(folder, config))).toBe(
      "the gateway's tables in schema 'moved' of PostgreSQL are up to date",
    );
    expect(await importGateway(sourcesOf(folder, config), first)).toEqual(counts);
    await exportGateway(sourcesOf(folder, config), second);
    expect(contentOf(second)).toEqual(storable(contentOf(first)));
    const home = tempFolder();
    await importGateway(sourcesOf(home), second);
    await exportGateway(sourcesOf(home), third);
    expect(contentOf(third)).toEqual(contentOf(second));

    const bench = await startGateway(config, { script: () => ({ text: "three" }) });
    expect(await eventually(() => isDone(bench, waiting), WAIT_MS)).toBe(true);
    expect(await bench.gateway.deliveries.run(waiting)).toMatchObject({ state: "succeeded", answer: "three" });
    expect(JSON.stringify(bench.runtime.requests.at(-1)?.messages)).toContain("hello");
    const next = await ask(bench, "again");
    expect(await eventually(() => isDone(bench, next), WAIT_MS)).toBe(true);
    expect(await bench.gateway.status()).toMatchObject({ queued: 0, running: 0 });
    await bench.post("wake", { text: "later", mode: "next-heartbeat" });
    const [newest] = await bench.gateway.store.read(() =>
      queryAll<{ seq: number }>("SELECT max(seq) AS seq FROM session_events"),
    );
    expect(newest!.seq).toBeGreaterThan(4711); // numbers are not reused
    await expect(exportGateway(sourcesOf(folder, config), third)).rejects.toThrow(/in use by .*#\d+: stop them first/);
  }, 120_000);

  test("refuses a start that may not create tables with the advice to migrate, and starts after the migration", async () => {
    await server.run("CREATE ROLE clerk LOGIN");
    const config = onServer("ruled");
    const asClerk = { ...config, database: { ...config.database, url: server.url.replace("hearth@", "clerk@") } };
    await expect(startGateway(asClerk)).rejects.toThrow(
      /permission denied .*: run 'hearth migrate' as a role that may/,
    );
    await migrateGateway(sourcesOf(tempFolder(), config));
    const rights = "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ruled";
    await server.run(`GRANT USAGE ON SCHEMA ruled TO clerk; GRANT ${rights} TO clerk`);
    const bench = await startGateway(asClerk);
    const run = await ask(bench, "hello");
    expect(await eventually(() => isDone(bench, run), WAIT_MS)).toBe(true);
  }, 60_000);

  test("ends the commands with their work, without log lines about their node", async () => {
    const home = tempFolder();
    const { flags } = sourcesOf(home, onServer("quietly"));
    const file = join(home, "all.ndjson");
    const gateway = (...args: string[]) =>
      runHearth(["gateway", ...args, file, "--config", String(flags["config"])], { home, env: { HEARTH_HOME: home } });
    expect(await gateway("export")).toEqual({ code: 0, stdout: `exported to ${file}: no rows\n`, stderr: "" });
    expect(await gateway("import")).toEqual({ code: 0, stdout: `imported from ${file}: no rows\n`, stderr: "" });
  }, 60_000);

  test("does not delay an export after a node was killed", async () => {
    const [folder, config] = [tempFolder(), onServer("killed")];
    await migrateGateway(sourcesOf(folder, config));
    const now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    const columns = "(name, version, digest, digest_at, started_at, seen_at)";
    await server.run(`INSERT INTO killed.nodes ${columns} SELECT 'killed', '1', 'd', ${now}, ${now}, ${now}`);
    expect(await exportGateway(sourcesOf(folder, config), join(folder, "export"))).toEqual({});
  }, 60_000);

  test("refuses a run whose delivery the file lacks, and stays empty", async () => {
    const { folder } = await usedGateway();
    const path = join(folder, "all.ndjson");
    const counts = await exportGateway(sourcesOf(folder), path);
    const text = readFileSync(path, "utf8");
    const target = sourcesOf(tempFolder(), onServer("stray"));
    writeFileSync(path, text.replace(/"delivery_id":"[^"]*"/, '"delivery_id":"elsewhere"'));
    const refusal = importGateway(target, path);
    await expect(refusal).rejects.toThrow(
      /all\.ndjson: expected delivery 'elsewhere' of run '[^']+', but it is missing$/,
    );
    writeFileSync(path, text);
    expect(await importGateway(target, path)).toEqual(counts);
  }, 60_000);

  test("has only tables that are transferred or listed as not transferred", async () => {
    const bench = await startGateway(onServer("tables"));
    const rows = await bench.gateway.store.read(() =>
      queryAll<{ name: string }>("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'tables'"),
    );
    const known = [...TABLES.map(({ name }) => name), ...LEFT_TABLES];
    expect(rows.length).toBeGreaterThan(10);
    expect(rows.map(({ name }) => name).filter((name) => !known.includes(name))).toEqual([]);
  }, 60_000);
});
