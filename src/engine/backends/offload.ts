/**
 * Divides a program between a GPU and the CPU: the GPU takes the requested number of layers, or as many of the last
 * layers as fit; the others run on a backend without a GPU.
 */
import { AppError, type Code } from "../../base/index.ts";
import type { Backend, LoadOptions, Program, Session } from "../program/backend.ts";
import { cutProgram, layerCount, loadSplit } from "../program/split.ts";
import type { Step } from "../program/step.ts";
import { expertSteps, loadWithExperts, withoutExperts } from "./experts.ts";

export interface Offload {
  /** Layers on the GPU, the output counted as one; undefined: as many as fit. */
  readonly layers?: number | undefined;
  /** Bytes that a model may take on the GPU; undefined: the GPU's free memory, asked at load time. */
  readonly memory?: number | undefined;
  /** The names of adapters, or parts of them, separated by commas; undefined: the best, and comparable ones. */
  readonly adapter?: string | undefined;
}

interface Sides {
  readonly gpu: Backend;
  readonly cpu: Backend;
  /** True if the user did not request the GPU by name: then a failure falls back to the CPU. */
  readonly automatic: boolean;
  /** More GPUs for a model that does not fit into the first, best first; absent: there are no others. */
  others?(): Promise<readonly Backend[]>;
}

/** The parts of `Offload` that a load needs; `memory` in bytes. */
interface Room {
  readonly layers: number | undefined;
  readonly memory: number;
}

/** Fewer than two layers (the output and one more) are not worth the transfers unless requested. */
const LAYERS_MIN = 2;
/** After the GPU ran out of memory: the share of those bytes to try next. */
const STEP_DOWN = 0.8;

/** A backend that loads on the GPU as many layers as fit, or as many as requested. */
export function makeOffloadingBackend(sides: Sides, offload: Offload): Backend {
  const { gpu, automatic } = sides;
  return {
    name: gpu.name,
    ...(gpu.slotBytes && { slotBytes: gpu.slotBytes }),
    ...(gpu.missing && { missing: gpu.missing }),
    async load(program, options) {
      const { layers, memory = Infinity } = offload;
      try {
        return await loadOnGpus(program, options, sides, { layers, memory });
      } catch (error) {
        // a requested layer count that does not fit is an error; a missing kernel only means the CPU
        const codes = layers === undefined ? ["too_large", "unsupported"] : ["unsupported"];
        if (!automatic || !(error instanceof AppError) || !codes.includes(error.code)) throw error;
        return sides.cpu.load(program, options);
      }
    },
  };
}

/**
 * Loads the whole program, or the requested layers, on the first GPU if they fit there. Else spreads them over all
 * GPUs. With one GPU and no request, loads all except the experts of as few layers as necessary; else as many of the
 * last layers as fit and as the GPU has kernels for.
 */
async function loadOnGpus(program: Program, options: LoadOptions, sides: Sides, room: Room): Promise<Session> {
  const { gpu } = sides;
  const { layers, memory } = room;
  const all = layerCount(program);
  const count = Math.min(layers ?? all, all);
  let failure: AppError | undefined;
  // The program cannot be cut, or a layer has no kernels; fewer layers may work.
  const needed = await neededBytes(program, options, { gpu, count }).catch((error: unknown) => {
    if (layers !== undefined || !isOf(error, "unsupported")) throw error;
    failure = error;
    return Infinity;
  });
  const fits = Number.isFinite(needed) && needed <= memory;
  if (fits) {
    try {
      return await loadWith(program, options, sides, count);
    } catch (error) {
      if (!isOf(error, "too_large")) throw error;
      failure = error;
    }
  }
  const left = { layers, memory, first: fits ? STEP_DOWN * needed : memory };
  const spread = await loadOverSeveral(program, options, sides, left);
  if (spread) return spread;
  if (layers !== undefined) {
    if (failure) throw failure;
    throw tooLarge(needed, { program, count, memory });
  }
  const divided = await loadWithoutExperts(program, options, sides, left.first);
  return divided ?? loadLayers(program, options, sides, { room: left.first, failure });
}

