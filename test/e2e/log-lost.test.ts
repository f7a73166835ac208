/** A server whose log cannot be written: on a full disk, closed, without a reader, or with one that does not read. */
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { HEARTH } from "../program.ts";
import { freePort } from "../free-port.ts";
import { eventually, isolatedEnv } from "./hearth.ts";
import { installSeeded, modelsFolder } from "./seeded-model.ts";

setDefaultTimeout(120_000);

const REQUESTS = 1000;
const AT_ONCE = 20;
/** The lines with this path exceed any buffer. */
const LONG_PATH = `/nowhere/${"x".repeat(3000)}`;

let home: string;
let fifo: string;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "hearth-log-"));
  fifo = join(home, "log");
  Bun.spawnSync(["mkfifo", fifo]);
  await installSeeded(modelsFolder(home), {});
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

let started: Bun.Subprocess[] = [];
afterEach(() => {
  for (const child of started) child.kill("SIGKILL");
  started = [];
});

interface Started {
  readonly url: string;
  /** Closes its output pipes, if the output is not redirected. */
  closePipes(): Promise<unknown>;
  stop(): Promise<void>;
}

/** Starts a server by a shell, which redirects its output. */
async function start(redirections = ""): Promise<Started> {
  const port = freePort();
  const child = Bun.spawn(["sh", "-c", `exec "$@" ${redirections}`, "sh", ...HEARTH, "serve"], {
    env: isolatedEnv(home, { HEARTH_HOST: `127.0.0.1:${port}`, LOG: fifo }),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  started.push(child);
  const url = `http://127.0.0.1:${port}`;
  const isUp = async (): Promise<boolean> => (await fetch(`${url}/readyz`).catch(() => undefined))?.ok ?? false;
  expect(await eventually(isUp, 60_000)).toBe(true);
  return {
    url,
    closePipes: () => Promise.all([child.stdout.cancel(), child.stderr.cancel()]),
    async stop() {
      child.kill("SIGTERM");
      expect(await child.exited).toBe(0);
    },
  };
}

/** Sends requests that each log a long line. All are answered, and so is one that starts a runner. */
async function ask(url: string): Promise<void> {
  const statuses: number[] = [];
  const post = async (path: string, body: object): Promise<void> => {
    const reply = await fetch(`${url}${path}`, { method: "POST", body: JSON.stringify(body) });
    await reply.text();
    statuses.push(reply.status);
  };
  let left = REQUESTS;
  const askInTurn = async (): Promise<void> => {
    while (left-- > 0) await post(LONG_PATH, {});
  };
  await Promise.all(Array.from({ length: AT_ONCE }, askInTurn));
  expect(new Set(statuses)).toEqual(new Set([404]));
  expect(statuses).toHaveLength(REQUESTS);
  await post("/api/generate", { model: "hearth", prompt: "Hi", stream: false, options: { num_predict: 2 } });
  expect(statuses.at(-1)).toBe(200);
}

test.each([
  ["is on a full disk", ">/dev/full 2>&1"],
  ["is closed", ">&- 2>&-"],
])("a server whose log %s answers", async (_, redirections) => {
  const server = await start(redirections);
  await ask(server.url);
  await server.stop();
});

test("a server answers after the reader of its log closed the pipe", async () => {
  const server = await start();
  await server.closePipes();
  await ask(server.url);
  await server.stop();
});

test("a server whose log is not read answers in bounded memory, and later logs how many lines were lost", async () => {
  const reader = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
  const server = await start('>"$LOG" 2>&1');
  await ask(server.url);
  let text = "";
  const lost = (): boolean => /"msg":"lines of this log were lost","count":\d+.*\n/.test((text += readAll(reader)));
  expect(await eventually(lost)).toBe(true);
  const whole = text.split("\n").slice(0, -1); // the text may end within a line
  const lines = whole.filter((line) => line.startsWith("{"));
  const requests = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === "request");
  const [count] = lines.map((line) => JSON.parse(line).count).filter((each) => each !== undefined);
  expect(requests.filter(({ path }) => path === LONG_PATH).length + count).toBeGreaterThanOrEqual(REQUESTS);
  expect(text.length).toBeLessThan(2 * 2 ** 20);
  await server.stop();
  closeSync(reader);
});

/** The content of a pipe. */
function readAll(fd: number): string {
  const buffer = Buffer.alloc(65536);
  let text = "";
  for (;;) {
    let read = 0;
    try {
      read = readSync(fd, buffer);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
    }
    if (read === 0) return text;
    text += buffer.toString("utf8", 0, read);
  }
}
