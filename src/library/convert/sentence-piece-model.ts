/**
 * Reads `tokenizer.model`, SentencePiece's protobuf: the pieces and a few settings. Every length is checked against the
 * remaining bytes. Messages: sentencepiece_model.proto; wire format: protobuf's encoding guide.
 */
import { AppError } from "../../base/index.ts";
import { BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED, type Vocabulary } from "./vocabulary.ts";

/** Four times the largest published vocabulary. */
const PIECES_MAX = 2 ** 20;
const PIECE_BYTES_MAX = 65_536;

/** TrainerSpec.ModelType */
const UNIGRAM = 1;
const BPE = 2;

interface SentencePieceModel extends Vocabulary {
  readonly addDummyPrefix: boolean;
  /** From TrainerSpec; undefined if the model has none. */
  readonly bos: number | undefined;
  readonly eos: number | undefined;
  readonly unknown: number | undefined;
  readonly padding: number | undefined;
}

/** A field of a message: a number of any width, or bytes. */
interface Field {
  readonly number: number;
  readonly value: number | Uint8Array;
}

/** Wire types. */
const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

/** SentencePiece.Type equals GGUF's token type; files omit NORMAL, the default. */
const TYPES = [NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE];

/** Throws `bad_file` for an invalid model, and `unsupported` for one that was not trained by merging pairs. */
export function parseSentencePieceModel(bytes: Uint8Array, label: string): SentencePieceModel {
  const pieces: string[] = [];
  const scores: number[] = [];
  const types: number[] = [];
  let trainer = new Map<number, number | Uint8Array>();
  let normalizer = new Map<number, number | Uint8Array>();
  for (const { number, value } of fieldsOf(bytes, label)) {
    if (typeof value === "number") continue;
    if (number === 1) {
      if (pieces.length === PIECES_MAX) throw wrong(label, `at most ${PIECES_MAX} pieces`, "more");
      const { piece, score, type } = parsePiece(value, label, pieces.length);
      pieces.push(piece);
      scores.push(score);
      types.push(type);
    } else if (number === 2) trainer = lastOf(value, label);
    else if (number === 3) normalizer = lastOf(value, label);
  }
  if (pieces.length === 0) throw wrong(label, "pieces of a vocabulary", "none");
  checkModelType(trainer, label);
  const id = (field: number, fallback: number): number | undefined => {
    const found = signed(trainer.get(field) ?? fallback);
    return found >= 0 && found < pieces.length ? found : undefined;
  };
  return {
    pieces,
    scores,
    types,
    addDummyPrefix: (normalizer.get(3) ?? 1) !== 0,
    unknown: id(40, 0),
    bos: id(41, 1),
    eos: id(42, 2),
    padding: id(43, -1),
  };
}

const wrong = (label: string, expected: string, got: unknown): AppError =>
  new AppError("bad_file", `${label}: 'tokenizer.model': expected ${expected}, got ${String(got)}`);

function checkModelType(trainer: ReadonlyMap<number, unknown>, label: string): void {
  const type = trainer.get(3) ?? UNIGRAM;
  if (type === BPE) return;
  const got = type === UNIGRAM ? "Unigram" : `type ${String(type)}`;
  throw new AppError("unsupported", `${label}: 'tokenizer.model': expected a BPE model, got ${got}`);
}

/** A negative int32 is written as 64 bits. */
function signed(value: number | Uint8Array): number {
  if (typeof value !== "number") return -1;
  return value >= 2 ** 31 ? -1 : value;
}

function parsePiece(bytes: Uint8Array, label: string, index: number): { piece: string; score: number; type: number } {
  const fields = lastOf(bytes, label);
  const text = fields.get(1);
  if (!(text instanceof Uint8Array) || text.length > PIECE_BYTES_MAX) {
    throw wrong(label, `piece ${index} as text of at most ${PIECE_BYTES_MAX} bytes`, typeof text);
  }
  const bits = fields.get(2) ?? 0;
  const score = typeof bits === "number" ? floatOf(bits) : NaN;
  const type = fields.get(3) ?? NORMAL;
  if (!Number.isFinite(score)) throw wrong(label, `a score of piece ${index}`, score);
  if (typeof type !== "number" || !TYPES.includes(type)) throw wrong(label, `a type of piece ${index}`, type);
  return { piece: new TextDecoder().decode(text), score, type };
}

function floatOf(bits: number): number {
  return new Float32Array(Uint32Array.of(bits).buffer)[0]!; // one word makes one float
}

/** Fields by number; the last one of repeated fields. */
function lastOf(bytes: Uint8Array, label: string): Map<number, number | Uint8Array> {
  const fields = new Map<number, number | Uint8Array>();
  for (const { number, value } of fieldsOf(bytes, label)) fields.set(number, value);
  return fields;
}

/** The fields of a message in order. Throws `bad_file` if it ends within one. */
function* fieldsOf(bytes: Uint8Array, label: string): Generator<Field, void, void> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const take = (length: number): number => {
    if (length > bytes.length - at) throw wrong(label, `${length} bytes at ${at}`, bytes.length - at);
    at += length;
    return at - length;
  };
  /** Only negative numbers have bits beyond 2⁵³; their lowest bits are lost, and the size marks them as negative. */
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = bytes[take(1)]!;
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
    throw wrong(label, `a number of at most ten bytes at ${at}`, "more");
  };
  while (at < bytes.length) {
    const tag = varint();
    const number = Math.floor(tag / 8);
    if (number < 1 || number >= 2 ** 29) throw wrong(label, `a field number at ${at}`, number);
    switch (tag % 8) {
      case VARINT:
        yield { number, value: varint() };
        break;
      case FIXED64:
        yield { number, value: view.getFloat64(take(8), true) };
        break;
      case BYTES: {
        const length = varint();
        const start = take(length);
        yield { number, value: bytes.subarray(start, start + length) };
        break;
      }
      case FIXED32:
        yield { number, value: view.getUint32(take(4), true) };
        break;
      default:
        throw wrong(label, `a wire type of 0, 1, 2 or 5 at ${at}`, tag % 8);
    }
  }
}
