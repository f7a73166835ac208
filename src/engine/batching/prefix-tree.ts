/** The tree of prefixes: each node is a block of tokens that follows its parents' tokens. */
import type { Checkpoint } from "../program/kept-slots.ts";
import { NO_ADAPTERS } from "./adapter-set.ts";
import type { SnapshotInfo } from "../formats/snapshots.ts";

/** Overhead of a node besides its bytes. */
const NODE_BYTES = 1024;

export interface KeptCheckpoint {
  readonly length: number;
  readonly bytes: number;
  /** Undefined if the checkpoint is only in the snapshot store. */
  value: Checkpoint | undefined;
}

export interface Node {
  /** A full block, or fewer tokens at the end of a prefix; only full nodes have children. */
  readonly tokens: readonly number[];
  /** Position of the first token. */
  readonly first: number;
  readonly parent: Node | undefined;
  readonly children: Node[];
  /** Key of the adapters that made it (`AdapterSet`). */
  readonly adapters: string;
  /** Undefined if only stored. */
  bytes: Uint8Array | undefined;
  /** Within this block, the shortest first. */
  checkpoints: readonly KeptCheckpoint[];
  /** Name of its snapshot; undefined: not stored. */
  name: string | undefined;
}

/** The nodes of a tree, by parent. */
export interface Siblings {
  /** The nodes after a parent; undefined: the first blocks that these adapters made. */
  siblings(parent: Node | undefined, adapters: string): readonly Node[];
  /** Adds a node after its siblings. */
  push(node: Node): void;
}

/** Bytes of memory. */
export const sizeOf = ({ bytes, checkpoints }: Node): number =>
  NODE_BYTES + (bytes?.length ?? 0) + checkpoints.reduce((sum, each) => sum + (each.value ? each.bytes : 0), 0);

/** The node that shares the most tokens with a text from `first` on, and the number of shared tokens. */
export function nearest(
  nodes: readonly Node[],
  text: readonly number[],
  { first, limit }: { first: number; limit: number },
): readonly [Node | undefined, number] {
  let best: Node | undefined;
  let most = 0;
  for (const node of nodes) {
    const end = Math.min(node.tokens.length, limit - first);
    let shared = 0;
    while (shared < end && node.tokens[shared] === text[first + shared]) shared++;
    if (shared > most) [best, most] = [node, shared];
  }
  return [best, most];
}

/** A node and all its descendants. */
export function* nodesBelow(node: Node): Generator<Node> {
  yield node;
  for (const child of node.children) yield* nodesBelow(child);
}

/** Adds stored nodes to an empty tree; returns the names of snapshots that have no place in it. */
export function attachSnapshots(
  { siblings, push }: Siblings,
  infos: readonly SnapshotInfo[],
  blockLength: number,
): string[] {
  const behind = Map.groupBy(infos, ({ parent }) => parent);
  const unused = new Set(infos.map(({ name }) => name));
  const waiting: { parent: Node | undefined; name: string }[] = [{ parent: undefined, name: "" }];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { parent } = next;
    for (const { name, tokens, checkpoints, adapters = NO_ADAPTERS } of behind.get(next.name) ?? []) {
      const others = siblings(parent, adapters);
      const isKnown = nearest(others, tokens, { first: 0, limit: tokens.length })[1] === tokens.length;
      if (tokens.length > blockLength || isKnown) continue;
      const node: Node = {
        tokens,
        first: parent ? parent.first + blockLength : 0,
        parent,
        children: [],
        adapters: parent?.adapters ?? adapters,
        bytes: undefined,
        checkpoints: checkpoints.map((each) => ({ ...each, value: undefined })),
        name,
      };
      push(node);
      unused.delete(name);
      if (tokens.length === blockLength) waiting.push({ parent: node, name });
    }
  }
  return [...unused];
}
