/** The choice among a host's backends. */
import { AppError } from "../../base/index.ts";
import type { Backend, LoadOptions, Program, Session } from "../program/backend.ts";
import type { Offload } from "./offload.ts";

/** A backend of a host, before any of it is loaded. */
export interface Choice {
  /** The reason that it cannot run here; undefined if it can. */
  unavailable(): string | undefined;
  /**
   * The reason that this machine's devices cannot run it, for backends that must open a driver to know; `automatic`:
   * the user did not name the backend or the adapter.
   */
  refuses?(options: { automatic: boolean; adapter?: string | undefined }): Promise<string | undefined>;
  open(): Promise<Backend>;
  /** The same on other devices, best first, for models that do not fit on the first; absent: only one device. */
  others?(adapter: string | undefined): Promise<readonly Backend[]>;
}

/** By name, best first. */
export type Choices = Readonly<Record<string, Choice>>;

const GPU = "webgpu";

/**
 * The backend of that name, or for `auto` the first that can run here; `offload` decides which layers a GPU takes.
 * Opens drivers: only for processes with a model.
 */
export async function chooseAmong(choices: Choices, name: string, offload: Offload = {}): Promise<Backend> {
  const automatic = name === "auto";
  const candidates = checkAmong(choices, name);
  const hasGpu = candidates.some(([each]) => each === GPU);
  if (hasGpu ? offload.layers === 0 : automatic) return withoutGpu(choices);
  for (const [each, choice] of candidates) {
    const { adapter } = offload;
    const reason = await choice.refuses?.({ automatic: automatic && adapter === undefined, adapter });
    if (reason && each === GPU && adapter !== undefined) throw new AppError("unsupported", reason);
    if (!reason && each !== GPU) return automatic ? withoutGpu(choices) : choice.open();
    if (!reason) {
      const others = async (): Promise<readonly Backend[]> => (await choice.others?.(adapter)) ?? [];
      const { makeOffloadingBackend } = await import("./offload.ts"); // servers check names only
      return makeOffloadingBackend({ gpu: await choice.open(), cpu: withoutGpu(choices), automatic, others }, offload);
    }
    if (!automatic) throw new AppError("unsupported", `backend '${name}' cannot run here: ${reason}`);
  }
  throw new AppError("unsupported", "no backend can run on this machine");
}

/** The best backend that needs no GPU and has every op of the program, whatever the configuration says. */
const withoutGpu = (choices: Choices): Backend =>
  firstWithOps(checkAmong(choices, "auto").filter(([name]) => name !== GPU));

/** Backends that address less memory than the machine has. */
const NARROW: ReadonlySet<string> = new Set(["wasm"]);

/**
 * Loads a program on the first backend that has all its ops and room for it. If none can, throws the error of the
 * backend for which it was too large, else that of the last backend.
 */
export function firstWithOps(candidates: readonly (readonly [name: string, Pick<Choice, "open">])[]): Backend {
  const [best] = candidates;
  if (!best) throw new AppError("unsupported", "no backend can run on this machine without a GPU");
  const loadOn = async (program: Program, options: LoadOptions, at = 0): Promise<Session> => {
    const [name, choice] = candidates[at]!; // there is at least one candidate, and the last one throws
    const isLast = at === candidates.length - 1;
    const backend = await choice.open();
    if (!isLast && (backend.missing?.(program) ?? []).length > 0) return loadOn(program, options, at + 1);
    try {
      return await backend.load(program, options);
    } catch (error) {
      const code = error instanceof AppError ? error.code : undefined;
      const isTooLarge = code === "too_large" && NARROW.has(name);
      if (isLast || !(isTooLarge || code === "unsupported")) throw error;
      return loadOn(program, options, at + 1).catch((next: unknown) => {
        throw isTooLarge ? error : next;
      });
    }
  };
  return {
    name: best[0],
    load: (program, options) => loadOn(program, options),
    async loadSteps(program, steps, options) {
      for (const [, choice] of candidates) {
        const { loadSteps, missing } = await choice.open();
        if (loadSteps && (missing?.({ ...program, steps }) ?? []).length === 0)
          return loadSteps(program, steps, options);
      }
      throw new AppError("unsupported", `${program.weights.path}: no backend can run single steps on the CPU`);
    },
  };
}

/** The candidates for a name, best first. Throws `unsupported` if it is already known that they cannot run here. */
export function checkAmong(choices: Choices, name: string): [name: string, choice: Choice][] {
  if (name === "auto") return Object.entries(choices).filter(([, choice]) => !choice.unavailable());
  const found = Object.entries(choices).find(([key]) => key === name);
  if (!found) {
    throw new AppError("unsupported", `backend '${name}': expected auto or one of ${Object.keys(choices).join(", ")}`);
  }
  const reason = found[1].unavailable();
  if (reason) throw new AppError("unsupported", `backend '${name}' cannot run here: ${reason}`);
  return [found];
}
