/**
 * Runs the quantizers that are compiled to WebAssembly (`kernels/simd/quantize.c`): the same bytes as the quantizers of
 * this folder, in a fraction of the time.
 */
import { quants, type QuantName } from "./index.ts";

/** The ABI of the module. */
interface Exports {
  readonly memory: WebAssembly.Memory;
  readonly __heap_base: WebAssembly.Global;
  /**
   * Types are ggml's numbers. Returns −1 on success, the index of the first weight that is not finite, or −2 for an
   * unknown type.
   */
  hearth_quantize(from: number, to: number, source: number, count: number, out: number): number;
}

const SOURCES: readonly QuantName[] = ["f32", "f16", "bf16"];
const TARGETS: readonly QuantName[] = "q4_0 q4_1 q5_0 q5_1 q8_0 q2_K q3_K q4_K q5_K q6_K".split(" ") as QuantName[];
/** The kernel writes whole units of this many weights. */
const UNIT = 256;
const PAGE_BYTES = 65_536;
const ALIGNMENT = 16;
const FINITE = -1;

/** The kernel in a separate memory, which grows with the largest job. */
export class QuantizeKernel {
  readonly #exports: Exports;

  constructor(module: WebAssembly.Module) {
    this.#exports = new WebAssembly.Instance(module).exports as unknown as Exports; // the module's ABI
  }

  has(from: QuantName, to: QuantName): boolean {
    return SOURCES.includes(from) && TARGETS.includes(to);
  }

  /**
   * Quantizes whole blocks of `to`.
   * @param fill writes the source's bytes to the view that it gets
   * @returns a copy of the blocks, or the index of the first weight that is not finite
   */
  quantize(
    { from, to, byteLength }: { readonly from: QuantName; readonly to: QuantName; readonly byteLength: number },
    fill: (bytes: Uint8Array) => void,
  ): Uint8Array<ArrayBuffer> | number {
    const { memory, hearth_quantize: run } = this.#exports;
    const { blockLen, blockBytes, ggmlType } = quants[to];
    const count = byteLength / quants[from].blockBytes;
    const source = alignUp(this.#exports.__heap_base.value as number); // an i32
    const out = alignUp(source + byteLength);
    const room = (Math.ceil(count / UNIT) * UNIT * blockBytes) / blockLen;
    const missing = out + room - memory.buffer.byteLength;
    if (missing > 0) memory.grow(Math.ceil(missing / PAGE_BYTES));
    fill(new Uint8Array(memory.buffer, source, byteLength));
    const result = run(quants[from].ggmlType, ggmlType, source, count, out);
    if (result >= 0) return result;
    if (result !== FINITE) throw new Error(`invariant: no kernel from ${from} to ${to}`);
    return new Uint8Array(memory.buffer).slice(out, out + (count / blockLen) * blockBytes);
  }
}

const alignUp = (value: number): number => Math.ceil(value / ALIGNMENT) * ALIGNMENT;
