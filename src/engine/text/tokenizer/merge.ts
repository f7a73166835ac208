/**
 * Greedy merging: joins the adjacent pair of symbols that merges first (lowest rank, then leftmost), until no pair
 * merges. BPE and SentencePiece differ only in which pairs merge and in their order, which their `Merges` define. Same
 * results as the work queues of `llm_tokenizer_bpe_session` and `llm_tokenizer_spm_session` in llama-vocab.cpp.
 */

/** The pairs of symbols that merge. */
export interface Merges {
  /** Number of the merge of two adjacent symbols, or -1. */
  find(left: number, right: number): number;
  /** (merges) order of each: the lowest goes first. */
  readonly rank: Int32Array;
  /** (merges) the resulting symbol. */
  readonly result: Int32Array;
}

/** Working memory of `mergeSymbols`; belongs to one encoder and grows with the longest word. */
interface MergeScratch {
  /** (symbols) the merge of the pair that starts here, or -1. */
  found: Int32Array;
  previous: Int32Array;
  next: Int32Array;
  /** Binary heap of pairs, smallest first: rank · 2^22 + position, exact in a double. */
  heap: Float64Array;
}

/** Up to this many symbols a scan for the best pair is faster than a heap (measured: equal at 20 to 30). */
const SCAN_SYMBOLS = 24;
/** Longer runs are merged in parts, so that a heap key (31 + 22 bits) stays exact. */
export const MAX_SYMBOLS = 2 ** 22;
const NEVER = 0x7fffffff;

export function makeMergeScratch(): MergeScratch {
  return { found: new Int32Array(0), previous: new Int32Array(0), next: new Int32Array(0), heap: new Float64Array(0) };
}

/**
 * Merges `symbols[0, count)` in place and returns how many remain.
 * @param symbols at most MAX_SYMBOLS
 */
export function mergeSymbols(merges: Merges, symbols: Int32Array, count: number, scratch: MergeScratch): number {
  if (count < 2) return count;
  if (scratch.found.length < count) {
    const size = 2 * count;
    scratch.found = new Int32Array(size);
    scratch.previous = new Int32Array(size);
    scratch.next = new Int32Array(size);
    scratch.heap = new Float64Array(3 * size);
  }
  for (let i = 0; i + 1 < count; i++) scratch.found[i] = merges.find(symbols[i]!, symbols[i + 1]!);
  return count <= SCAN_SYMBOLS
    ? mergeByScan(merges, symbols, count, scratch.found)
    : mergeByHeap(merges, symbols, count, scratch);
}

function mergeByScan({ find, rank, result }: Merges, symbols: Int32Array, length: number, found: Int32Array): number {
  for (let count = length; ;) {
    let best = NEVER;
    let at = -1;
    for (let i = 0; i + 1 < count; i++) {
      const merge = found[i]!;
      if (merge >= 0 && rank[merge]! < best) {
        best = rank[merge]!;
        at = i;
      }
    }
    if (at < 0) return count;
    symbols[at] = result[found[at]!]!;
    count--;
    for (let i = at + 1; i < count; i++) {
      symbols[i] = symbols[i + 1]!;
      found[i] = found[i + 1]!;
    }
    if (at > 0) found[at - 1] = find(symbols[at - 1]!, symbols[at]!);
    if (at + 1 < count) found[at] = find(symbols[at]!, symbols[at + 1]!);
  }
}

/** A heap entry is outdated if the pair at its position has another rank now. */
function mergeByHeap(merges: Merges, symbols: Int32Array, count: number, scratch: MergeScratch): number {
  const { rank, result } = merges;
  const { found, previous, next, heap } = scratch;
  let size = 0;
  found[count - 1] = -1;
  for (let i = 0; i < count; i++) {
    previous[i] = i - 1;
    next[i] = i + 1 < count ? i + 1 : -1;
    if (found[i]! >= 0) heap[size++] = rank[found[i]!]! * MAX_SYMBOLS + i;
  }
  heap.subarray(0, size).sort(); // a sorted array is a heap
  while (size > 0) {
    const key = heap[0]!;
    siftDown(heap, --size);
    const at = key % MAX_SYMBOLS;
    const merge = found[at]!;
    if (merge < 0 || rank[merge]! * MAX_SYMBOLS + at !== key) continue;
    const right = next[at]!;
    const after = next[right]!;
    const before = previous[at]!;
    symbols[at] = result[merge]!;
    found[right] = -1;
    symbols[right] = -1;
    next[at] = after;
    found[at] = -1;
    if (after >= 0) {
      previous[after] = at;
      size = offer(merges, symbols, at, after, scratch, size);
    }
    if (before >= 0) size = offer(merges, symbols, before, at, scratch, size);
  }
  let kept = 0;
  for (let i = 0; i >= 0; i = next[i]!) symbols[kept++] = symbols[i]!;
  return kept;
}

/** Looks a pair up, records the merge and puts it on the heap. Returns the heap's new size. */
function offer(
  { find, rank }: Merges,
  symbols: Int32Array,
  left: number,
  right: number,
  { found, heap }: MergeScratch,
  size: number,
): number {
  const merge = find(symbols[left]!, symbols[right]!);
  found[left] = merge;
  if (merge < 0) return size;
  const key = rank[merge]! * MAX_SYMBOLS + left;
  let at = size;
  while (at > 0) {
    const parent = (at - 1) >> 1;
    if (heap[parent]! <= key) break;
    heap[at] = heap[parent]!;
    at = parent;
  }
  heap[at] = key;
  return size + 1;
}

/** Removes the first entry of a heap, which has `size` entries afterwards. */
function siftDown(heap: Float64Array, size: number): void {
  const key = heap[size]!;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= size) break;
    if (child + 1 < size && heap[child + 1]! < heap[child]!) child++;
    if (heap[child]! >= key) break;
    heap[at] = heap[child]!;
    at = child;
  }
  heap[at] = key;
}
