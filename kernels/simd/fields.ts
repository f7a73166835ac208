/** The fields of the header of a pass and of the record of each op, and what their numbers mean. */
export const SIZES = { i32: 4, u32: 4, f32: 4, i64: 8, u64: 8 } as const;
export type Scalar = keyof typeof SIZES;
/** Fields in order, each with its type; `matrix` is a nested one. */
export type Fields = Readonly<Record<string, Scalar | "matrix" | readonly ["matrix", number]>>;

/** Which rows an op works on. */
export const ROWS = {
  /** All of the pass. */
  all: 0,
  /** Those that `take` has picked. */
  wanted: 1,
} as const;

/** Activations of MLPs: `Gating` of step.ts. */
export const ACTS = {
  silu: 0,
  gelu: 1,
  gelu_erf: 2,
  relu: 3,
  relu_sqr: 4,
  sigmoid: 5,
  tanh: 6,
  swiglu_oai: 7,
  softplus: 8,
} as const;
/** How experts are scored: `Routing` of step.ts. */
export const SCORES = { softmax: 0, sigmoid: 1, softmax_chosen: 2 } as const;
/** How the KV cache keeps its values. */
export const KV_TYPES = { f32: 0, f16: 1, q8_0: 2 } as const;
/** What a processor has beyond that for which a library is built, or does better; bits. */
export const FEATURES = { avxvnni: 1, i8mm: 2, halves: 4 } as const;
/** In place of an address: where the result of the pass goes, which the header says. */
export const RESULT = 1;

export const MATRIX = {
  data: "u64", // address of the first row, of the first matrix of a stack
  scales: "u64", // f32 (experts), a factor on each matrix; 0: none
  bias: "u64", // f32 (rows); 0: none
  out: "u64", // f32 (tokens, outDim)
  rowBytes: "i64",
  expertBytes: "i64",
  rows: "i32",
  type: "i32", // ggml's number
  outDim: "i32",
  pad: "i32",
  grid: "u64", // of a type whose blocks name points of one
} as const satisfies Fields;

/** What every record begins with. */
export const HEAD = {
  kind: "i32",
  rowSet: "i32",
  perRow: "i32", // how many rows the op has for each of its row set: experts used, or 1
  joined: "i32", // records behind this one whose rows are done along with it
  next: "u64", // stamp << 32 | chunks claimed
  done: "u64", // stamp << 32 | chunks finished
} as const satisfies Fields;

/** The header of a pass: all that changes between passes. A thread works on its own copy. */
export const PASS = {
  stamp: "u32", // number of the pass; 0 while the rest is being written
  threads: "i32",
  ops: "u64", // records of RECORD_BYTES
  opCount: "i32",
  spin: "i32", // looks at a counter before a thread sleeps
  wake: "i32", // counts ops that were finished; sleepers wait for it to change
  sleepers: "i32",
  waitOn: "u64", // address of the system's function, as pass.h declares it; 0: threads do not sleep; unused on Linux
  wakeAll: "u64", // address of the function that wakes them
  scratch: "u64",
  scratchBytes: "i64", // of each thread
  rows: "i32",
  decodeRows: "i32", // the first rows are one token each of a sequence that goes on
  wanted: "i32",
  wantedDecode: "i32",
  blockCount: "i32",
  slot: "i32", // of a context shift, with the three behind it
  keep: "i32",
  discard: "i32",
  length: "i32",
  features: "i32", // `FEATURES`
  tokens: "u64", // i32 (rows)
  slots: "u64", // i32 (rows)
  cells: "u64", // i32 (rows): where the keys and values of a row lie in its slot
  starts: "u64", // i32 (rows): the first cell of a row's span, or its own
  ends: "u64", // i32 (rows): the cell behind the last one of a row's span, or behind its own
  positions: "u64", // i32 (rows, 3): time, height, width
  places: "u64", // i32 (rows): where the keys of a row go that are not kept
  input: "u64", // f32 (rows, dim): what rows begin with that are given as vectors
  wantedRows: "u64", // i32 (wanted)
  blocks: "u64", // i32 (blockCount, 4): first row, rows; the place of their sequence, its length
  result: "u64",
} as const satisfies Fields;

