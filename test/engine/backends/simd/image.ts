/** Libraries for any system (ELF, Mach-O, PE) laid out in memory without that system's loader. They import nothing. */

export interface Image {
  /** The contents of memory from the image's address on. */
  readonly bytes: Uint8Array;
  /** Offsets of exported functions in it. */
  readonly exports: ReadonlyMap<string, number>;
}

/** Throws if the library needs a loader of its system: for other libraries, or for relocations. */
export function layOut(file: Uint8Array): Image {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const magic = view.getUint32(0, true);
  if (magic === 0x464c457f) return layOutElf(file, view);
  if (magic === 0xfeedfacf) return layOutMachO(file, view);
  if ((magic & 0xffff) === 0x5a4d) return layOutPe(file, view);
  throw new Error(`no library: ${magic.toString(16)}`);
}

interface Part {
  readonly address: number;
  readonly size: number;
  readonly at: number;
  readonly bytes: number;
}

function place(file: Uint8Array, parts: readonly Part[]): Uint8Array {
  const end = Math.max(...parts.map(({ address, size }) => address + size));
  const bytes = new Uint8Array(end);
  for (const { address, at, bytes: length } of parts) bytes.set(file.subarray(at, at + length), address);
  return bytes;
}

function textAt(bytes: Uint8Array, at: number): string {
  return new TextDecoder("latin1").decode(bytes.subarray(at, bytes.indexOf(0, at)));
}

const u64 = (view: DataView, at: number): number => Number(view.getBigUint64(at, true));

function layOutElf(file: Uint8Array, view: DataView): Image {
  const [headers, size, count] = [u64(view, 32), view.getUint16(54, true), view.getUint16(56, true)];
  const segments = Array.from({ length: count }, (_, i) => headers + i * size);
  const ofType = (type: number) => segments.filter((at) => view.getUint32(at, true) === type);
  const parts = ofType(1).map((at) => ({
    address: u64(view, at + 16),
    size: u64(view, at + 40),
    at: u64(view, at + 8),
    bytes: u64(view, at + 32),
  }));
  const bytes = place(file, parts);
  const memory = new DataView(bytes.buffer);
  const tags = new Map<number, number>();
  for (let at = u64(view, ofType(2)[0]! + 16); u64(memory, at) !== 0; at += 16)
    tags.set(u64(memory, at), u64(memory, at + 8));
  const [needed, rela, rel, strings, symbols] = [1, 7, 17, 5, 6].map((tag) => tags.get(tag));
  if (needed !== undefined || rela !== undefined || rel !== undefined) throw new Error("ELF: needs a loader");
  // the table of symbols ends where that of strings begins, or the hash table: both follow it
  const end = Math.min(...[strings!, tags.get(0x6ffffef5) ?? Infinity].filter((at) => at > symbols!));
  const exports = new Map<string, number>();
  for (let at = symbols! + 24; at + 24 <= end; at += 24)
    exports.set(textAt(bytes, strings! + memory.getUint32(at, true)), u64(memory, at + 8));
  return { bytes, exports };
}

function layOutPe(file: Uint8Array, view: DataView): Image {
  const header = view.getUint32(0x3c, true);
  const optional = header + 24;
  const directory = (i: number) => view.getUint32(optional + 112 + 8 * i, true);
  if (directory(1) !== 0 || directory(5) !== 0) throw new Error("PE: needs a loader");
  const sections = optional + view.getUint16(header + 20, true);
  const parts = Array.from({ length: view.getUint16(header + 6, true) }, (_, i) => {
    const at = sections + 40 * i;
    const [size, address, bytes, from] = [8, 12, 16, 20].map((offset) => view.getUint32(at + offset, true));
    return { address: address!, size: size!, at: from!, bytes: Math.min(bytes!, size!) };
  });
  const bytes = place(file, [{ address: 0, size: 4096, at: 0, bytes: view.getUint32(optional + 60, true) }, ...parts]);
  const memory = new DataView(bytes.buffer);
  const table = directory(0);
  const [count, functions, names, ordinals] = [24, 28, 32, 36].map((offset) => memory.getUint32(table + offset, true));
  const exports = new Map<string, number>();
  for (let i = 0; i < count!; i++) {
    const name = textAt(bytes, memory.getUint32(names! + 4 * i, true));
    exports.set(name, memory.getUint32(functions! + 4 * memory.getUint16(ordinals! + 2 * i, true), true));
  }
  return { bytes, exports };
}

/** Load commands of a Mach-O file. */
const [SEGMENT, DYLD_INFO, CHAINED_FIXUPS, DYLIB] = [0x19, 0x80000022, 0x80000034, 0xc];

function layOutMachO(file: Uint8Array, view: DataView): Image {
  const parts: Part[] = [];
  let trie = 0;
  for (let i = 0, at = 32; i < view.getUint32(16, true); i++, at += view.getUint32(at + 4, true)) {
    const command = view.getUint32(at, true);
    if (command === SEGMENT) {
      const [address, size, from, bytes] = [24, 32, 40, 48].map((offset) => u64(view, at + offset));
      parts.push({ address: address!, size: size!, at: from!, bytes: bytes! });
    }
    if (command === DYLD_INFO) {
      const fixups = [12, 20, 28, 36].some((offset) => view.getUint32(at + offset, true) !== 0);
      if (fixups) throw new Error("Mach-O: needs a loader");
      trie = view.getUint32(at + 40, true);
    }
    if (command === CHAINED_FIXUPS || command === DYLIB) throw new Error("Mach-O: needs a loader");
  }
  const exports = new Map<string, number>();
  readTrie(file, trie, { node: trie, prefix: "", exports });
  return { bytes: place(file, parts), exports };
}

/** Names of a Mach-O file begin with `_`. */
function readTrie(
  file: Uint8Array,
  start: number,
  into: { node: number; prefix: string; exports: Map<string, number> },
): void {
  const { prefix, exports } = into;
  let at = into.node;
  const number = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = file[at++]!;
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  };
  const size = number();
  const children = at + size;
  if (size > 0) {
    number(); // flags
    exports.set(prefix.slice(1), number());
  }
  at = children;
  for (let left = file[at++]!; left > 0; left--) {
    const name = textAt(file, at);
    at += name.length + 1;
    readTrie(file, start, { node: start + number(), prefix: prefix + name, exports });
  }
}
