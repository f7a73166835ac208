/** Builds a small program with random weights, whose logits are the results of all of its steps. */
import type { LoadOptions, MemoryProgram, Program, Rows } from "../../program/backend.ts";
import type { Buf, RopeScaling, Step, Weight } from "../../program/step.ts";
import { quants, type QuantName } from "../../formats/quant/index.ts";
import { makeRng } from "../../text/rng.ts";
import { makeRandomWords, randomWeights, type RandomWords } from "./blocks.ts";

/** A program and the runs of one session, in order. */
export interface Sheet {
  readonly name: string;
  readonly program: Program;
  readonly options: Pick<LoadOptions, "ctxLen" | "slots">;
  readonly batches: readonly (readonly Rows[])[];
}

export const VOCAB = 16;
export const CTX_LEN = 48;
export const SLOTS = 8;

export const rope: RopeScaling = {
  base: 10_000,
  rotaryDim: 16,
  style: "norm",
  freqScale: 1,
  extFactor: 0,
  attnFactor: 1,
  betaFast: 32,
  betaSlow: 1,
  ctxLenOrig: CTX_LEN,
};

interface MatrixOptions {
  readonly quant?: QuantName;
  readonly experts?: number;
  readonly size?: number;
}

export class SheetBuilder {
  readonly steps: Step[] = [];
  readonly x: Buf;
  readonly #name: string;
  readonly #rng;
  readonly #pool: RandomWords;
  readonly #tensors = new Map<string, Uint8Array>();
  #result: Buf | undefined;
  #names = 0;

  constructor(name: string, dim: number) {
    this.#name = name;
    this.#rng = makeRng(dim);
    this.#pool = makeRandomWords(this.#rng);
    this.x = this.buf(dim);
    this.steps.push({ op: "embed", out: this.x, table: this.matrix(dim, VOCAB, { size: 1 }), scale: 1 });
  }

  buf(dim: number): Buf {
    return { name: `b${this.#names++}`, dim };
  }

  /** `outDim` rows of `inDim` weights, or a stack of such matrices. */
  matrix(
    inDim: number,
    outDim: number,
    { quant = "f32", experts = 1, size = 1 / Math.sqrt(inDim) }: MatrixOptions = {},
  ): Weight {
    const name = `w${this.#tensors.size}`;
    this.#tensors.set(name, randomWeights(quant, inDim * outDim * experts, { size, rng: this.#rng, pool: this.#pool }));
    return { name, quant: quants[quant], inDim, outDim, rowStart: 0, tensorRows: outDim, experts };
  }

  /** Values around `mean`. */
  vector(length: number, mean = 0, size = 0.3): Weight {
    const w = this.matrix(length, 1, { size });
    const bytes = this.#tensors.get(w.name)!;
    const values = new Float32Array(bytes.buffer, bytes.byteOffset, length);
    for (let i = 0; i < length; i++) values[i]! += mean;
    return w;
  }

  linear(outDim: number, { x = this.x, quant = "f32", b }: { x?: Buf; quant?: QuantName; b?: Weight } = {}): Buf {
    const out = this.buf(outDim);
    this.steps.push({ op: "linear", out, x, w: this.matrix(x.dim, outDim, { quant }), ...(b && { b }) });
    return out;
  }

  /** Adds the current content of a buffer to the logits. */
  collect(part: Buf): void {
    const out = this.buf((this.#result?.dim ?? 0) + part.dim);
    if (this.#result) this.steps.push({ op: "join", out, a: this.#result, b: part, heads: 1 });
    else this.steps.push({ op: "add", out, a: part, b: part, scale: 1 });
    this.#result = out;
  }

  finish(batches: Sheet["batches"], memory?: MemoryProgram): Sheet {
    const result = this.#result!; // every sheet collects something
    const logits = { name: "logits", dim: result.dim };
    const nLayers = this.steps.filter(({ op }) => op === "attention" || op === "latentAttention").length;
    const read = (tensor: string): Uint8Array => this.#tensors.get(tensor)!;
    const name = this.#name;
    return {
      name,
      program: {
        shape: { arch: "selftest", dim: this.x.dim, nLayers, vocabSize: result.dim },
        steps: [...this.steps, { op: "takeRows", out: logits, x: result }],
        logits,
        states: logits,
        weights: { path: `selftest/${name}`, read },
        ...(memory && { memory }),
      },
      options: { ctxLen: CTX_LEN, slots: SLOTS },
      batches,
    };
  }
}
