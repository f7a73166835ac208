/** A runner's process with the embedded model, with the server's own messages. */
import { resolve } from "node:path";
import type { SequenceEvent } from "../../../src/engine/batching/sequence.ts";
import type { FromRunner, GenerateMessage, LoadMessage, ToRunner } from "../../../src/engine/runner/messages.ts";
import { fromWire, toWire } from "../../../src/base/wire.ts";
import { SAMPLING_DEFAULTS, type SamplingOptions } from "../../../src/engine/text/sampling/options.ts";
import { eventually } from "../../e2e/hearth.ts";
import { RUNNER } from "../../program.ts";
import { BUN_ENV } from "../../bun-env.ts";

const WAIT_MS = 60_000;
export const RUNNER_ENV = { PATH: process.env["PATH"] ?? "", ORT_DISABLE_TELEMETRY: "1", ...BUN_ENV };
export const LOAD: LoadMessage = {
  kind: "load",
  path: resolve(import.meta.dir, "../../../models/hearth/hearth.gguf"),
  adapters: [],
  template: { go: undefined, prefersGo: undefined },
  backend: "auto",
  gpuLayers: 0,
  gpuMemory: undefined,
  ctxLen: 256,
  slots: 2,
  chunk: 64,
  threads: 1,
  precise: false,
  cacheDir: undefined,
};

export interface Spawned {
  readonly child: Bun.Subprocess;
  /** All its messages, in order. */
  readonly received: FromRunner[];
  send(...messages: readonly ToRunner[]): void;
  /** The first message that matches; throws if it does not arrive, or the process ends before it. */
  hear<T extends FromRunner>(what: (message: FromRunner) => message is T): Promise<T>;
  /** The events of a request so far. */
  events(id: number): SequenceEvent[];
  /** Waits for the last event of a request. */
  end(id: number): Promise<SequenceEvent>;
}

export const isOf =
  <K extends FromRunner["kind"]>(kind: K, id?: number) =>
  (message: FromRunner): message is Extract<FromRunner, { kind: K }> =>
    message.kind === kind && (id === undefined || ("id" in message && message.id === id));

export function spawnRunner(): Spawned {
  const received: FromRunner[] = [];
  const child = Bun.spawn([...RUNNER], {
    env: RUNNER_ENV,
    stdio: ["ignore", "ignore", "ignore"],
    serialization: "json",
    ipc: (message) => void received.push(fromWire(message as FromRunner)), // the child is this same program
  });
  const events = (id: number): SequenceEvent[] =>
    received.flatMap((message) => (message.kind === "events" ? message.events.filter((event) => event.id === id) : []));
  const wait = async (check: () => boolean, what: string): Promise<void> => {
    const found = await eventually(() => check() || child.exitCode !== null, WAIT_MS);
    if (!found || !check())
      throw new Error(
        `no ${what}; exit code ${child.exitCode}; received ${received.map(({ kind }) => kind).join(" ")}`,
      );
  };
  return {
    child,
    received,
    send: (...messages) => messages.forEach((message) => child.send(toWire(message))),
    async hear<T extends FromRunner>(what: (message: FromRunner) => message is T): Promise<T> {
      await wait(() => received.some(what), "such message");
      return received.find(what)!;
    },
    events,
    async end(id) {
      const isLast = ({ kind }: SequenceEvent): boolean => kind === "done" || kind === "error";
      await wait(() => events(id).some(isLast), `end of ${id}`);
      return events(id).find(isLast)!;
    },
  };
}

/** Requests a greedy answer to a text. */
export function generate(id: number, text: string, options: Partial<SamplingOptions> = {}): GenerateMessage {
  const settings = { ...SAMPLING_DEFAULTS, temperature: 0, num_predict: 8, ...options };
  return { kind: "generate", id, asked: { kind: "text", text, context: [] }, options: settings, shift: true };
}

/** An answer that continues until it is stopped. */
export const endless = (id: number): GenerateMessage => ({
  ...generate(id, "Count.", { num_predict: 100_000 }),
  format: { type: "array", items: { type: "integer" }, minItems: 90_000 },
});

export const textOf = (events: readonly SequenceEvent[]): string =>
  events.map((event) => (event.kind === "text" ? event.text : "")).join("");
