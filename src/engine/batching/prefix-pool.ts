/** The nodes of the tree of prefixes, and which of them are in memory. */
import type { Checkpoint, KvBlocks } from "../program/backend.ts";
import type { SnapshotStore } from "../formats/snapshots.ts";
import { attachSnapshots, nodesBelow, sizeOf, type KeptCheckpoint, type Node } from "./prefix-tree.ts";

export interface PoolOptions {
  readonly blocks: KvBlocks;
  /** Most bytes that are kept in memory. */
  readonly bytesMax: number;
  readonly snapshots: SnapshotStore | undefined;
  /** Memory that the process could still take; undefined: nobody knows. */
  readonly freeBytes?: (() => number) | undefined;
}

export interface BlockData {
  /** Good until the next block is read. */
  readonly bytes: Uint8Array;
  readonly checkpoints: readonly Checkpoint[];
}

export interface Pool {
  readonly roots: Node[];
  readonly bytes: number;
  readonly ready: Promise<void>;
  /** What a block is, from wherever it is; undefined where it is nowhere any more. What was stored stays there. */
  read(node: Node): BlockData | undefined;
  add(node: Node): void;
  /** Keeps a node where snapshots are kept and not in memory; false where it cannot be. */
  putAside(node: Node): boolean;
  /** Gives a node other checkpoints. @param bytes of it, in memory from then on */
  change(node: Node, checkpoints: readonly KeptCheckpoint[], bytes: Uint8Array): void;
  /** Forgets a node and all behind it. */
  drop(node: Node): void;
  touch(last: Node): void;
  shrink(): void;
}

export function makePool({ blocks, bytesMax, snapshots }: PoolOptions): Pool {
  const roots: Node[] = [];
  // Those in memory by use, the latest last. A parent is used after its children, so that the first has none here.
  const used = new Set<Node>();
  let bytes = 0;
  const use = (node: Node): void => {
    used.add(node);
    bytes += sizeOf(node);
  };
  const unuse = (node: Node): void => {
    if (used.delete(node)) bytes -= sizeOf(node);
  };
  const drop = (node: Node): void => {
    const siblings = node.parent?.children ?? roots;
    siblings.splice(siblings.indexOf(node), 1);
    for (const each of nodesBelow(node)) {
      unuse(each);
      if (each.name !== undefined) snapshots?.remove(each.name);
    }
  };
  const store = (node: Node): void => storeNode(node, blocks, snapshots);
  return {
    roots,
    get bytes() {
      return bytes;
    },
    ready: attach(roots, blocks, snapshots),
    read(node) {
      const { bytes: kept, checkpoints, name } = node;
      if (kept) return { bytes: kept, checkpoints: checkpoints.flatMap(({ value }) => value ?? []) };
      const data = dataOf(node, blocks, name === undefined ? undefined : snapshots?.read(name));
      if (!data) drop(node);
      return data;
    },
    add(node) {
      (node.parent?.children ?? roots).push(node);
      use(node);
      store(node);
    },
    putAside(node) {
      store(node);
      if (node.name === undefined) return false;
      (node.parent?.children ?? roots).push(node);
      letGo(node);
      return true;
    },
    change(node, checkpoints, own) {
      unuse(node);
      Object.assign(node, { checkpoints, bytes: own });
      use(node);
      store(node);
    },
    drop,
    touch(last) {
      const path = pathTo(last);
      for (const node of path.toReversed()) if (used.delete(node)) used.add(node);
      snapshots?.touch(path.flatMap(({ name }) => name ?? []));
    },
    shrink() {
      for (const node of used) {
        if (bytes <= bytesMax) return;
        unuse(node);
        if (node.name === undefined) drop(node);
        letGo(node);
      }
    },
  };
}

async function attach(roots: Node[], { length }: KvBlocks, snapshots: SnapshotStore | undefined): Promise<void> {
  if (!snapshots) return;
  for (const name of attachSnapshots(roots, await snapshots.list(), length)) snapshots.remove(name);
}

function pathTo(last: Node): Node[] {
  const path: Node[] = [];
  for (let node: Node | undefined = last; node; node = node.parent) path.unshift(node);
  return path;
}

function letGo(node: Node): void {
  node.bytes = undefined;
  for (const checkpoint of node.checkpoints) checkpoint.value = undefined;
}

/** Keeps a node beyond the process, where its parent is. */
function storeNode(node: Node, { checkpoints: kept }: KvBlocks, snapshots: SnapshotStore | undefined): void {
  const { tokens, parent, checkpoints } = node;
  if (!snapshots || !node.bytes || tokens.some((token) => token < 0)) return; // keys of media are this process's
  if (parent && parent.name === undefined) return;
  node.name ??= crypto.randomUUID();
  const info = { name: node.name, parent: parent?.name ?? "", tokens };
  const packed = checkpoints.flatMap(({ value }) => (value && kept ? kept.pack(value) : []));
  const sizes = checkpoints.map(({ length }, i) => ({ length, bytes: packed[i]?.length ?? 0 }));
  snapshots.write({ ...info, checkpoints: sizes }, [node.bytes, ...packed]);
}

/** Undefined where what was stored is not this node. */
function dataOf(
  { tokens, checkpoints }: Node,
  blocks: KvBlocks,
  stored: Uint8Array | undefined,
): BlockData | undefined {
  let at = blocks.bytesOf(tokens.length);
  const whole = checkpoints.reduce((sum, each) => sum + each.bytes, at);
  if (stored?.length !== whole) return undefined;
  const bytes = stored.subarray(0, at);
  const unpack = (length: number, part: Uint8Array) => blocks.checkpoints?.unpack(length, part) ?? [];
  const values = checkpoints.flatMap((each) => unpack(each.length, stored.subarray(at, (at += each.bytes))));
  return values.length === checkpoints.length ? { bytes, checkpoints: values } : undefined;
}
