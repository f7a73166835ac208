/**
 * Run by growing-kv.test.ts with a GPU driver in its environment: compares a KV cache that grows with one of full size.
 */
import { dawn } from "../../../../src/engine/backends/host/dawn.ts";
import { TOGGLES } from "./swiftshader.ts";
import { webGpuBackend } from "../../../../src/engine/backends/host/webgpu.ts";
import { openDevice } from "../../../../src/engine/backends/webgpu/device.ts";
import type { Rows, Session } from "../../../../src/engine/program/backend.ts";
import { codeOf } from "../../../../src/base/errors.ts";
import { attention, makeCase, plainRope } from "../../../conformance/draft.ts";

export interface Growing {
  /** Bytes of the keys and values of a position. */
  readonly tokenBytes: number;
  /** Bytes of the KV cache on the device, full, then after each operation of the growing session. */
  readonly full: number;
  readonly bytes: readonly number[];
  /** True for each operation with the same results in both sessions. */
  readonly same: readonly boolean[];
  /** The error of a growth without memory. */
  readonly refused: { readonly code: string; readonly message: string };
  /** The retry, after memory was freed, gives the same results as the full session. */
  readonly retried: boolean;
  /** Errors of runs whose model is closed meanwhile. */
  readonly closed: readonly string[];
  /** After those, another model on the device gives what it gave before. */
  readonly unharmed: boolean;
}

const CTX_LEN = 6000;
const { gpu } = await openDevice(dawn(TOGGLES));
const caches = new Map<GPUBuffer, number>();
let isOutOfMemory = false;
const create = gpu.createBuffer.bind(gpu);
gpu.createBuffer = (descriptor) => {
  const isCache = /^(keys|values) of/.test(descriptor.label ?? "");
  const buffer = create({ ...descriptor, ...(isCache && isOutOfMemory && { size: 2 ** 45 }) });
  const destroy = buffer.destroy.bind(buffer);
  if (isCache) caches.set(buffer, descriptor.size);
  return Object.assign(buffer, { destroy: () => [destroy(), caches.delete(buffer)][0] });
};
const taken = (): number => caches.values().reduce((sum, size) => sum + size, 0);

const { program } = makeCase("a cache that grows", { dim: 32 }, (draft) =>
  attention(draft, { nHeads: 2, nKvHeads: 2, headDim: 256, rope: plainRope }),
);
const load = (): Promise<Session> =>
  webGpuBackend.load(program, { ctxLen: CTX_LEN, slots: 3, precise: true, threads: 1, cacheDir: undefined });
const rows = (slot: number, start: number, count: number): Rows[] => {
  const tokens = Int32Array.from({ length: count }, (_, i) => (slot + 7 * (start + i)) % 37);
  return [{ slot, start, tokens, logits: "all" }];
};
const run = async (session: Session, ...where: [number, number, number]): Promise<Float32Array> =>
  (await session.run(rows(...where))).slice();

const OPERATIONS: readonly ((session: Session) => Promise<ArrayLike<number>>)[] = [
  (session) => run(session, 0, 0, 9),
  (session) => run(session, 0, 9, 1), // encodes another step of one row
  (session) => run(session, 1, 0, 1), // other buffers make that step invalid
  (session) => run(session, 1, 0, 40),
  (session) => run(session, 1, 1500, 40),
  async (session) => {
    await session.copy({ from: 1, to: 2, length: 1540 });
    return run(session, 2, 1540, 2);
  },
  async (session) => {
    session.shift(1, { keep: 3, discard: 6, length: 1540 });
    return run(session, 1, 1534, 2);
  },
  async (session) => {
    const bytes = await session.blocks!.read(2, 1536, 6);
    await session.blocks!.write(0, { first: 1536, count: 6, bytes });
    return [...bytes, ...(await run(session, 0, 1542, 1))];
  },
  (session) => run(session, 0, 9, 3),
];

const growing = await load();
const bytes = [taken()];
const results: ArrayLike<number>[] = [];
for (const operation of OPERATIONS) {
  results.push(await operation(growing));
  bytes.push(taken());
}
isOutOfMemory = true;
const refused = await run(growing, 2, 3000, 1).catch((error: Error) => error);
isOutOfMemory = false;
const retried = await run(growing, 2, 3000, 1);
growing.close();

const whole = await load();
await run(whole, 2, CTX_LEN - 1, 1);
const full = taken();
const same: boolean[] = [];
for (const [i, operation] of OPERATIONS.entries()) same.push(Bun.deepEquals(results[i], await operation(whole)));
const last = await run(whole, 2, 3000, 1);

/** A run that computes, one without results, one that waits for more room, and one between two of its parts. */
const INTERRUPTED: readonly ((session: Session) => Promise<unknown>)[] = [
  (session) => run(session, 0, 0, 9),
  (session) => session.run(rows(0, 0, 9).map((each) => ({ ...each, logits: "none" }))),
  (session) => run(session, 0, 1500, 1),
  async (session) => {
    const parts = session.slices!.start({ ...rows(0, 0, 100)[0]!, logits: "last" });
    while (!(await parts.next(0)));
  },
];
const closed: string[] = [];
for (const operation of INTERRUPTED) {
  const session = await load();
  const failed = operation(session).then(
    () => "done",
    (error: Error) => `${codeOf(error)}: ${error.message}`,
  );
  session.close();
  closed.push(await failed);
}
const unharmed = Bun.deepEquals(await run(whole, 2, 3000, 1), last);
whole.close();

console.log(
  JSON.stringify({
    tokenBytes: 2 * 4 * 2 * 256,
    full,
    bytes,
    same,
    refused: { code: codeOf(refused), message: String(refused) },
    retried: Bun.deepEquals(retried, last),
    closed,
    unharmed,
  } satisfies Growing),
);
process.exit(0); // a driver's threads may remain
