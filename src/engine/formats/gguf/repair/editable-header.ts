/**
 * A header under repair: metadata as a writable map, and tensors that can be renamed, hidden or cut. Each tensor
 * remains a range of bytes of one tensor in the file.
 */
import { AppError } from "../../../../base/index.ts";
import { getNumber, getNumbers } from "../keys.ts";
import type { MetadataValue, ModelHeader, TensorInfo } from "../gguf.ts";

/** A tensor of the repaired file: `info` is its new description, `from` its bytes in the file's own tensor. */
export interface Part {
  readonly info: TensorInfo;
  readonly from: { readonly name: string; readonly start: number };
  /** Set if the bytes differ from the file's: computes them from `sourceBytes` bytes of the file. */
  readonly made?: { readonly sourceBytes: number; of(source: Uint8Array): Uint8Array };
}

export class EditableHeader {
  readonly path: string;
  readonly metadata: Map<string, MetadataValue>;
  readonly parts: Map<string, Part>;

  constructor({ path, metadata, tensors }: ModelHeader) {
    this.path = path;
    this.metadata = new Map(metadata);
    this.parts = new Map([...tensors].map(([name, info]) => [name, { info, from: { name, start: 0 } }]));
  }

  /** `general.architecture`; empty if it is not text. */
  get arch(): string {
    const arch = this.metadata.get("general.architecture");
    return typeof arch === "string" ? arch : "";
  }

  /** Changes the file's architecture. Keys under the old name are kept and copied to the new name. */
  set arch(arch: string) {
    const old = `${this.arch}.`;
    for (const [key, value] of Array.from(this.metadata)) {
      if (key.startsWith(old)) this.metadata.set(`${arch}.${key.slice(old.length)}`, value);
    }
    this.metadata.set("general.architecture", arch);
  }

  /** A value under the architecture's name. */
  get(key: string): MetadataValue | undefined {
    return this.metadata.get(`${this.arch}.${key}`);
  }

  has(key: string): boolean {
    return this.metadata.has(`${this.arch}.${key}`);
  }

  set(key: string, value: MetadataValue): void {
    this.metadata.set(`${this.arch}.${key}`, value);
  }

  /** Sets a key that the file does not have. */
  setDefault(key: string, value: MetadataValue): void {
    if (!this.has(key)) this.set(key, value);
  }

  delete(key: string): void {
    this.metadata.delete(`${this.arch}.${key}`);
  }

  /** Moves a value to another key, if the file has it. */
  move(from: string, to: string): void {
    const value = this.get(from);
    if (value === undefined) return;
    this.set(to, value);
    this.delete(from);
  }

  /** A number under the architecture's name. Throws `bad_file` if it has another type. */
  number(key: string, fallback?: number): number {
    const full = `${this.arch}.${key}`;
    return fallback === undefined ? getNumber(this.metadata, full) : getNumber(this.metadata, full, fallback);
  }

  /** Numbers under the architecture's name; undefined if missing, or a single number outside a list. */
  numbers(key: string): readonly number[] | undefined {
    return this.list(`${this.arch}.${key}`);
  }

  /** Numbers under a full key. A skipped list is empty, which counts as missing. */
  list(key: string): readonly number[] | undefined {
    const value = this.metadata.get(key);
    if (typeof value !== "object" || value.length === 0) return undefined;
    return Array.from(getNumbers(this.metadata, key));
  }

  /** Sets the pre-tokenizer, if the file has none or, wrongly, `default`. */
  setPre(pre: string): void {
    const stored = this.metadata.get("tokenizer.ggml.pre");
    if (stored === undefined || stored === "default") this.metadata.set("tokenizer.ggml.pre", pre);
  }

  hasTensor(matches: string | RegExp): boolean {
    if (typeof matches === "string") return this.parts.has(matches);
    return [...this.parts.keys()].some((name) => matches.test(name));
  }

  /** Shape of a tensor, fastest-varying dimension first. Throws `bad_file` if it does not exist. */
  shape(name: string): readonly number[] {
    return this.#part(name).info.shape;
  }

  /** Hides tensors of parts that the text model does not have. */
  hide(matches: RegExp): void {
    for (const name of Array.from(this.parts.keys())) if (matches.test(name)) this.parts.delete(name);
  }

  /** Renames the tensors whose names match, as `String.replace` does. */
  rename(matches: RegExp, replacement: string): void {
    for (const [name, part] of Array.from(this.parts)) {
      if (!matches.test(name)) continue;
      this.parts.delete(name);
      this.#add(name.replace(matches, replacement), part);
    }
  }

