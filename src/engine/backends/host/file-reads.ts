/**
 * Reads of files by Linux's asynchronous I/O: many at once from one thread. Past the file cache they cost the processor
 * nearly nothing; where a file system has no such reads they still work, one after another.
 */
import { ptr } from "bun:ffi";
import { assert } from "../../../base/index.ts";
import { openLibc } from "../../../base/system.ts";
import type { FileRead, FileReads } from "../simd/streaming/file-reads.ts";

/** Reads in flight; more wait here. A disk gains nothing from a longer queue. */
const DEPTH = 32;
/** Numbers of system calls. */
const CALLS: Readonly<Record<string, { setup: number; destroy: number; getEvents: number; submit: number }>> = {
  x64: { setup: 206, destroy: 207, getEvents: 208, submit: 209 },
  arm64: { setup: 0, destroy: 1, getEvents: 4, submit: 2 },
};
/** `struct iocb` of linux/aio_abi.h. */
const BLOCK = { bytes: 64, data: 0, opcode: 16, fd: 20, address: 24, count: 32, offset: 40 } as const;
const PREAD = 0;
/** `struct io_event`. */
const EVENT = { bytes: 32, data: 0, result: 16 } as const;
/** Interrupted calls in a row until one counts as failed. */
const TRIES = 1000;

interface Pending {
  readonly read: FileRead;
  readonly done: (error?: string) => void;
}

/** Undefined on other systems, and where the system refuses. */
export function openFileReads(): FileReads | undefined {
  const numbers = process.platform === "linux" ? CALLS[process.arch] : undefined;
  const libc =
    numbers && openLibc({ syscall: { args: ["i64", "usize", "i64", "i64", "usize", "usize"], returns: "i32" } });
  if (!libc) return undefined;
  const call: Call = (name, ...args) => libc.symbols.syscall(numbers[name], ...args, 0);
  const context = new BigUint64Array(8); // one is used
  if (call("setup", DEPTH, ptr(context), 0, 0) !== 0) {
    libc.close();
    return undefined;
  }
  return new Reads(call, Number(context[0]), () => libc.close());
}

type Call = (name: keyof (typeof CALLS)["x64"], ...args: [number, number, number, number]) => number;

class Reads implements FileReads {
  readonly #call: Call;
  readonly #context: number;
  readonly #closed: () => void;
  readonly #blocks = new DataView(new ArrayBuffer(DEPTH * BLOCK.bytes));
  readonly #blocksAt = ptr(this.#blocks);
  /** Addresses of the blocks to hand over. */
  readonly #list = new BigUint64Array(DEPTH);
  readonly #listAt = ptr(this.#list);
  readonly #events = new DataView(new ArrayBuffer(DEPTH * EVENT.bytes));
  readonly #eventsAt = ptr(this.#events);
  readonly #free = Array.from({ length: DEPTH }, (_, block) => block);
  readonly #running = new Map<number, Pending>(); // by block
  #queue: Pending[] = [];

  constructor(call: Call, context: number, closed: () => void) {
    this.#call = call;
    this.#context = context;
    this.#closed = closed;
  }

  begin(read: FileRead, done: Pending["done"]): void {
    this.#queue.push({ read, done });
  }

  flush(): void {
    const count = Math.min(this.#queue.length, this.#free.length);
    if (count === 0) return;
    const begun = this.#queue.slice(0, count).map((pending) => ({ pending, block: this.#free.pop()! }));
    for (const [i, { pending, block }] of begun.entries()) {
      this.#put(block, pending.read);
      this.#list[i] = BigInt(this.#blocksAt + block * BLOCK.bytes);
    }
    let taken = 0;
    for (let more = 1; more > 0 && taken < count; taken += Math.max(0, more)) {
      more = this.#call("submit", this.#context, count - taken, this.#listAt + taken * 8, 0);
    }
    for (const [i, { pending, block }] of begun.entries()) {
      if (i < taken) this.#running.set(block, pending);
      else this.#free.push(block);
    }
    const refused = begun.slice(taken).map(({ pending }) => pending);
    const failed = this.#running.size === 0 ? refused.shift() : undefined; // otherwise the system may take it later
    this.#queue = [...refused, ...this.#queue.slice(count)];
    failed?.done("the system refused the read");
  }

  #put(block: number, { fd, address, bytes, offset }: FileRead): void {
    const at = block * BLOCK.bytes;
    this.#blocks.setBigUint64(at + BLOCK.data, BigInt(block), true);
    this.#blocks.setUint16(at + BLOCK.opcode, PREAD, true);
    this.#blocks.setUint32(at + BLOCK.fd, fd, true);
    this.#blocks.setBigUint64(at + BLOCK.address, BigInt(address), true);
    this.#blocks.setBigUint64(at + BLOCK.count, BigInt(bytes), true);
    this.#blocks.setBigUint64(at + BLOCK.offset, BigInt(offset), true);
  }

  wait(): void {
    this.flush();
    if (this.#running.size === 0) return; // a refused read has ended
    let count = -1;
    for (let tries = 0; count < 1 && tries < TRIES; tries++) {
      count = this.#call("getEvents", this.#context, 1, DEPTH, this.#eventsAt);
    }
    assert(count > 0, "the system no longer ends reads");
    for (let i = 0; i < count; i++) {
      const block = Number(this.#events.getBigUint64(i * EVENT.bytes + EVENT.data, true));
      const result = Number(this.#events.getBigInt64(i * EVENT.bytes + EVENT.result, true));
      const { read, done } = this.#running.get(block)!; // only blocks that were handed over come back
      this.#running.delete(block);
      this.#free.push(block);
      done(result >= read.least ? undefined : failureOf(read, result));
    }
    this.flush();
  }

  close(): void {
    this.#queue = [];
    while (this.#running.size > 0) this.wait();
    this.#call("destroy", this.#context, 0, 0, 0);
    this.#closed();
  }
}

const failureOf = ({ offset, least }: FileRead, result: number): string =>
  result < 0
    ? `bytes ${offset} to ${offset + least}: error ${-result} of the system`
    : `bytes ${offset} to ${offset + least}: the file ended after ${result} bytes`;