/**
 * Loads the whole program or the requested layers on another GPU; else the last layers on the first GPU, and the
 * earlier ones on the others and the CPU. Undefined if there are no other GPUs.
 * @param first bytes on the first GPU
 */
async function loadOverSeveral(
  program: Program,
  options: LoadOptions,
  { gpu, cpu, others }: Sides,
  { layers, memory, first }: Room & { readonly first: number },
): Promise<Session | undefined> {
  const there = (await others?.()) ?? [];
  const [next, ...rest] = there;
  if (!next) return undefined;
  for (const each of there) {
    const whole = await loadIfFits(program, elsewhere(options), { gpu: each, cpu }, { layers, memory });
    if (whole) return whole;
  }
  const sides = { gpu: next, cpu, automatic: layers === undefined, others: async () => rest };
  const all = layerCount(program);
  const needs = (count: number): Promise<number> => orInfinity(neededBytes(program, options, { gpu, count }));
  const load = async (count: number): Promise<Session> => {
    const left = { layers: layers === undefined ? undefined : layers - count, memory: memory - (await needs(count)) };
    const { name, load: loadFront } = makeOffloadingBackend(sides, left);
    const fails = (cause: unknown): never => {
      throw new FrontError("the front cannot be loaded", { cause });
    };
    const front: Backend = {
      name,
      load: (part, own) => loadFront(part, elsewhere(own)).catch(fails),
    };
    return loadSplit(program, options, { front, back: gpu, count });
  };
  const most = Math.min(layers ?? all, all) - 1;
  const session = await loadMost({ most, least: LAYERS_MIN, needs, load }, first).catch((error: unknown) => {
    if (error instanceof FrontError) throw error.cause;
    return unlessTooMuch(error);
  });
  return session ?? makeOffloadingBackend(sides, { layers, memory }).load(program, elsewhere(options));
}

/** Options for another GPU than the one with the weights that `beside` holds. */
const elsewhere = (options: LoadOptions): LoadOptions => ({ ...options, beside: undefined });

/** Undefined if the whole program, or the requested layers, do not fit on that GPU. */
async function loadIfFits(
  program: Program,
  options: LoadOptions,
  sides: Pick<Sides, "gpu" | "cpu">,
  { layers = Infinity, memory }: Room,
): Promise<Session | undefined> {
  const count = Math.min(layers, layerCount(program));
  try {
    const needed = await neededBytes(program, options, { gpu: sides.gpu, count });
    return needed <= memory ? await loadWith(program, options, sides, count) : undefined;
  } catch (error) {
    return unlessTooMuch(error);
  }
}

/** Failed on a GPU other than the first: another number of layers on the first would not help. */
class FrontError extends Error {}

/** Undefined if the program has no experts, or does not fit without any. */
async function loadWithoutExperts(
  program: Program,
  options: LoadOptions,
  { gpu, cpu }: Sides,
  room: number,
): Promise<Session | undefined> {
  const experts = cpu.loadSteps ? expertSteps(program) : [];
  if (experts.length === 0) return undefined;
  /**
   * Steps whose experts stay on the CPU: for a count of 1 all; each further one moves one layer's experts to the GPU,
   * the last layer's first.
   */
  const onCpu = (count: number): Step[] => experts.slice(0, experts.length + 1 - count);
  const needs = (count: number): Promise<number> => {
    const bytes = neededBytes(program, withoutExperts(options, onCpu(count)), { gpu, count: layerCount(program) });
    return bytes.catch((error: unknown) => unlessTooMuch(error) ?? Infinity);
  };
  const load = (count: number): Promise<Session> =>
    loadWithExperts(program, options, { gpu, cpu, steps: onCpu(count) });
  return loadMost({ most: experts.length, least: 1, needs, load }, room).catch(unlessTooMuch);
}