const NORM = {
  x: "u64",
  out: "u64",
  weight: "u64",
  packed: "u64",
  n: "i32",
  runs: "i32",
  weightRows: "i32",
  eps: "f32",
} as const satisfies Fields;

/** One record per op. An address of 0 is a part that is not there. */
export const RECORDS = {
  /** vectorToken: whose row those get that are given as vectors of vectorDim; −1: that vector; −2: zeros. */
  embed: {
    table: "matrix",
    out: "u64",
    dim: "i32",
    vocab: "i32",
    scale: "f32",
    vectorToken: "i32",
    vectorDim: "i32",
  },
  input: { out: "u64", dim: "i32" },
  /** Over each of `runs` runs of a row. Run i has row i of `weightRows` weights, again from the first; 0: none. */
  rmsNorm: { ...NORM, sum: "i32" },
  layerNorm: { ...NORM, bias: "u64" },
  pack: { x: "u64", packed: "u64", n: "i32" },
  /** Rows of prompts as 16-bit integers; those of decode, which are multiplied as floats, are left out. */
  packWords: { x: "u64", words: "u64", n: "i32" },
  /** y = W · x + b for up to three matrices of one input, or of the experts that `group` has counted. */
  linear: {
    x: "u64",
    packed: "u64",
    words: "u64", // of float weights; 0: their prompts are multiplied as floats
    groups: "u64",
    n: "i32",
    count: "i32",
    accumulate: "i32",
    floats: "i32",
    inputPerRow: "i32", // inputs of each row: 1, or one for each of its experts
    matrices: ["matrix", 3],
  },
  rope: {
    x: "u64",
    cos: "u64", // f32 (positions, rotaryDim / 2)
    sin: "u64",
    axes: "u64", // i32 (rotaryDim / 2): which of three positions turns a pair; 0: the first turns all
    dim: "i32",
    heads: "i32",
    headDim: "i32",
    rotaryDim: "i32",
    neox: "i32",
    positions: "i32",
  },
  store: {
    k: "u64",
    v: "u64",
    keys: "u64",
    values: "u64",
    heads: "i32",
    headDim: "i32",
    valueDim: "i32",
    valueStride: "i32", // from one head of v to the next
    ctxLen: "i32",
    kept: "i32",
    type: "i32",
  },
  attend: {
    q: "u64",
    out: "u64",
    keys: "u64",
    values: "u64",
    heads: "i32",
    kvHeads: "i32",
    headDim: "i32",
    ctxLen: "i32",
    kept: "i32", // 1: causal, over the cache of a slot; 0: over all rows of the sequence in this pass
    valueDim: "i32",
    window: "i32",
    chunked: "i32",
    spans: "i32", // 1: rows of a span see all of it; of keys that are not kept, nothing else
    scale: "f32",
    softCap: "f32",
    type: "i32",
    sinks: "u64", // f32 (heads)
    slopes: "u64", // f32 (heads)
  },
  /** The `used` experts with the best scores, and the weights of what they say. */
  route: {
    logits: "u64",
    bias: "u64", // f32 (experts), added to scores where experts are chosen
    chosen: "u64",
    shares: "u64",
    experts: "i32",
    used: "i32",
    score: "i32",
    perExpert: "i32", // outputs of the router that stand for one expert
    groups: "i32", // of experts; 0: all in one
    groupsUsed: "i32",
    normalize: "i32",
    scale: "f32",
  },
  /** Each row times each of its shares. */
  weigh: { x: "u64", shares: "u64", out: "u64", n: "i32", used: "i32" },
  /**
   * Sorts the (row, expert) pairs by expert. groups: stamp << 32 | experts that have some, of each of those i32
   * (expert, where its pairs begin, of decode, of prompts), then the pairs. Each layer has its own, as late threads
   * look there.
   */
  group: { chosen: "u64", groups: "u64", experts: "i32", used: "i32" },
  combine: { x: "u64", shares: "u64", out: "u64", dim: "i32", used: "i32" },
  /** out = a ⊙ act(b); each value of b meets n / narrow of a. act −1: none */
  multiply: { a: "u64", b: "u64", out: "u64", n: "i32", narrow: "i32", act: "i32" },
  /** x ⊙= vector; each of its `narrow` values meets n / narrow of x. */
  multiplyVector: { x: "u64", vector: "u64", n: "i32", narrow: "i32" },
  matchLength: { x: "u64", like: "u64", n: "i32", likeN: "i32" },
  keepLargest: { x: "u64", n: "i32", factor: "f32" },
  clamp: { x: "u64", n: "i32", min: "f32", max: "f32" },
  slice: { x: "u64", out: "u64", heads: "i32", from: "i32", to: "i32", at: "i32" },
  join: { a: "u64", b: "u64", out: "u64", heads: "i32", first: "i32", second: "i32" },
  /** Each head by a matrix of its own. */
  headLinear: { x: "u64", out: "u64", matrix: "matrix", n: "i32", heads: "i32", transposed: "i32" },
  /** State (slots, taps − 1, n). */
  causalConv: { x: "u64", out: "u64", state: "u64", weight: "u64", bias: "u64", n: "i32", taps: "i32", act: "i32" },
  /** State (slots, heads, headDim, headDim). */
  deltaRule: {
    q: "u64",
    k: "u64",
    v: "u64",
    alpha: "u64",
    beta: "u64",
    a: "u64",
    dt: "u64",
    out: "u64",
    state: "u64",
    heads: "i32",
    keyHeads: "i32",
    headDim: "i32",
    alphas: "i32", // of each head: 1, or headDim
    repeat: "i32",
    scale: "f32",
    bound: "f32", // 0: none
  },
  /** State (slots, heads, headDim, stateDim). */
  selectiveScan: {
    x: "u64",
    dt: "u64",
    dtBias: "u64",
    b: "u64",
    c: "u64",
    a: "u64",
    d: "u64",
    out: "u64",
    state: "u64",
    heads: "i32",
    headDim: "i32",
    stateDim: "i32",
    groups: "i32",
    decays: "i32", // of each head: 1, or stateDim
  },
  /** act(gate) ⊙ up, limited where the limits are above 0. */
  gate: {
    gate: "u64",
    up: "u64",
    out: "u64",
    packed: "u64",
    n: "i32",
    act: "i32",
    gateMax: "f32",
    upMax: "f32",
  },
  add: { a: "u64", b: "u64", out: "u64", n: "i32", scale: "f32" },
  addVector: { x: "u64", vector: "u64", n: "i32" },
  addGiven: { x: "u64", n: "i32", at: "i32", vectorDim: "i32" },
  addPosition: { x: "u64", table: "matrix", n: "i32" },
  positionScale: { x: "u64", n: "i32", coef: "f32", floorScale: "f32", offset: "f32" },
  softCap: { x: "u64", n: "i32", cap: "f32" },
  scale: { x: "u64", n: "i32", by: "f32" },
  take: { x: "u64", out: "u64", n: "i32" },
  /** Context shift of one slot: its keys and values move down, the keys turned back. */
  shift: {
    keys: "u64",
    values: "u64",
    cos: "u64",
    sin: "u64",
    heads: "i32",
    headDim: "i32",
    ctxLen: "i32",
    rotaryDim: "i32",
    neox: "i32",
    type: "i32",
    valueDim: "i32",
  },
} as const satisfies Readonly<Record<string, Fields>>;
