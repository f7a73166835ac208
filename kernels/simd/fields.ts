/** The fields of a pass's header and of each op's record, and the meaning of their numbers. */
export const SIZES = { i32: 4, u32: 4, f32: 4, i64: 8, u64: 8 } as const;
export type Scalar = keyof typeof SIZES;
/** Fields in order, each with its type; `matrix` is a nested one. */
export type Fields = Readonly<Record<string, Scalar | "matrix" | readonly ["matrix", number]>>;

/** The rows that an op works on. */
export const ROWS = {
  /** All rows of the pass. */
  all: 0,
  /** The rows that `take` has selected. */
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
  elu: 9,
} as const;
/** Scores of experts: `Routing` of step.ts. */
export const SCORES = { softmax: 0, sigmoid: 1, softmax_chosen: 2, sqrt_softplus: 3 } as const;
/** Formats of the KV cache. */
export const KV_TYPES = { f32: 0, f16: 1, q8_0: 2, q4_0: 3 } as const;
/** Features of a processor beyond a library's build target; bits. */
export const FEATURES = { avxvnni: 1, i8mm: 2, halves: 4, amx: 8 } as const;
/** Placeholder for an address: the result of the pass, whose address is in the header. */
export const RESULT = 1;

export const MATRIX = {
  data: "u64", // address of the first row, of the first matrix of a stack
  scales: "u64", // f32 (experts), a factor on each matrix; 0: none
  bias: "u64", // f32 (rows); 0: none
  out: "u64", // f32 (tokens, outDim)
  rowBytes: "i64",
  expertBytes: "i64",
  rows: "i32",
  type: "i32", // ggml's id
  outDim: "i32",
  pad: "i32",
  grid: "u64", // grid of a type whose blocks reference points
} as const satisfies Fields;

/** The common beginning of records. */
export const HEAD = {
  kind: "i32",
  rowSet: "i32",
  perRow: "i32", // rows of the op per row of its row set: experts used, or 1
  joined: "i32", // number of following records that the same thread runs on the same rows
  next: "u64", // stamp << 32 | chunks claimed
  done: "u64", // stamp << 32 | chunks finished
} as const satisfies Fields;