/** @param failure the reason why the whole program is not on the GPU, unless it is the program's size */
async function loadLayers(
  program: Program,
  options: LoadOptions,
  sides: Sides,
  { room, failure }: { room: number; failure: AppError | undefined },
): Promise<Session> {
  const { gpu } = sides;
  const all = layerCount(program);
  const needs = (count: number): Promise<number> => orInfinity(neededBytes(program, options, { gpu, count }));
  const least = Math.min(LAYERS_MIN, all);
  const load = (count: number): Promise<Session> => loadWith(program, options, sides, count);
  const session = await loadMost({ most: all - 1, least, needs, load }, room);
  if (session) return session;
  if (failure) throw failure;
  let count = least;
  while (count < all && !Number.isFinite(await needs(count))) count++;
  throw tooLarge(await needs(count), { program, count, memory: room });
}

const isOf = (error: unknown, ...codes: readonly Code[]): error is AppError =>
  error instanceof AppError && codes.includes(error.code);

/** Returns undefined for errors that mean a program does not fit; throws all others. */
function unlessTooMuch(error: unknown): undefined {
  if (!isOf(error, "too_large", "unsupported")) throw error;
}

/** Bytes; Infinity if a program cannot be cut or a layer has no kernels. */
const orInfinity = (bytes: Promise<number>): Promise<number> =>
  bytes.catch((error: unknown) => {
    if (!isOf(error, "unsupported")) throw error;
    return Infinity;
  });

/** A load that can be made smaller. */
interface Parts {
  readonly most: number;
  readonly least: number;
  needs(count: number): Promise<number>;
  load(count: number): Promise<Session>;
}

/**
 * Loads the largest count that fits; a smaller one if the GPU turns out to have less memory than expected. Undefined if
 * the smallest does not fit.
 */
async function loadMost({ most, least, needs, load }: Parts, room: number): Promise<Session | undefined> {
  let count = await mostThatFit({ most, needs, room });
  while (count >= Math.max(1, least)) {
    try {
      return await load(count);
    } catch (error) {
      if (!isOf(error, "too_large")) throw error;
      count = await mostThatFit({ most: count - 1, needs, room: STEP_DOWN * (await needs(count)) });
      if (count < least) throw error;
    }
  }
  return undefined;
}

/** The largest count whose need is finite and fits; 0 if none does. More layers need more bytes. */
async function mostThatFit(search: {
  most: number;
  needs: (count: number) => Promise<number>;
  room: number;
}): Promise<number> {
  let [fits, tooMany] = [0, search.most + 1];
  let next = search.most;
  while (tooMany - fits > 1) {
    let [count, needed] = [next, await search.needs(next)];
    // some programs can be cut before and after these layers, but not between
    while (needed === Infinity && count + 1 < tooMany) needed = await search.needs(++count);
    if (Number.isFinite(needed) && needed <= search.room) fits = count;
    else tooMany = next;
    next = Math.floor((fits + tooMany) / 2);
  }
  return fits;
}

async function loadWith(
  program: Program,
  options: LoadOptions,
  { gpu, cpu }: Pick<Sides, "gpu" | "cpu">,
  count: number,
): Promise<Session> {
  if (count === layerCount(program)) return gpu.load(program, options); // also 0 of 0, in a projector
  if (count === 0) return cpu.load(program, options);
  return loadSplit(program, options, { front: cpu, back: gpu, count });
}

/** Bytes of the last `count` layers on the GPU. */
async function neededBytes(
  program: Program,
  options: LoadOptions,
  { gpu, count }: { gpu: Backend; count: number },
): Promise<number> {
  if (!gpu.neededBytes) return 0;
  if (count === layerCount(program)) return gpu.neededBytes(program, options);
  return count === 0 ? 0 : gpu.neededBytes(cutProgram(program, count).back, options);
}

function tooLarge(
  needed: number,
  { program, count, memory }: { program: Program; count: number; memory: number },
): AppError {
  const what = `${count} of ${layerCount(program)} layers on the GPU`;
  const text = `${program.weights.path}: ${what}: ${needed} bytes needed, ${memory} are there for a model`;
  return new AppError("too_large", text);
}
