/**
 * The catalogue: models of the public library that people run, with their sizes, as of a date. The list is
 * `models/catalogue.json`; this reads it and decides which of its models fit a machine.
 */
import { Type } from "@sinclair/typebox";
import { oneOfTexts, type Output, reader, strictObject } from "../base/schema.ts";

const CAPABILITIES = ["completion", "tools", "thinking", "vision", "embedding", "insert"] as const;
const PURPOSES = ["chat", "reasoning", "code", "vision", "embedding"] as const;

const bytes = Type.Integer({ minimum: 1 });
const text = Type.String({ minLength: 1, maxLength: 120 });

/** The fields that the API answers with, too. */
export const catalogueFields = {
  /** With its tag. */
  name: Type.String({ pattern: "^[a-z0-9][a-z0-9.-]*:[a-z0-9][a-z0-9.-]*$" }),
  title: text,
  description: text,
  purpose: oneOfTexts(PURPOSES),
  /** As people write it: `4B`. */
  parameters: Type.String({ pattern: "^\\d+(\\.\\d+)?[MB]$" }),
  /** Bytes of the download, about. */
  size: bytes,
  /** Bytes that it takes in memory with 4,096 tokens of context, about. */
  memory: bytes,
  capabilities: Type.Array(oneOfTexts(CAPABILITIES), { minItems: 1 }),
  license: text,
};

const Entry = strictObject({
  ...catalogueFields,
  /** Whether it is offered to people who have no model yet. */
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

/** The list that ships with the program. Throws where it is not what the schema says. */
export async function readCatalogue(): Promise<Catalogue> {
  return Catalogue.parse((await import("../../models/catalogue.json")).default);
}

export interface MachineFacts {
  /** Bytes; limits of control groups count. */
  readonly memory: { readonly total: number; readonly available: number };
  /** Bytes of the GPU, where they are known. */
  readonly gpuMemory?: number | undefined;
  /** Bytes free where models are stored; null: unknown. */
  readonly disk: { readonly free: number | null };
}

interface Fit {
  readonly fits: "yes" | "tight" | "no";
  /** Why it does not fit well. */
  readonly reason?: string;
}

/** Of the machine's memory, what the system and other programs need at least. */
const RESERVED = 0.1;

/** Whether a machine can run a model: `tight` where other programs have to make room first. */
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
 * At most three names for people who want a model: the largest ones of those suggested that fit, the middle one first,
 * then the smaller, then the larger one. Tight ones fill up where fewer than three fit.
 */
export function suggestionsOf(models: readonly Candidate[]): string[] {
  const rungs = models
    .filter(({ suggested, installed, fits }) => suggested && !installed && fits !== "no")
    .toSorted((a, b) => a.memory - b.memory);
  const fitting = rungs.filter(({ fits }) => fits === "yes");
  const [small, medium, large] = (fitting.length >= 3 ? fitting.slice(-3) : rungs.slice(0, 3)).map(({ name }) => name);
  return [medium, small, large].filter((name) => name !== undefined);
}
