/** The nodes of the tree of prefixes, and which of them are in memory. */
import type { Checkpoint, KvBlocks } from "../program/kept-slots.ts";
import type { SnapshotStore } from "../formats/snapshots.ts";
import { isLasting, NO_ADAPTERS } from "./adapter-set.ts";
import { attachSnapshots, nodesBelow, sizeOf, type KeptCheckpoint, type Node, type Siblings } from "./prefix-tree.ts";

/** Maximum number of nodes that are only stored: nothing says when the store evicts their snapshots. */
const STORED_MAX = 16_384;

export interface PoolOptions {
  readonly blocks: KvBlocks;
  /** Maximum bytes in memory. */
  readonly bytesMax: number;
  readonly snapshots: SnapshotStore | undefined;
  /** Maximum number of nodes that are not in memory, for tests. */
  readonly storedMax?: number;
  /** Memory that the process can still allocate; undefined: unknown. */
  readonly freeBytes?: (() => number) | undefined;
}

export interface BlockData {
  /** Valid until the next block is read. */
  readonly bytes: Uint8Array;
  readonly checkpoints: readonly Checkpoint[];
}

export interface Pool {
  /** The first blocks of the prefixes that these adapters computed; empty if they computed none. */
  roots(adapters: string): readonly Node[];
  readonly bytes: number;
  readonly ready: Promise<void>;
  /** The content of a block, from memory or storage; undefined if it is lost. Stored content stays stored. */
  read(node: Node): BlockData | undefined;
  add(node: Node): void;
  /** Moves a node from memory to the snapshot store; false if that is impossible. */
  putAside(node: Node): boolean;
  /** Replaces a node's checkpoints. @param bytes of the node, which is in memory from then on */
  change(node: Node, checkpoints: readonly KeptCheckpoint[], bytes: Uint8Array): void;
  /** Deletes a node and all its descendants. */
  drop(node: Node): void;
  touch(last: Node): void;
  shrink(): void;
  /** Resolves when the snapshot store has every node. */
  packed(): Promise<void>;
}

export function makePool({ blocks, bytesMax, snapshots, storedMax = STORED_MAX }: PoolOptions): Pool {
  const { siblings, push, remove } = makeRoots();
  const order = makeOrder();
  const drop = (node: Node): void => {
    remove(node);
    for (const each of nodesBelow(node)) {
      order.remove(each);
      if (each.name !== undefined) snapshots?.remove(each.name);
    }
  };
  const { store, packed } = makeWriter(blocks, snapshots);
  const keepStored = (node: Node): void => {
    letGo(node);
    order.stored.add(node);
    for (const oldest of order.stored) {
      if (order.stored.size <= storedMax) return;
      drop(oldest);
    }
  };
  return {
    roots: (adapters) => siblings(undefined, adapters),
    get bytes() {
      return order.bytes;
    },
    ready: attach({ siblings, push: (node) => (push(node), keepStored(node)) }, blocks, snapshots),
    read(node) {
      const { bytes: kept, checkpoints, name } = node;
      if (kept) return { bytes: kept, checkpoints: checkpoints.flatMap(({ value }) => value ?? []) };
      const data = dataOf(node, blocks, name === undefined ? undefined : snapshots?.read(name));
      if (!data) drop(node);
      return data;
    },
    add(node) {
      push(node);
      order.use(node);
      store(node);
    },
    putAside(node) {
      store(node);
      if (node.name === undefined) return false;
      push(node);
      keepStored(node);
      return true;
    },
    change(node, checkpoints, own) {
      order.remove(node);
      Object.assign(node, { checkpoints, bytes: own });
      order.use(node);
      store(node);
    },
    drop,
    touch(last) {
      const path = pathTo(last);
      for (const node of path.toReversed()) order.touch(node);
      snapshots?.touch(path.flatMap(({ name }) => name ?? []));
    },
    shrink() {
      for (const node of order.inMemory) {
        if (order.bytes <= bytesMax) return;
        order.remove(node);
        if (node.name === undefined) drop(node);
        else keepStored(node);
      }
    },
    packed,
  };
}

/**
 * Nodes in order of use, the latest last. A parent counts as used after its children, so the first node in memory has
 * no children there.
 */
function makeOrder() {
  const inMemory = new Set<Node>();
  const stored = new Set<Node>();
  let bytes = 0;
  return {
    inMemory,
    /** Nodes that are not in memory. */
    stored,
    /** Bytes of the nodes in memory. */
    get bytes() {
      return bytes;
    },
    use(node: Node): void {
      inMemory.add(node);
      bytes += sizeOf(node);
    },
    touch(node: Node): void {
      for (const nodes of [inMemory, stored]) if (nodes.delete(node)) nodes.add(node);
    },
    remove(node: Node): void {
      if (inMemory.delete(node)) bytes -= sizeOf(node);
      stored.delete(node);
    },
  };
}

/** The first blocks, by the adapters that made them: a request may name any scale, so only they have an entry. */
function makeRoots(): Siblings & { remove(node: Node): void } {
  const byAdapters = new Map<string, Node[]>();
  return {
    siblings: (parent, adapters) => parent?.children ?? byAdapters.get(adapters) ?? [],
    push(node) {
      const { parent, adapters } = node;
      const there = parent?.children ?? byAdapters.get(adapters);
      if (there) there.push(node);
      else byAdapters.set(adapters, [node]);
    },
    remove(node) {
      const { parent, adapters } = node;
      const there = parent?.children ?? byAdapters.get(adapters) ?? [];
      const at = there.indexOf(node);
      if (at >= 0) there.splice(at, 1);
      if (!parent && there.length === 0) byAdapters.delete(adapters);
    },
  };
}

async function attach(tree: Siblings, { length }: KvBlocks, snapshots: SnapshotStore | undefined): Promise<void> {
  if (!snapshots) return;
  for (const name of attachSnapshots(tree, await snapshots.list(), length)) snapshots.remove(name);
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

/** Stores nodes, and waits for nodes whose checkpoints are not packed yet. */
function makeWriter(blocks: KvBlocks, snapshots: SnapshotStore | undefined) {
  let packing = Promise.resolve();
  return {
    store(node: Node): void {
      const writing = storeNode(node, blocks, snapshots);
      if (writing) packing = Promise.all([packing, writing]).then(() => undefined);
    },
    packed: () => packing,
  };
}

/** Stores a node and its parents beyond the process; returns a promise if its checkpoints are still to be packed. */
function storeNode(
  node: Node,
  { checkpoints: kept }: KvBlocks,
  snapshots: SnapshotStore | undefined,
): Promise<void> | undefined {
  const { tokens, parent, adapters, checkpoints, bytes } = node;
  if (!snapshots || !bytes) return undefined;
  if (!parent && !isLasting(adapters)) return undefined;
  if (parent && parent.name === undefined) return undefined;
  const name = (node.name ??= crypto.randomUUID());
  const write = (packed: readonly Uint8Array[]): void => {
    const sizes = checkpoints.map(({ length }, i) => ({ length, bytes: packed[i]?.length ?? 0 }));
    const made = parent || adapters === NO_ADAPTERS ? {} : { adapters };
    snapshots.write({ name, parent: parent?.name ?? "", tokens, checkpoints: sizes, ...made }, [bytes, ...packed]);
  };
  const packed = checkpoints.flatMap(({ value }) => (value && kept ? kept.pack(value) : []));
  if (packed.every((each) => each instanceof Uint8Array)) return void write(packed);
  return Promise.all(packed).then(write, () => snapshots.remove(name)); // a lost device cannot pack
}

/** Undefined if the stored content is not this node's. */
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
