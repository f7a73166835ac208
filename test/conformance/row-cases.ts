/**
 * Rows with more than an id: vectors instead of embeddings, their own positions, bidirectional spans. Separate from the
 * other cases, because some backends accept ids only and say so.
 */
import type { Rows } from "../../src/engine/program/backend.ts";
import type { RopeScaling } from "../../src/engine/program/step.ts";
import { makeRng } from "../../src/engine/text/rng.ts";
import { attention, bidirectionalAttention, changed, linear, makeCase, plainRope, VOCAB, type Case } from "./draft.ts";
import { gaussian } from "./weights.ts";

const DIM = 32;
/** Rows of the longest span. */
const LONGEST = 700;

interface Given {
  readonly slot: number;
  readonly start: number;
  readonly count: number;
  /** Ranges of rows that are vectors. */
  readonly vectors?: readonly (readonly [first: number, end: number])[];
  readonly spans?: Rows["spans"];
  readonly positions?: (row: number) => readonly number[];
  readonly logits?: Rows["logits"];
  /** Length of a vector. */
  readonly dim?: number;
}

function given({ slot, start, count, vectors = [], spans, positions, logits = "all", dim = DIM }: Given): Rows {
  const rng = makeRng(slot * 100 + start + 1);
  const isVector = (row: number): boolean => vectors.some(([first, end]) => first <= row && row < end);
  const tokens = Int32Array.from({ length: count }, (_, i) =>
    isVector(i) ? -1 : (slot * 11 + (start + i) * 7 + 3) % VOCAB,
  );
  const values = tokens.filter((token) => token === -1).length * dim;
  return {
    slot,
    start,
    tokens,
    logits,
    ...(values > 0 && { vectors: Float32Array.from({ length: values }, () => gaussian(rng)) }),
    ...(positions && { positions: Int32Array.from(Array.from(tokens, (_, i) => positions(i)).flat()) }),
    ...(spans && { spans }),
  };
}

/** An image of 2 × 3 between texts: as models with three positions lay it out. */
const grid = (row: number): readonly number[] => {
  if (row < 2) return [row, row, row];
  if (row < 8) return [2, 2 + Math.floor((row - 2) / 3), 2 + ((row - 2) % 3)];
  return [row - 3, row - 3, row - 3];
};
const after = (start: number) => (row: number) => [start + row, start + row, start + row];

/** Text, an image, text; then a continuation together with other sequences, and one step of each. */
const imageBatches = (spans: boolean): Case["batches"] => [
  [
    given({
      slot: 0,
      start: 0,
      count: 10,
      vectors: [[2, 8]],
      positions: grid,
      ...(spans && { spans: [{ first: 2, end: 8 }] }),
    }),
  ],
  [
    given({
      slot: 1,
      start: 0,
      count: 7,
      vectors: [
        [0, 3],
        [5, 7],
      ],
    }),
    given({ slot: 0, start: 10, count: 1, positions: after(7), logits: "last" }),
  ],
  [
    given({ slot: 0, start: 11, count: 1, positions: after(8), logits: "last" }),
    given({ slot: 1, start: 7, count: 1, vectors: [[0, 1]], logits: "last" }),
  ],
  [
    given({ slot: 2, start: 0, count: 4, positions: (row) => [row + 3] }),
    given({ slot: 0, start: 12, count: 3, positions: after(9) }),
  ],
];

const sections = { pairs: [4, 3, 1], interleaved: false } as const;
const turns: readonly (readonly [string, RopeScaling])[] = [
  ["one position turns all pairs", plainRope],
  ["sections in runs", { ...plainRope, sections }],
  ["sections in runs, neox", { ...plainRope, style: "neox", sections }],
  ["sections in turn, neox", { ...plainRope, style: "neox", sections: { pairs: [3, 3, 2], interleaved: true } }],
];

/** All of them, for models with an image encoder. */
export const rowCases = (): Case[] =>
  makeRowCases().map((each) => ({ ...each, options: { ...each.options, images: { twoWayRows: LONGEST } } }));

