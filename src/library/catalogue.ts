/**
 * The catalogue: popular models of the public library with their sizes, as of a date. This module reads
 * `models/catalogue.json` and decides which models fit a machine.
 */
import { Type } from "@sinclair/typebox";
import { oneOfTexts, type Output, reader, strictObject } from "../base/schema.ts";

const CAPABILITIES = ["completion", "tools", "thinking", "vision", "embedding", "insert"] as const;
const PURPOSES = ["chat", "reasoning", "code", "vision", "embedding"] as const;

const bytes = Type.Integer({ minimum: 1 });
const text = Type.String({ minLength: 1, maxLength: 120 });

/** The fields that the API returns too. */
export const catalogueFields = {
  /** With its tag. */
  name: Type.String({ pattern: "^[a-z0-9][a-z0-9.-]*:[a-z0-9][a-z0-9.-]*$" }),
  title: text,
  description: text,
  purpose: oneOfTexts(PURPOSES),
  /** In the usual form: `4B`. */
  parameters: Type.String({ pattern: "^\\d+(\\.\\d+)?[MB]$" }),
  /** Approximate bytes of the download. */
  size: bytes,
  /** Approximate bytes in memory with 4,096 tokens of context. */
  memory: bytes,
  capabilities: Type.Array(oneOfTexts(CAPABILITIES), { minItems: 1 }),
  license: text,
};

const Entry = strictObject({
  ...catalogueFields,
  /** True if it is suggested to users without a model. */
  suggested: Type.Optional(Type.Boolean()),
});
const Catalogue = reader(
  strictObject({ updated: Type.String({ pattern: "^\\d{4}-\\d{2}$" }), models: Type.Array(Entry, { minItems: 1 }) }),
);

export type CatalogueEntry = Output<typeof Entry>;

interface Catalogue {
  /** Year and month. */
  readonly updated: string;
  readonly models: readonly CatalogueEntry[];
}

/** The list that ships with the program. Throws if it does not match the schema. */
export async function readCatalogue(): Promise<Catalogue> {
  return Catalogue.parse((await import("../../models/catalogue.json")).default);
}

export interface MachineFacts {
  /** Bytes; includes limits of control groups. */
  readonly memory: { readonly total: number; readonly available: number };
  /** Bytes of the GPU, if known. */
  readonly gpuMemory?: number | undefined;
  /** Bytes free on the models' disk; null: unknown. */
  readonly disk: { readonly free: number | null };
}

interface Fit {
  readonly fits: "yes" | "tight" | "no";
  /** The reason that it fits badly or not at all. */
  readonly reason?: string;
}

/** Share of the machine's memory reserved for the system and other programs. */
const RESERVED = 0.1;

/** The fit of a model on a machine: `tight` if other programs must free memory first. */
export function fitOf(
  { size, memory }: Pick<CatalogueEntry, "size" | "memory">,
  { memory: machine, gpuMemory = 0, disk }: MachineFacts,
  isInstalled: boolean,
): Fit {
  const most = machine.total * (1 - RESERVED) + gpuMemory;
  if (memory > most) {
    return { fits: "no", reason: `needs ${gb(memory)} of memory; this machine has ${gb(machine.total + gpuMemory)}` };
  }
  if (!isInstalled && disk.free !== null && size > disk.free) {
    return { fits: "no", reason: `needs ${gb(size)} of disk; ${gb(disk.free)} are free` };
  }
  const free = machine.available + gpuMemory;
  if (memory > free) return { fits: "tight", reason: `needs ${gb(memory)} of memory; ${gb(free)} are free now` };
  return { fits: "yes" };
}

const gb = (count: number): string => `${(count / 1e9).toFixed(1)} GB`;

interface Candidate extends Fit {
  readonly name: string;
  readonly suggested?: boolean | undefined;
  readonly memory: number;
  readonly installed: boolean;
}

/**
 * At most three suggestions: the largest suggested models that fit, ordered middle, smaller, larger. Tight ones fill up
 * if fewer than three fit.
 */
export function suggestionsOf(models: readonly Candidate[]): string[] {
  const rungs = models
    .filter(({ suggested, installed, fits }) => suggested && !installed && fits !== "no")
    .toSorted((a, b) => a.memory - b.memory);
  const fitting = rungs.filter(({ fits }) => fits === "yes");
  const [small, medium, large] = (fitting.length >= 3 ? fitting.slice(-3) : rungs.slice(0, 3)).map(({ name }) => name);
  return [medium, small, large].filter((name) => name !== undefined);
}
