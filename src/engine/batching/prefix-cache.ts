/**
 * Prefixes of finished sequences, far more than there are slots: a tree of blocks of keys and values, so that prefixes
 * share the blocks of their common beginning. Blocks are copies: computing 64 tokens takes 0.2 s, copying them less
 * than a millisecond. The least recently used blocks are evicted first, into the snapshot store, from which they come
 * back, even in the next process.
 */
import type { Checkpoint, KvBlocks } from "../program/kept-slots.ts";
import { makePool, type Pool, type PoolOptions } from "./prefix-pool.ts";
import { NO_ADAPTERS } from "./adapter-set.ts";
import type { Slot } from "./slots.ts";
import { nearest, sizeOf, type KeptCheckpoint, type Node } from "./prefix-tree.ts";

/** A prefix is saved if it has at least this many tokens more than the cache has of it. */
const KEPT_MIN_TOKENS = 16;
/** Bytes of memory that copies leave free. */
const RESERVE = 128 * 2 ** 20;

export interface PrefixMatch {
  readonly length: number;
  readonly path: readonly Node[];
}

/** The part of a match that was copied into a slot. */
interface Loaded {
  readonly length: number;
  /** Checkpoints within it; if slots need checkpoints, the last one is at its end. */
  readonly checkpoints: readonly Checkpoint[];
}

export interface PrefixCache {
  /** Bytes kept in memory. */
  readonly bytes: number;
  /** Resolves when the snapshots of earlier processes are indexed. */
  readonly ready: Promise<void>;
  /**
   * The longest prefix of a prompt, at most `limit` tokens; it ends at a checkpoint if slots need one.
   * @param adapters key of the prompt's adapters (`AdapterSet`); prefixes made with other adapters do not match
   */
  match(tokens: readonly number[], limit: number, adapters?: string): PrefixMatch;
  /** Copies a prefix into a slot, as far as the cache still has it. */
  load(match: PrefixMatch, slot: number): Promise<Loaded>;
  /** Copies the part of a slot that the cache lacks. */
  save(slot: number, tokens: readonly number[], checkpoints: readonly Checkpoint[], adapters?: string): Promise<void>;
  /** Resolves when all snapshots are written. */
  close(): Promise<void>;
}

export function makePrefixCache(options: PoolOptions): PrefixCache {
  const { blocks } = options;
  const { checkpoints: kept } = blocks;
  const pool = makePool(options);
  const follow = (tokens: readonly number[], limit: number, adapters: string): { path: Node[]; length: number } => {
    const path: Node[] = [];
    let length = 0;
    for (let among = pool.roots(adapters); length < limit;) {
      const [best, shared] = nearest(among, tokens, { first: length, limit });
      if (!best || shared === 0) break;
      path.push(best);
      length += shared;
      if (shared < blocks.length) break;
      among = best.children;
    }
    return { path, length };
  };
  const endOf = (path: readonly Node[], length: number): number =>
    path.flatMap(({ checkpoints }) => checkpoints.filter((each) => each.length <= length)).at(-1)?.length ?? 0;

  return {
    get bytes() {
      return pool.bytes;
    },
    ready: pool.ready,
    match(tokens, limit, adapters = NO_ADAPTERS) {
      const { path, length } = follow(tokens, limit, adapters);
      if (!kept) return { path, length };
      const end = endOf(path, length);
      return { path: path.filter(({ first }) => first < end), length: end };
    },
    async load({ path, length }, slot) {
      const there: Node[] = [];
      const checkpoints: Checkpoint[] = [];
      const deepest = path.at(-1);
      if (deepest) pool.touch(deepest); // other blocks are evicted first
      for (const node of path) {
        const data = pool.read(node);
        if (!data) break;
        await blocks.write(slot, { first: node.first, count: node.tokens.length, bytes: data.bytes });
        there.push(node);
        checkpoints.push(...data.checkpoints);
      }
      const last = there.at(-1);
      const held = last ? Math.min(length, last.first + last.tokens.length) : 0;
      const end = kept ? endOf(there, held) : held;
      if (last) pool.touch(last);
      return { length: end, checkpoints: checkpoints.filter((each) => each.length <= end) };
    },
    async save(slot, tokens, checkpoints, adapters = NO_ADAPTERS) {
      const roomFor = (options.freeBytes?.() ?? Infinity) - RESERVE;
      await saveSlot(
        { index: slot, tokens, checkpoints, adapters },
        { pool, blocks, bytesMax: options.bytesMax, roomFor },
      );
    },
    async close() {
      await pool.packed();
      await options.snapshots?.flush();
    },
  };
}

interface Tokens {
  readonly tokens: readonly number[];
}

const keptCheckpoint = (value: Checkpoint): KeptCheckpoint => ({ length: value.length, bytes: value.bytes, value });

interface Room {
  readonly bytesMax: number;
  /** Bytes that may be copied. */
  readonly roomFor: number;
}

/** Adds the part of a slot that the tree lacks; a prefix too long for memory is stored as far as possible. */
async function saveSlot(
  { index: slot, tokens, checkpoints, adapters }: Pick<Slot, "index" | "checkpoints" | "adapters"> & Tokens,
  { pool, blocks, bytesMax, roomFor }: { pool: Pool; blocks: KvBlocks } & Room,
): Promise<void> {
  const { checkpoints: kept } = blocks;
  const end = kept ? (checkpoints.at(-1)?.length ?? 0) : tokens.length;
  let parent: Node | undefined;
  let [inPath, copied] = [0, 0];
  for (let first = 0; first < end; first += blocks.length) {
    const own = tokens.slice(first, Math.min(end, first + blocks.length));
    const [there, shared] = nearest(parent?.children ?? pool.roots(adapters), own, { first: 0, limit: own.length });
    const within = checkpoints.filter(({ length }) => length > first && length <= first + own.length);
    if (there && shared === own.length) {
      if (within.length > there.checkpoints.length) {
        const bytes = there.bytes ?? (await blocks.read(slot, first, own.length));
        pool.change(there, within.map(keptCheckpoint), bytes);
      }
      parent = there;
      inPath += sizeOf(there);
      continue;
    }
    if (own.length < blocks.length && !kept && own.length - shared < KEPT_MIN_TOKENS) break;
    if (parent && copied === 0) pool.touch(parent); // other blocks are evicted before the existing part of this prefix
    if ((copied += blocks.bytesOf(own.length)) > roomFor) break;
    if (there && shared === there.tokens.length) pool.drop(there); // the beginning of this one
    const node: Node = {
      tokens: own,
      first,
      parent,
      children: [],
      adapters,
      bytes: await blocks.read(slot, first, own.length),
      checkpoints: within.map(keptCheckpoint),
      name: undefined,
    };
    inPath += sizeOf(node);
    if (inPath <= bytesMax) pool.add(node);
    else if (!pool.putAside(node)) break;
    parent = node;
    pool.shrink();
  }
  if (parent) pool.touch(parent);
  pool.shrink();
}