const makeRowCases = (): Case[] => [
  ...turns.flatMap(([name, rope]) =>
    [false, true].map((spans) =>
      makeCase(
        `rows: vectors among ids, ${name}${spans ? ", an image that sees both ways" : ""}`,
        sizes(spans),
        (draft) => attention(draft, { nHeads: 4, nKvHeads: 2, headDim: 16, rope }),
      ),
    ),
  ),
  ...(
    [
      ["a window of 3", { window: 3 }],
      ["chunks of 4", { window: 4, chunked: true }],
      ["distances that cost", { alibi: 8 }],
      ["sinks", { sinks: true }],
      ["but for this step", { oneWay: true }],
    ] as const
  ).map(([name, options]) =>
    makeCase(`rows: a span that sees both ways, ${name}`, sizes(true), (draft) =>
      attention(draft, { nHeads: 4, nKvHeads: 2, headDim: 16, ...options }),
    ),
  ),
  makeCase("rows: a span longer than a pass, between texts", { dim: DIM, ctxLen: 760, batches: longSpan() }, (draft) =>
    attention(draft, { nHeads: 2, nKvHeads: 1, headDim: 16, rope: plainRope }),
  ),
  makeCase("rows: vectors under an embedding with a change of low rank", sizes(false), (draft) => {
    const [embed] = draft.steps;
    if (embed?.op !== "embed") throw new Error("it begins with an embedding");
    draft.steps[0] = { ...embed, scale: 1.5, table: changed(draft, embed.table) };
    return linear(draft, draft.matrix({ inDim: DIM, outDim: 8 }));
  }),
  makeCase("rows: a second table beside vectors", sizes(false), (draft) => {
    const more = { name: "more", dim: DIM };
    const table = draft.matrix({ inDim: DIM, outDim: VOCAB, quant: "q8_0", size: 1 });
    draft.steps.push(
      { op: "embed", out: more, table, scale: 0.5, vectorToken: 3 },
      { op: "add", out: draft.x, a: draft.x, b: more, scale: 1 },
    );
    return draft.x;
  }),
  makeCase(
    "rows: vectors wider than an embedding, of which later steps add parts",
    {
      dim: DIM,
      ctxLen: 16,
      batches: [
        [
          given({
            slot: 1,
            start: 0,
            count: 7,
            vectors: [
              [1, 4],
              [6, 7],
            ],
            dim: 3 * DIM,
          }),
        ],
      ],
    },
    ({ x, steps }) => {
      steps.push({ op: "addGiven", x, at: 2 * DIM }, { op: "scale", x, by: 0.5 }, { op: "addGiven", x, at: DIM });
      return x;
    },
  ),
  makeCase(
    "rows: of an encoder, spans that see nothing else",
    { dim: DIM, ctxLen: 40, batches: encoderSpans() },
    (draft) => bidirectionalAttention(draft, { nHeads: 4, headDim: 16, inSpans: true }),
  ),
  makeCase("rows: positions of a learned table, and of a scale", sizes(false), (draft) => {
    draft.steps.push({ op: "addPosition", x: draft.x, table: draft.matrix({ inDim: DIM, outDim: 16, size: 1 }) });
    const positionScale = { coef: 0.4, floorScale: 3, offset: 1 };
    return attention(draft, { nHeads: 4, nKvHeads: 2, headDim: 16, positionScale });
  }),
];

function sizes(spans: boolean): { dim: number; ctxLen: number; batches: Case["batches"] } {
  return { dim: DIM, ctxLen: 16, batches: imageBatches(spans) };
}

/** Spans of several sizes with rows outside of spans between them, no span at all, and spans that see others. */
function encoderSpans(): Case["batches"] {
  const spans = [
    { first: 0, end: 17 },
    { first: 18, end: 20 },
    { first: 22, end: 40 },
  ];
  const elsewhere = [
    { first: 0, end: 2, seen: { first: 3, end: 9 } },
    { first: 3, end: 9 },
    { first: 9, end: 12, seen: { first: 0, end: 9 } },
  ];
  return [
    [given({ slot: 0, start: 0, count: 40, spans }), given({ slot: 1, start: 0, count: 5 })],
    [given({ slot: 2, start: 0, count: 12, spans: elsewhere })],
  ];
}

/** Spans that end with a pass, begin before its end, and are longer than a pass. */
function longSpan(): Case["batches"] {
  return [
    [
      given({ slot: 0, start: 0, count: 40, logits: "none" }),
      given({
        slot: 1,
        start: 0,
        count: 700,
        vectors: [[500, 540]],
        spans: [
          { first: 0, end: 20 },
          { first: 460, end: 540 },
        ],
        logits: "last",
      }),
    ],
    [
      given({
        slot: 2,
        start: 0,
        count: 740,
        vectors: [[20, 720]],
        spans: [{ first: 20, end: 20 + LONGEST }],
        logits: "last",
      }),
    ],
    [
      given({ slot: 2, start: 740, count: 1, logits: "last" }),
      given({ slot: 1, start: 700, count: 2, logits: "last" }),
    ],
  ];
}
