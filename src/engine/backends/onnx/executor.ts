/**
 * Runs the graph: ONNX Runtime through its C API (`native.ts`), or through the package's own binding (`fallback.ts`).
 */

/** One graph input. `data` may be longer than `shape` says. */
export interface Feed {
  readonly name: string;
  readonly type: "float" | "int32" | "int64";
  readonly shape: readonly number[];
  readonly data: Float32Array | Int32Array | BigInt64Array;
}

/** Keys and values of one layer, each (slots, nKvHeads, ctxLen, headDim). Unwritten pages take no memory. */
export interface LayerCache {
  readonly layer: number;
  readonly nKvHeads: number;
  readonly headDim: number;
  readonly keys: Float32Array;
  readonly values: Float32Array;
}

export interface KvCache {
  readonly slots: number;
  readonly ctxLen: number;
  readonly layers: readonly LayerCache[];
}

/** One run of the graph over slots `lowSlot` … `lowSlot + batch − 1`. */
export interface Pass {
  readonly lowSlot: number;
  readonly batch: number;
  readonly feeds: readonly Feed[];
  /** True if the run takes so much memory that it should be freed at once. */
  readonly large: boolean;
  /** The wanted result, and its destination. */
  readonly result: {
    readonly name: "logits" | "states";
    readonly shape: readonly [rows: number, dim: number];
    readonly data: Float32Array;
  };
}

export interface Executor {
  /** Runs once: writes the result, and appends to the caches in place. */
  run(pass: Pass): Promise<void>;
  close(): void;
}
