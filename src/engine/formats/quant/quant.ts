/**
 * What a block type is: a fixed number of weights packed into a fixed number of bytes. One file per type; `index.ts` is
 * the registry. Names and ids are ggml's (`ggml_type` and `type_name` in ggml.h / ggml.c).
 */
export interface Quant {
  /** ggml's type name, as in `q4_K`. */
  readonly name: string;
  /** The `ggml_type` id stored in GGUF tensor infos. */
  readonly ggmlType: number;
  /** Weights per block. */
  readonly blockLen: number;
  /** Bytes per block. */
  readonly blockBytes: number;
  /** Why nothing here can read the type; absent where it can. Blocks of such a type have no known size. */
  readonly unreadable?: string;
  /** (points, 4 or 8) the levels of each point, where blocks name points of a grid by number. */
  readonly grid?: Int8Array;
  /**
   * Unpacks whole blocks, bit-exactly as ggml's float32 formula does.
   * @param src (blocks · blockBytes) packed bytes, any alignment
   * @param out (blocks · blockLen) weights; its length decides how many blocks are read
   */
  dequantize(src: Uint8Array, out: Float32Array): void;
  /**
   * Packs whole blocks, with the bytes that ggml's reference quantizer gives. Types that models are only read in have
   * none.
   * @param src (blocks · blockLen) finite weights; its length decides how many blocks are written
   * @param out (blocks · blockBytes) at least, any alignment
   */
  quantize?(src: Float32Array, out: Uint8Array): void;
}
