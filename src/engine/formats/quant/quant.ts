/**
 * The interface of a block type: a fixed number of weights packed into a fixed number of bytes. One file per type;
 * `index.ts` is the registry. Names and ids are ggml's (`ggml_type` and `type_name` in ggml.h / ggml.c).
 */
export interface Quant {
  /** ggml's type name, as in `q4_K`. */
  readonly name: string;
  /** The `ggml_type` id stored in GGUF tensor infos. */
  readonly ggmlType: number;
  /** Weights per block. */
  readonly blockLen: number;
  readonly blockBytes: number;
  /** The reason why weights cannot have the type; absent if they can. The block size of most such types is unknown. */
  readonly unreadable?: string;
  /** (points, 4 or 8) the levels of each point, if blocks reference points of a grid. */
  readonly grid?: Int8Array;
  /**
   * Unpacks whole blocks, bit-exactly like ggml's float32 formula.
   * @param src (blocks · blockBytes) packed bytes, any alignment
   * @param out (blocks · blockLen) weights; its length determines the number of blocks
   */
  dequantize(src: Uint8Array, out: Float32Array): void;
  /**
   * Packs whole blocks, with the bytes of ggml's reference quantizer. Read-only types have none.
   * @param src (blocks · blockLen) finite weights; its length determines the number of blocks
   * @param out (blocks · blockBytes) at least, any alignment
   */
  quantize?(src: Float32Array, out: Uint8Array): void;
}
