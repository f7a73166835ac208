/**
 * The export file of a gateway's database: lines of JSON. The first is a header, then come rows, table by table, and
 * the last has their counts: a file without it is incomplete.
 */
import { closeSync, openSync, readSync } from "node:fs";
import { Type, type Static } from "@sinclair/typebox";
import { AppError, messageOf } from "../../../base/index.ts";
import { reader, type Reader } from "../../../base/schema.ts";
import type { Value } from "../../database/store.ts";

export const FORMAT = "hearth-gateway-1";

/** The longest row is a webhook with its body, in base64. */
const LINE_BYTES_MAX = 256 * 1024 * 1024;
const CHUNK_BYTES = 1024 * 1024;

const TransferHead = Type.Object({ format: Type.Literal(FORMAT), version: Type.String(), at: Type.String() });
const Cell = Type.Union([Type.String(), Type.Number(), Type.Null(), Type.Object({ base64: Type.String() })]);
const Row = Type.Object({ table: Type.String(), row: Type.Record(Type.String(), Cell) });
const numbers = () => Type.Record(Type.String(), Type.Integer({ minimum: 0 }));
const End = Type.Object({ counts: numbers(), last: numbers() });

export type TransferHead = Static<typeof TransferHead>;
export type Row = Static<typeof Row>;
export type End = Static<typeof End>;
type Cell = Static<typeof Cell>;

export const head = reader(TransferHead);
export const row = reader(Row);
export const end = reader(End);

export const toCell = (value: Value): Cell =>
  value instanceof Uint8Array ? { base64: Buffer.from(value).toString("base64") } : value;

export const fromCell = (cell: Cell): Value =>
  typeof cell === "object" && cell !== null ? new Uint8Array(Buffer.from(cell.base64, "base64")) : cell;

/** A line as JSON, with its number. */
export interface TransferLine {
  readonly number: number;
  readonly value: unknown;
}

/** All lines, read on demand. Throws `bad_file` naming file and line, `storage` if it cannot be read. */
export function* linesOf(path: string): Generator<TransferLine, void, void> {
  const file = open(path);
  try {
    let rest: Buffer[] = [];
    let length = 0;
    let number = 1;
    for (let chunk = read(file, path); chunk.length > 0; chunk = read(file, path)) {
      let from = 0;
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
        yield parse(Buffer.concat([...rest, chunk.subarray(from, at)]), { path, number: number++ });
        [rest, length, from] = [[], 0, at + 1];
      }
      rest.push(chunk.subarray(from));
      length += chunk.length - from;
      if (length > LINE_BYTES_MAX) throw badFile(path, number, `expected lines of at most ${LINE_BYTES_MAX} bytes`);
    }
    if (length > 0) throw badFile(path, number, "no end: the file is cut");
  } finally {
    closeSync(file);
  }
}

/** @param what found instead of an export */
export const badFile = (path: string, line: number, what: string): AppError =>
  new AppError("bad_file", `${path}:${line}: expected an export of a gateway, got ${what}`);

/** Throws `bad_file`. */
export function readAs<T>(schema: Reader<T>, { value, number }: TransferLine, path: string): T {
  const found = schema.safeParse(value);
  if (found.success) return found.data;
  const [problem] = found.problems;
  throw badFile(path, number, `${problem?.path.join(".") ?? ""}: ${problem?.message ?? "something else"}`);
}

function parse(bytes: Buffer, { path, number }: { path: string; number: number }): TransferLine {
  try {
    return { number, value: JSON.parse(bytes.toString("utf8")) };
  } catch (error) {
    throw badFile(path, number, `text that is not JSON (${messageOf(error)})`);
  }
}

function open(path: string): number {
  try {
    return openSync(path, "r");
  } catch (error) {
    throw new AppError("storage", `cannot read '${path}': ${messageOf(error)}`, { cause: error });
  }
}

function read(file: number, path: string): Buffer {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  try {
    return chunk.subarray(0, readSync(file, chunk));
  } catch (error) {
    throw new AppError("storage", `cannot read '${path}': ${messageOf(error)}`, { cause: error });
  }
}