/** The header of a pass: everything that changes between passes. A thread works on its own copy. */
export const PASS = {
  stamp: "u32", // number of the pass; 0 while the rest is being written
  threads: "i32",
  ops: "u64", // records of RECORD_BYTES
  opCount: "i32",
  spin: "i32", // checks of a counter before a thread sleeps
  wake: "i32", // counts finished ops; sleepers wait for a change
  sleepers: "i32",
  waitOn: "u64", // address of the system's function, as pass.h declares it; 0: threads do not sleep; unused on Linux
  wakeAll: "u64", // address of the function that wakes them
  scratch: "u64",
  scratchBytes: "i64", // per thread
  rows: "i32",
  decodeRows: "i32", // the first rows are decode rows: one token each
  wanted: "i32",
  wantedDecode: "i32",
  blockCount: "i32",
  slot: "i32", // for a context shift, like the three fields after it
  keep: "i32",
  discard: "i32",
  length: "i32",
  features: "i32", // `FEATURES`
  tokens: "u64", // i32 (rows)
  slots: "u64", // i32 (rows)
  cells: "u64", // i32 (rows): cell of a row's keys and values in its slot
  starts: "u64", // i32 (rows): the first cell of a row's span, or its own
  ends: "u64", // i32 (rows): the cell after the last one of a row's span, or after its own
  positions: "u64", // i32 (rows, 3): time, height, width
  scratchRows: "u64", // i32 (rows): scratch row for uncached keys
  input: "u64", // f32 (rows, dim): initial rows given as vectors
  wantedRows: "u64", // i32 (wanted)
  blocks: "u64", // i32 (blockCount, 4): first row, number of rows; scratch row of their sequence, its length
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

/** One record per op. An address of 0 means absent. */
export const RECORDS = {
  /** vectorToken: token whose row replaces vectors of vectorDim; −1: the vector itself; −2: zeros. */
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
  /** Rows of (tokens, n) floats by token. */
  lookup: { values: "u64", out: "u64", tokens: "i32", n: "i32" },
  /** Over each of `runs` runs of a row. Run i uses row i of `weightRows` weights, cyclically; 0: no weights. */
  rmsNorm: { ...NORM, sum: "i32" },
  layerNorm: { ...NORM, bias: "u64" },
  pack: { x: "u64", packed: "u64", n: "i32" },
  /** Prompt rows as 16-bit integers; decode rows, which are multiplied as floats, are skipped. */
  packWords: { x: "u64", words: "u64", n: "i32" },
  /** y = W · x + b for up to three matrices with one input, or for the experts that `group` has counted. */
  linear: {
    x: "u64",
    packed: "u64",
    words: "u64", // for float weights; 0: prompts are multiplied as floats
    groups: "u64",
    n: "i32",
    count: "i32",
    accumulate: "i32",
    floats: "i32",
    inputPerRow: "i32", // inputs per row: 1, or one per expert
    matrices: ["matrix", 3],
  },
  rope: {
    x: "u64",
    cos: "u64", // f32 (positions, rotaryDim / 2)
    sin: "u64",
    axes: "u64", // i32 (rotaryDim / 2): which of three positions rotates a pair; 0: the first rotates all
    dim: "i32",
    heads: "i32",
    headDim: "i32",
    at: "i32", // first value of a head that rotates
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
    valueStride: "i32", // distance of v's heads
    ctxLen: "i32",
    kept: "i32",
    type: "i32",
    ratio: "i32", // every position but the last of each `ratio` stores nothing; 0: each stores its value
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
    spans: "i32", // 1: rows of a span attend to all of it, and without a cache to nothing else
    scale: "f32",
    softCap: "f32",
    type: "i32",
    sinks: "u64", // f32 (heads)
    slopes: "u64", // f32 (heads)
    biases: "u64", // f32 (heads, 2 · far + 1): parts of scores by distance
    far: "i32",
    lengths: "u64", // i32 (rows): number of positions that a row attends to; 0: the pass's `kept` rule decides
    chosen: "u64", // i32 (rows, groups, chosenCount): blocks that a row attends to, ascending, then −1; 0: all
    chosenCount: "i32",
    chosenBlock: "i32", // positions of a block
    chosenGroups: "i32", // 1, or kvHeads
    ratio: "i32", // positions of an entry, which is the value of the last of them; keys are values, too. 0: no entries
    ownKeys: "u64", // f32 (rows, kvHeads · headDim): a row reads its own key here and not in the cache; 0: in the cache
    ownValues: "u64", // f32 (rows, kvHeads · valueDim)
  },
  /** Scores of blocks of positions; each of `spans` spans of a row is a row of the op. Keys as of attention. */
  scorePositions: {
    q: "u64", // f32 (rows, heads · headDim)
    weights: "u64", // f32 (rows, heads): factors of max(q·k, 0) in one sum; 0: each head has its own scores
    keys: "u64",
    scores: "u64", // f32 (rows, groups, blocks)
    heads: "i32",
    headDim: "i32",
    ctxLen: "i32",
    type: "i32",
    block: "i32", // positions of a block
    blocks: "i32",
    spanBlocks: "i32",
    spans: "i32",
    closed: "i32", // 1: a whole block scores as its last position
  },
  /** The blocks with the largest scores, and the `local` last ones. */
  choosePositions: {
    scores: "u64",
    out: "u64", // i32 (rows, groups, count)
    groups: "i32",
    count: "i32",
    block: "i32",
    blocks: "i32",
    local: "i32",
    closed: "i32",
  },
  /** The `used` experts with the best scores, and the weights of their outputs. */
  route: {
    logits: "u64",
    bias: "u64", // f32 (experts), added to scores for the choice of experts
    given: "u64", // f32 (rows, used): experts that are chosen already; 0: none
    chosen: "u64",
    shares: "u64",
    experts: "i32",
    used: "i32",
    score: "i32",
    perExpert: "i32", // outputs of the router per expert
    groups: "i32", // groups of experts; 0: one
    groupsUsed: "i32",
    normalize: "i32",
    scale: "f32",
  },
  /** Each row times each of its shares. */
  weigh: { x: "u64", shares: "u64", out: "u64", n: "i32", used: "i32" },
  /**
   * Sorts the (row, expert) pairs by expert. groups: stamp << 32 | number of experts with pairs; for each of them i32
   * (expert, start of its pairs, decode pairs, prompt pairs); then the pairs. Each layer has its own, because late
   * threads read it.
   */
  group: { chosen: "u64", groups: "u64", experts: "i32", used: "i32" },
  combine: { x: "u64", shares: "u64", out: "u64", dim: "i32", used: "i32" },
  /** out = a ⊙ act(b); each value of b applies to n / narrow values of a. act −1: none */
  multiply: { a: "u64", b: "u64", out: "u64", n: "i32", narrow: "i32", act: "i32" },
  /** x ⊙= vector; each of its `narrow` values applies to n / narrow values of x. */
  multiplyVector: { x: "u64", vector: "u64", n: "i32", narrow: "i32" },
  matchLength: { x: "u64", like: "u64", n: "i32", likeN: "i32" },
  keepLargest: { x: "u64", n: "i32", factor: "f32" },
  clamp: { x: "u64", n: "i32", min: "f32", max: "f32" },
  /** Weights of hyper-connections in place; f32 scale (1 or 3) and base (n). */
  streamWeights: { x: "u64", scale: "u64", base: "u64", n: "i32", streams: "i32", iterations: "i32", eps: "f32" },
  /** Each of `outs` parts of `n` values is a weighted sum of `parts` parts of x. */
  mixParts: {
    x: "u64",
    weights: "u64", // f32 (rows, weightsN), from the first one of `at` on (parts, outs)
    out: "u64",
    n: "i32",
    parts: "i32",
    outs: "i32",
    weightsN: "i32",
    at: "i32",
  },
  slice: { x: "u64", out: "u64", heads: "i32", from: "i32", to: "i32", at: "i32" },
  /** Heads times a Hadamard matrix: `dim` values of each, filled up with zeros, of which `outDim` are wanted. */
  rotate: {
    x: "u64",
    out: "u64",
    n: "i32", // values of a row of x
    heads: "i32",
    stride: "i32", // distance of x's heads
    dim: "i32",
    filled: "i32",
    outDim: "i32",
  },
  join: { a: "u64", b: "u64", out: "u64", heads: "i32", first: "i32", second: "i32" },
  /** A separate matrix per head. */
  headLinear: { x: "u64", out: "u64", matrix: "matrix", n: "i32", heads: "i32", transposed: "i32" },
  /** State (slots, taps − 1, n). */
  causalConv: { x: "u64", out: "u64", state: "u64", weight: "u64", bias: "u64", n: "i32", taps: "i32", act: "i32" },
  /** State (slots, cells, 2 · width): x and gate of the last `cells` rows, each at its cell modulo `cells`. */
  compress: {
    x: "u64", // f32 (rows, width)
    gate: "u64",
    bias: "u64", // f32 (ratio, width)
    out: "u64", // f32 (rows, dim)
    state: "u64",
    dim: "i32",
    width: "i32", // dim, or 2 · dim: its first half belongs to the next block
    ratio: "i32",
    cells: "i32",
  },
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
    alphas: "i32", // per head: 1, or headDim
    repeat: "i32",
    scale: "f32",
    bound: "f32", // 0: none
  },
  /** State (slots, heads, headDim, headDim). */
  wkv: {
    r: "u64",
    w: "u64",
    k: "u64",
    v: "u64",
    a: "u64", // 0: nothing is subtracted
    b: "u64",
    out: "u64",
    state: "u64",
    heads: "i32",
    keyHeads: "i32",
    headDim: "i32",
    early: "i32",
    complement: "i32",
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
    decays: "i32", // per head: 1, or stateDim
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
  /** Context shift of one slot: its keys and values move down, and the keys are rotated back. */
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
