/**
 * A whole gateway on a socket: its configuration in a watched file, a model that answers by a script, and the part of
 * Telegram that a bot needs, on the loopback interface.
 */
import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitingEvents } from "../../../src/gateway/agent/events.ts";
import { mainSessionKey } from "../../../src/gateway/agent/session-key.ts";
import { findSession } from "../../../src/gateway/agent/sessions.ts";
import { systemClock, type Clock } from "../../../src/base/clock.ts";
import { makeLogger } from "../../../src/base/log.ts";
import { plain } from "../../../src/gateway/agent/boundary/tainted-text.ts";
import { readDocument } from "../../../src/base/config/document.ts";
import { makeGateway, type Gateway } from "../../../src/gateway/operate/gateway.ts";
import { makeSnapshot } from "../../../src/gateway/operate/snapshot.ts";
import { ConfigWatch } from "../../../src/gateway/operate/watch.ts";
import { scriptedRuntime, type Script, type ScriptedRuntime } from "../agent/scripted-runtime.ts";
import { databaseOf } from "../../stores.ts";
import { afterTest } from "../../cleanups.ts";
import { makeHarness } from "../../server/harness.ts";
import { makeFakeRuntime } from "../../server/fakes.ts";

export const TOKEN = "a-hook-token-of-32-characters-xx";

export interface Chat {
  readonly url: string;
  /** `recipient: text` of each message. */
  readonly sent: string[];
  /** The platform's answer to a request for this path; by default it accepts. */
  answer: (path: string) => Response | Promise<Response>;
}

export function startChat(): Chat {
  const chat: Omit<Chat, "url"> = { sent: [], answer: () => Response.json({ ok: true, result: { message_id: 1 } }) };
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request): Promise<Response> {
      const { pathname } = new URL(request.url);
      if (!pathname.endsWith("/sendMessage")) return new Response(null, { status: 404 });
      const { chat_id, text } = (await request.json()) as { chat_id: unknown; text: string };
      chat.sent.push(`${String(chat_id)}: ${text}`);
      return chat.answer(pathname);
    },
  });
  afterTest(() => server.stop(true));
  return Object.assign(chat, { url: `http://127.0.0.1:${server.port}` });
}

export interface GatewayBench {
  readonly gateway: Gateway;
  readonly runtime: ScriptedRuntime;
  readonly logs: Record<string, any>[];
  readonly folder: string;
  /** Rewrites the configuration file. */
  configure(config: object | string): void;
  post(path: string, body: unknown, token?: string): Promise<Response>;
  /** Texts that wait for the main session. */
  events(): Promise<string[]>;
  /** The model's messages in the last turn. */
  prompts(): string[];
  route(): Promise<unknown>;
  stop(): Promise<void>;
}

export interface GatewayBenchOptions {
  readonly script?: Script;
  readonly clock?: Clock;
  /** The folder of an earlier gateway that was stopped. */
  readonly folder?: string;
}

/** No timed heartbeats and no recipients, unless `config` says so. */
export const quiet = { defaults: { heartbeat: { every: 0, target: "none" } } };

export async function startGateway(config: object, options: GatewayBenchOptions = {}): Promise<GatewayBench> {
  const { script = () => ({ text: "done" }), clock = systemClock } = options;
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), "hearth-gateway-"));
  if (options.folder === undefined) afterTest(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "hearth.json5");
  const database = await databaseOf(folder);
  const configure = (next: object | string): void => {
    writeFileSync(`${file}.new`, typeof next === "string" ? next : JSON.stringify({ ...database, ...next }));
    renameSync(`${file}.new`, file);
  };
  configure(config);
  const logs: Record<string, any>[] = [];
  const log = makeLogger({ write: (line) => void logs.push(JSON.parse(line)), now: Date.now, debug: true });
  const read = () => {
    if (!existsSync(file)) return undefined;
    const document = readDocument(file, {});
    return { document, snapshot: makeSnapshot(document, { folder, apiKeys: [] }) };
  };
  const source = new ConfigWatch({ first: read()!, read, log });
  const runtime = scriptedRuntime(script);
  const modelNames = async () => ["hearth:latest"];
  const whole = { ...makeFakeRuntime(), ...runtime };
  const gateway = await makeGateway({ source, home: folder, runtime: whole, modelNames, clock, log, fetch });
  const harness = await makeHarness({}, { hooks: () => gateway.ingress });
  const { url } = harness.listen();
  await gateway.start();
  let isStopped = false;
  const stop = async (): Promise<void> => {
    if (isStopped) return;
    isStopped = true;
    source.close();
    await harness.close();
    await gateway.stop(0);
  };
  afterTest(stop);
  const sessionKey = mainSessionKey(gateway.snapshot().session);
  return {
    gateway,
    runtime,
    logs,
    folder,
    configure,
    post: (path, body, token = TOKEN) =>
      fetch(`${url}/hooks/${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}` },
        body: JSON.stringify(body),
      }),
    events: async () =>
      (await gateway.store.read(() => waitingEvents({ sessionKey, limit: 1000 }))).map(({ text }) => plain(text)),
    prompts: () => runtime.requests.map(({ messages }) => messages.at(-1)?.content ?? ""),
    route: async () => (await gateway.store.read(() => findSession(sessionKey)))?.route,
    stop,
  };
}
