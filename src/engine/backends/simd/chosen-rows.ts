/**
 * The adapters that the rows of a pass have chosen, as tables for kernels: for each list of adapters whose changes are
 * stacked, the rows of each adapter, as `group` makes them for experts, and the scale of each row. A row that has
 * chosen several adapters of a list takes part in several rounds.
 */
import { ROWS } from "../../../../kernels/simd/layout.ts";
import type { RowAdapter } from "../../program/backend.ts";
import type { Memory } from "./memory.ts";
import type { PassRows } from "./rows.ts";

/** Adapters by row. */
type Chosen = readonly (readonly RowAdapter[])[];

/** Addresses of the tables of one list of adapters. */
export interface ChosenTables {
  /** Like the groups of experts: `group` in fields.ts. */
  readonly groups: number;
  /** f32 (rows): the scale of the row's adapter, or 0. */
  readonly scales: number;
}

export interface ChosenRows {
  /** The largest number of adapters that a row may have chosen. */
  readonly rounds: number;
  /** @param members the adapters of a stack, in its order */
  tables(members: readonly number[], at: { readonly rowSet: number; readonly round: number }): ChosenTables;
  /** Fills all tables for the pass of that number. */
  fill(rows: PassRows, stamp: number): void;
}

/** Words of a table of groups before its entries: the stamp and the number of groups. */
const HEAD_WORDS = 2;
/** Words of an entry: adapter, start of its rows, decode rows, prompt rows. */
const ENTRY_WORDS = 4;

/** The largest number of adapters of a row; 0: the pass needs no tables. */
export const roundsOf = ({ adapters = [] }: PassRows): number =>
  adapters.reduce((most, { length }) => Math.max(most, length), 0);

/** @param maxRows of a pass */
export function makeChosenRows(memory: Memory, { maxRows, rounds }: { maxRows: number; rounds: number }): ChosenRows {
  const known = new Map<string, Table>();
  return {
    rounds,
    tables(members, { rowSet, round }) {
      const key = `${members.join(",")} ${rowSet} ${round}`;
      const found = known.get(key) ?? makeTable(memory, { members, rowSet, round, maxRows });
      known.set(key, found);
      return found;
    },
    fill(rows, stamp) {
      const all = rows.adapters ?? [];
      const wanted = Array.from(rows.wanted, (row) => all[row] ?? []);
      for (const table of known.values()) {
        if (table.rowSet === ROWS.all) table.fill(all, rows.decodeRows, stamp);
        else table.fill(wanted, rows.wantedDecode, stamp);
      }
    },
  };
}

interface Table extends ChosenTables {
  readonly rowSet: number;
  fill(chosen: Chosen, decodeRows: number, stamp: number): void;
}

interface TableOptions {
  readonly members: readonly number[];
  readonly rowSet: number;
  readonly round: number;
  readonly maxRows: number;
}

function makeTable(memory: Memory, { members, rowSet, round, maxRows }: TableOptions): Table {
  const start = HEAD_WORDS + ENTRY_WORDS * members.length;
  const groupBlock = memory.allocate((start + maxRows) * 4, "adapters' rows");
  const scaleBlock = memory.allocate(maxRows * 4, "adapters' scales");
  const groups = new Int32Array(groupBlock.view.buffer, groupBlock.view.byteOffset, start + maxRows);
  const scales = new Float32Array(scaleBlock.view.buffer, scaleBlock.view.byteOffset, maxRows);
  return {
    groups: groupBlock.address,
    scales: scaleBlock.address,
    rowSet,
    fill(chosen, decodeRows, stamp) {
      // A late thread of an earlier pass may read the first two words: it must not combine its own stamp with a new
      // count.
      Atomics.store(groups, 0, 0);
      Atomics.store(groups, 1, stamp);
      const rowsOf = members.map((): number[] => []);
      for (const [row, adapters] of chosen.entries()) {
        const { adapter, scale } = adapters.filter((each) => members.includes(each.adapter))[round] ?? { scale: 0 };
        scales[row] = scale;
        if (adapter !== undefined) rowsOf[members.indexOf(adapter)]!.push(row);
      }
      let [active, next] = [0, start];
      for (const [index, rows] of rowsOf.entries()) {
        if (rows.length === 0) continue;
        const decode = rows.filter((row) => row < decodeRows).length;
        groups.set([index, next, decode, rows.length - decode], HEAD_WORDS + ENTRY_WORDS * active++);
        groups.set(rows, next);
        next += rows.length;
      }
      Atomics.store(groups, 0, active);
    },
  };
}
