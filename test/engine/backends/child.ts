/**
 * A backend in a separate process, as a `Backend`. ONNX Runtime needs ORT_DISABLE_TELEMETRY=1 in the real
 * environment, a GPU driver is found through the environment, and `bun test` was started without either. Tests import
 * `startOnnx` and `startWebGpu`; run as a program, this file is the child.
 */
import type {
  Backend,
  HeldWeights,
  LoadOptions,
  TopKResult,
  TopKRows,
  TopKRuns,
  Rows,
  Session,
  SlicedRun,
  StateRows,
} from "../../../src/engine/program/backend.ts";
import type { Checkpoint, Checkpoints, KvBlocks } from "../../../src/engine/program/kept-slots.ts";
import { loadSession, type LoadSettings } from "../../../src/engine/backends/onnx/load.ts";
import { dawn } from "../../../src/engine/backends/host/dawn.ts";
import { openDevice } from "../../../src/engine/backends/webgpu/device.ts";
import { webGpuBackend } from "../../../src/engine/backends/host/webgpu.ts";
import { AppError, assert, messageOf, type Code } from "../../../src/base/errors.ts";
import { unwrap, wrap, type Parcel } from "./parcel.ts";
import { gpuRuntime, TOGGLES } from "./webgpu/swiftshader.ts";
import { tallyOf, type Tally } from "./webgpu/tally.ts";

export interface BackendChild {
  readonly backend: Backend;
  readonly pid: number;
  /** Its requests to the GPU so far. */
  tally(): Promise<Tally>;
  /** Kills the child and waits for its end. */
  stop(): Promise<void>;
}

interface ChildOptions extends LoadSettings {
  /** False starts the child without the variable. */
  readonly telemetryOff?: boolean;
  /** The child kills itself at this progress of a load, 0…1. */
  readonly dieAt?: number;
}

type Load = {
  parcel: Parcel;
  options: Omit<LoadOptions, "onProgress" | "beside">;
  /** The number of the session whose weights it may use. */
  beside: number | undefined;
  settings: LoadSettings;
  dieAt: number;
};
/** Requests to the child; each has a session's number, from `load`. */
type Request =
  | ({ op: "load" } & Load)
  | { op: "run"; batch: readonly Rows[] }
  | { op: "states"; batch: readonly StateRows[] }
  | { op: "topK"; batch: readonly TopKRows[] }
  | { op: "runWithStates"; batch: readonly TopKRows[] }
  | { op: "shift"; args: Parameters<Session["shift"]> }
  | { op: "copy"; args: Parameters<Session["copy"]> }
  | { op: "save"; slot: number; length: number; into: number | undefined }
  | { op: "restore"; slot: number; id: number }
  | { op: "pack"; id: number }
  | { op: "unpack"; length: number; bytes: Uint8Array; id: number }
  | { op: "read"; args: Parameters<KvBlocks["read"]> }
  | { op: "write"; args: Parameters<KvBlocks["write"]> }
  | { op: "slice"; rows: Rows }
  | { op: "next"; budgetNs: number }
  | { op: "abandon" }
  | { op: "tally" }
  | { op: "close" };
/** A checkpoint of the child's session. */
type RemoteCheckpoint = Checkpoint & { readonly id: number };
/** The weights of a session of the child. */
type RemoteWeights = HeldWeights & { readonly session: number };
/** The answer to a load. */
type Facts = Pick<Session, "backend" | "device" | "bytes" | "verifies"> & {
  /** The path of weights that other sessions may use. */
  heldPath?: string;
  /** A run can return logits and states. */
  returnsStates?: boolean;
  limits?: TopKRuns["limits"];
  /** Slots continue only from checkpoints. */
  checks: boolean;
  /** Bytes of a block of 1, 2, … positions. */
  blocks?: Pick<KvBlocks, "length" | "layout"> & { readonly bytes: readonly number[] };
  /** Maximum rows of a run in parts. */
  sliceRowsMax?: number;
};
/** The answer to `next`. */
type Part = { logits: Float32Array | undefined; longestNs: number };
type Question = { id: number; session: number; request: Request };
type Answer = { id: number; value?: unknown; error?: { message: string; code?: Code } };

/**
 * Starts a child of the ONNX backend. Its sessions send `shift`, `copy` and `close` in order with their runs; failures
 * show in the next run.
 */
export function startOnnx(options: ChildOptions = {}): BackendChild {
  const { telemetryOff = true, dieAt = Infinity, ...settings } = options;
  return startChild("onnx", telemetryOff ? { ORT_DISABLE_TELEMETRY: "1" } : {}, { settings, dieAt });
}

/** Starts a child with the environment of a GPU driver. @param without features that it leaves alone */
export function startWebGpu(env: Record<string, string>, without: readonly string[] = []): BackendChild {
  return startChild("webgpu", env, { settings: {}, dieAt: Infinity }, without);
}