  /** Keeps the first `count` rows of a matrix. */
  cutRows(name: string, count: number): void {
    const [columns = 0, rows = 1] = this.shape(name);
    if (rows > count) this.parts.set(name, this.#slice(name, { shape: [columns, count], first: 0 }));
  }

  /** Cuts a matrix by rows, or a vector by values, into tensors of the given sizes. Nothing is copied. */
  split(name: string, sizes: Readonly<Record<string, number>>): void {
    const shape = this.shape(name);
    const columns = shape.length > 1 ? [shape[0]!] : [];
    const all = shape.at(-1)!; // at least one dimension
    const sum = Object.values(sizes).reduce((total, size) => total + size, 0);
    if (shape.length > 2 || sum !== all) {
      const expected = `${sum} ${shape.length > 1 ? "rows" : "values"}`;
      throw new AppError("bad_file", `${this.path}: tensor '${name}': expected ${expected}, got (${shape.join(", ")})`);
    }
    let first = 0;
    const cut = Object.entries(sizes).map(([to, size]) => {
      const part = this.#slice(name, { shape: [...columns, size], first });
      first += size;
      return [to, part] as const;
    });
    this.parts.delete(name);
    for (const [to, part] of cut) this.#add(to, part);
  }

  /** Adds a tensor that is part of another one, which is kept: rows of a matrix, or values of a vector. */
  view(to: string, from: string, { shape, first }: { shape: readonly number[]; first: number }): void {
    this.#add(to, this.#slice(from, { shape, first }));
  }

  /** Adds a tensor of rows of another one, which is kept: `rows` has their indexes among the `count` rows there. */
  gather(
    to: string,
    from: string,
    { shape, rows, count }: { shape: readonly number[]; rows: Int32Array; count: number },
  ): void {
    const { info, from: source } = this.#readable(from);
    const rowBytes = info.byteLength / count;
    const values = shape.reduce((product, size) => product * size, 1);
    const byteLength = rowBytes * rows.length;
    const isWhole = (values / info.quant.blockLen) * info.quant.blockBytes === byteLength && Number.isInteger(rowBytes);
    if (!isWhole || rows.some((row) => row >= count)) {
      const expected = `${count} rows of which ${rows.length} are (${shape.join(", ")})`;
      throw new AppError(
        "bad_file",
        `${this.path}: tensor '${from}': expected ${expected}, got (${info.shape.join(", ")}) as ${info.quant.name}`,
      );
    }
    const made = { sourceBytes: info.byteLength, of: (bytes: Uint8Array) => gathered(bytes, { rows, rowBytes }) };
    this.#add(to, { info: { ...info, shape, byteLength }, from: source, made });
  }

  /** Adds a number to each value of a float32 tensor. */
  raise(name: string, by: number): void {
    const part = this.#part(name);
    const { info } = part;
    if (info.quant.name !== "f32" || part.made) {
      throw new AppError("bad_file", `${this.path}: tensor '${name}': expected f32, got ${info.quant.name}`);
    }
    const of = (bytes: Uint8Array): Uint8Array =>
      new Uint8Array(new Float32Array(bytes.slice().buffer).map((value) => value + by).buffer);
    this.parts.set(name, { ...part, made: { sourceBytes: info.byteLength, of } });
  }

  #part(name: string): Part {
    const part = this.parts.get(name);
    if (!part) throw new AppError("bad_file", `${this.path}: expected a tensor '${name}', got none`);
    return part;
  }

  /** Refuses a tensor of an unreadable type: its size cannot be checked against its shape. */
  #readable(name: string): Part {
    const part = this.#part(name);
    const { unreadable } = part.info.quant;
    if (unreadable) throw new AppError("unsupported", `${this.path}: tensor '${part.from.name}': ${unreadable}`);
    return part;
  }

  /** @param cut the new shape, and its first row (for a vector: its first value) */
  #slice(name: string, { shape, first }: { shape: readonly number[]; first: number }): Part {
    const { info, from } = this.#readable(name);
    const unit = shape.length > 1 ? shape[0]! : 1; // weights per row, or per value
    const bytesOf = (count: number): number => (count / info.quant.blockLen) * info.quant.blockBytes;
    const start = bytesOf(first * unit);
    const byteLength = bytesOf(shape.reduce((product, size) => product * size, 1));
    if (!Number.isInteger(start) || !Number.isInteger(byteLength)) {
      const expected = `whole ${info.quant.name} blocks of ${info.quant.blockLen}`;
      throw new AppError(
        "bad_file",
        `${this.path}: tensor '${name}': expected ${expected}, got (${info.shape.join(", ")})`,
      );
    }
    if (start + byteLength > info.byteLength) {
      const wanted = `(${shape.join(", ")}) from ${first} on`;
      throw new AppError(
        "bad_file",
        `${this.path}: tensor '${name}': expected ${wanted} in it, got (${info.shape.join(", ")})`,
      );
    }
    return {
      info: { ...info, shape, byteLength, offset: info.offset + start },
      from: { name: from.name, start: from.start + start },
    };
  }

  #add(name: string, part: Part): void {
    const { info, from } = part;
    if (this.parts.has(name)) {
      throw new AppError(
        "bad_file",
        `${this.path}: tensor '${from.name}': expected no tensor '${name}' beside it, got one`,
      );
    }
    this.parts.set(name, { ...part, info: { ...info, name } });
  }
}

function gathered(bytes: Uint8Array, { rows, rowBytes }: { rows: Int32Array; rowBytes: number }): Uint8Array {
  const made = new Uint8Array(rows.length * rowBytes);
  for (const [i, row] of rows.entries()) made.set(bytes.subarray(row * rowBytes, (row + 1) * rowBytes), i * rowBytes);
  return made;
}
