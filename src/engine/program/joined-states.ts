/** Combines the sequence state of sessions that run parts of one program. */
import { assert } from "../../base/index.ts";
import { concatBytes } from "../formats/bytes.ts";
import type { Session } from "./backend.ts";
import type { Checkpoint, Checkpoints, KvBlocks, PackedCheckpoints } from "./kept-slots.ts";

/** One checkpoint of all parts that keep states; undefined if none does. */
export function joinCheckpoints(sessions: readonly Session[]): Checkpoints | undefined {
  const kept = sessions.flatMap(({ checkpoints }) => checkpoints ?? []);
  if (kept.length === 0) return undefined;
  // `save` made it
  const partsOf = (checkpoint: Checkpoint): readonly Checkpoint[] => (checkpoint as JoinedCheckpoint).parts;
  return {
    async save(slot, length, into): Promise<JoinedCheckpoint> {
      const parts: Checkpoint[] = [];
      for (const [i, each] of kept.entries()) parts.push(await each.save(slot, length, into && partsOf(into)[i]));
      return { length, bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0), parts };
    },
    restore(slot, checkpoint) {
      for (const [i, part] of partsOf(checkpoint).entries()) kept[i]!.restore(slot, part); // one part per session
    },
  };
}

interface JoinedCheckpoint extends Checkpoint {
  readonly parts: readonly Checkpoint[];
}

/** One block with the blocks of all parts; undefined if some part has none. */
export function joinBlocks(sessions: readonly Session[]): KvBlocks | undefined {
  const parts = sessions.flatMap(({ blocks }) => blocks ?? []);
  const [first] = parts;
  if (!first || parts.length < sessions.length || parts.some(({ length }) => length !== first.length)) return undefined;
  return {
    length: first.length,
    layout: parts.map(({ layout }) => layout).join(" + "),
    checkpoints: joinPacked(parts.flatMap(({ checkpoints }) => checkpoints ?? [])),
    bytesOf: (count) => parts.reduce((sum, each) => sum + each.bytesOf(count), 0),
    async read(...where) {
      const read: Uint8Array[] = [];
      for (const each of parts) read.push(await each.read(...where));
      return concatBytes(read);
    },
    async write(slot, { first: at, count, bytes }) {
      let done = 0;
      for (const each of parts) {
        const own = bytes.subarray(done, done + each.bytesOf(count));
        done += own.length;
        await each.write(slot, { first: at, count, bytes: own });
      }
      assert(done === bytes.length, `a block of ${count} positions has ${bytes.length} bytes`);
    },
  };
}

/** Packs the parts in sequence, each after its length in bytes. */
function joinPacked(kept: readonly PackedCheckpoints[]): PackedCheckpoints | undefined {
  if (kept.length === 0) return undefined;
  return {
    async pack(checkpoint) {
      const packed: Uint8Array[] = [];
      for (const [i, part] of (checkpoint as JoinedCheckpoint).parts.entries()) {
        const bytes = await kept[i]!.pack(part); // one part per session
        packed.push(new Uint8Array(Uint32Array.of(bytes.length).buffer), bytes);
      }
      return concatBytes(packed);
    },
    unpack(length, bytes): JoinedCheckpoint | undefined {
      const parts: Checkpoint[] = [];
      let at = 0;
      for (const each of kept) {
        const size =
          at + 4 <= bytes.length ? new DataView(bytes.buffer, bytes.byteOffset + at).getUint32(0, true) : NaN;
        const part = at + 4 + size <= bytes.length && each.unpack(length, bytes.slice(at + 4, at + 4 + size));
        if (!part) return undefined;
        parts.push(part);
        at += 4 + size;
      }
      if (at !== bytes.length) return undefined;
      return { length, bytes: parts.reduce((sum, part) => sum + part.bytes, 0), parts };
    },
  };
}