function startChild(
  name: string,
  more: Record<string, string>,
  { settings, dieAt }: { settings: LoadSettings; dieAt: number },
  args: readonly string[] = [],
): BackendChild {
  const { ORT_DISABLE_TELEMETRY: _, ...env } = process.env;
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  let count = 0;
  const runtime = name === "webgpu" ? gpuRuntime() : process.execPath;
  const child = Bun.spawn([runtime, import.meta.path, name, ...args], {
    env: { ...env, ...more },
    stdio: ["ignore", "inherit", "inherit"],
    serialization: "advanced",
    ipc: ({ id, value, error }: Answer) => {
      const { resolve, reject } = waiting.get(id)!;
      waiting.delete(id);
      if (!error) resolve(value);
      else reject(error.code ? new AppError(error.code, error.message) : new Error(error.message));
    },
    onExit: () => {
      for (const { reject } of waiting.values()) reject(new Error("the child is gone"));
      waiting.clear();
    },
  });
  const ask = (session: number, request: Request): Promise<unknown> => {
    const answer = Promise.withResolvers<unknown>();
    waiting.set(++count, answer);
    child.send({ id: count, session, request } satisfies Question);
    return answer.promise;
  };
  return {
    pid: child.pid,
    backend: {
      name,
      async load(program, { onProgress: _onProgress, beside: held, ...options }) {
        const session = ++count;
        const beside = (held as RemoteWeights | undefined)?.session; // `remoteSession` made it
        const facts = await ask(session, { op: "load", parcel: wrap(program), options, beside, settings, dieAt });
        return remoteSession((request) => ask(session, request), session, facts as Facts);
      },
    },
    tally: () => ask(0, { op: "tally" }) as Promise<Tally>,
    async stop() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

function remoteSession(
  ask: (request: Request) => Promise<unknown>,
  number: number,
  { limits, checks, blocks, sliceRowsMax, heldPath, returnsStates, ...facts }: Facts,
): Session {
  let sent: Promise<unknown> = Promise.resolve();
  const send = (request: Request): void => {
    const done = ask(request);
    done.catch(() => {}); // the next caller gets it
    sent = Promise.all([sent, done]);
    sent.catch(() => {});
  };
  const askAfter = async <T = Float32Array>(request: Request): Promise<T> => {
    const before = sent;
    sent = Promise.resolve();
    const [, values] = await Promise.all([before, ask(request)]);
    return values as T; // the child's session returned it
  };
  /** A view sends its whole buffer. */
  const own = <T extends StateRows | Rows>(each: T): T => {
    const input = each.input && { input: each.input.slice() };
    return { ...each, tokens: each.tokens.slice(), ...input };
  };
  return {
    ...facts,
    run: (batch) => askAfter({ op: "run", batch: batch.map(own) }),
    states: (batch) => askAfter({ op: "states", batch: batch.map(own) }),
    shift: (...args) => send({ op: "shift", args }),
    copy: (...args) => send({ op: "copy", args }),
    close: () => send({ op: "close" }),
    ...(limits && { topK: { limits, run: (batch) => askAfter({ op: "topK", batch: batch.map(own) }) } }),
    ...(returnsStates && { runWithStates: (batch) => askAfter({ op: "runWithStates", batch: batch.map(own) }) }),
    ...(heldPath !== undefined && { held: { path: heldPath, has: () => true, session: number } as RemoteWeights }),
    ...(sliceRowsMax !== undefined && { slices: remoteSlices(sliceRowsMax, { askAfter, send }) }),
    ...(checks && { checkpoints: remoteCheckpoints({ askAfter, send }) }),
    ...(blocks && { blocks: remoteBlocks(blocks, checks, { askAfter, send }) }),
  };
}

interface Asking {
  readonly askAfter: <T>(request: Request) => Promise<T>;
  readonly send: (request: Request) => void;
}

const idOf = (checkpoint: Checkpoint | undefined): number | undefined =>
  (checkpoint as RemoteCheckpoint | undefined)?.id; // the child made it

const remoteCheckpoints = ({ askAfter, send }: Asking): Checkpoints => ({
  save: (slot, length, into) => askAfter<RemoteCheckpoint>({ op: "save", slot, length, into: idOf(into) }),
  restore: (slot, checkpoint) => send({ op: "restore", slot, id: idOf(checkpoint)! }),
});

const remoteBlocks = (
  { bytes, ...facts }: NonNullable<Facts["blocks"]>,
  checks: boolean,
  { askAfter, send }: Asking,
): KvBlocks => ({
  ...facts,
  bytesOf: (count) => bytes[count - 1]!,
  read: (...args) => askAfter<Uint8Array>({ op: "read", args }),
  write: (...args) => send({ op: "write", args }),
  checkpoints: checks
    ? {
        pack: (checkpoint) => askAfter<Uint8Array>({ op: "pack", id: idOf(checkpoint)! }),
        unpack(length, values) {
          const id = Math.random();
          send({ op: "unpack", length, bytes: values, id });
          return { length, bytes: values.length, id } as RemoteCheckpoint;
        },
      }
    : undefined,
});

const remoteSlices = (rowsMax: number, { askAfter, send }: Asking): NonNullable<Session["slices"]> => ({
  rowsMax,
  start(rows) {
    send({ op: "slice", rows: { ...rows, tokens: rows.tokens.slice() } });
    let longest = 0;
    return {
      get longestNs() {
        return longest;
      },
      async next(budgetNs) {
        const { logits, longestNs } = await askAfter<Part>({ op: "next", budgetNs });
        longest = longestNs;
        return logits;
      },
      abandon: () => send({ op: "abandon" }),
    };
  },
});

/** The child's side: answers questions one after another. */
function serve(): void {
  const state: State = { sessions: new Map(), checkpoints: new Map(), tally: undefined, sliced: undefined };
  let last: Promise<void> = Promise.resolve();
  process.on("message", (question: Question) => {
    last = last.then(async () => {
      const { id } = question;
      try {
        process.send!({ id, value: await answer(state, question) } satisfies Answer);
      } catch (error) {
        const code = error instanceof AppError ? { code: error.code } : {};
        process.send!({ id, error: { message: messageOf(error), ...code } } satisfies Answer);
      }
    });
  });
  process.on("disconnect", () => process.exit());
}

interface State {
  readonly sessions: Map<number, Session>;
  readonly checkpoints: Map<number, Checkpoint>;
  tally: Tally | undefined;
  sliced: SlicedRun | undefined;
}

/** The counters of the device, from its opening on. */
async function tallyIn(state: State): Promise<Tally> {
  const without = process.argv.slice(3);
  return (state.tally ??= tallyOf((await openDevice(dawn(TOGGLES), { without })).gpu));
}

async function answer(state: State, { session: number, request }: Question): Promise<unknown> {
  const { sessions } = state;
  if (request.op === "tally") return tallyIn(state);
  if (request.op === "load") {
    const { parcel, options, beside = NaN, settings, dieAt } = request;
    const onProgress = (fraction: number): void => void (fraction >= dieAt && process.kill(process.pid, "SIGKILL"));
    const loading = { ...options, beside: sessions.get(beside)?.held, onProgress };
    const name = process.argv[2];
    if (name === "webgpu") await tallyIn(state);
    const session =
      name === "webgpu"
        ? await webGpuBackend.load(unwrap(parcel), loading)
        : await loadSession(unwrap(parcel), loading, settings);
    sessions.set(number, session);
    return factsOf(session);
  }
  const session = sessions.get(number);
  assert(session, `session ${number} is open`);
  switch (request.op) {
    case "run":
      return (await session.run(request.batch)).slice();
    case "states":
      return (await session.states(request.batch)).slice();
    case "topK":
      return ownLogits(await session.topK!.run(request.batch)); // its limits were sent
    case "runWithStates":
      return ownLogits(await session.runWithStates!(request.batch)); // its presence was sent
    case "shift":
      return session.shift(...request.args);
    case "copy":
      return session.copy(...request.args);
    case "save": {
      const { slot, length, into } = request;
      const checkpoint = await session.checkpoints!.save(slot, length, state.checkpoints.get(into ?? NaN));
      const id = Math.random();
      state.checkpoints.set(id, checkpoint);
      return { id, length, bytes: checkpoint.bytes };
    }
    case "restore":
      return session.checkpoints!.restore(request.slot, state.checkpoints.get(request.id)!);
    case "pack":
      return session.blocks!.checkpoints!.pack(state.checkpoints.get(request.id)!);
    case "unpack": {
      const { id, length, bytes } = request;
      return void state.checkpoints.set(id, session.blocks!.checkpoints!.unpack(length, bytes)!);
    }
    case "read":
      return session.blocks!.read(...request.args);
    case "write":
      return session.blocks!.write(...request.args);
    case "slice":
      return void (state.sliced = session.slices!.start(request.rows)); // its maximum was sent
    case "next":
      return nextPart(state.sliced!, request.budgetNs);
    case "abandon":
      return state.sliced!.abandon?.();
    case "close":
      sessions.delete(number);
      return session.close();
    default:
      return request satisfies never;
  }
}

function factsOf(session: Session): Facts {
  const { backend, device, bytes, topK, slices, held, checkpoints, blocks, verifies = false } = session;
  const facts: Facts = { backend, device, bytes, verifies, checks: checkpoints !== undefined };
  if (topK) facts.limits = topK.limits;
  if (slices) facts.sliceRowsMax = slices.rowsMax;
  if (session.runWithStates) facts.returnsStates = true;
  if (held) facts.heldPath = held.path;
  if (!blocks) return facts;
  const { length, layout } = blocks;
  return { ...facts, blocks: { length, layout, bytes: Array.from({ length }, (_, i) => blocks.bytesOf(i + 1)) } };
}

/** A view sends its whole buffer. */
const ownLogits = <T extends TopKResult>(result: T): T => ({ ...result, logits: result.logits.slice() });

async function nextPart(run: SlicedRun, budgetNs: number): Promise<Part> {
  const logits = (await run.next(budgetNs))?.slice();
  return { logits, longestNs: run.longestNs };
}

if (import.meta.main) serve();
