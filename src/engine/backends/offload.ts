/**
 * Divides a program between a GPU and the CPU: the GPU takes the requested number of layers, or as many of the last
 * layers as fit; the others run on a backend without a GPU.
 */
import { AppError } from "../../base/index.ts";
import type { Backend, LoadOptions, Program, Session } from "../program/backend.ts";
import { cutProgram, layerCount, loadSplit } from "../program/split.ts";
import type { Step } from "../program/step.ts";
import { expertSteps, loadWithExperts, withoutExperts } from "./experts.ts";

export interface Offload {
  /** Layers on the GPU, the output counted as one; undefined: as many as fit. */
  readonly layers?: number | undefined;
  /** Bytes that a model may take on the GPU; undefined: the GPU's free memory, asked at load time. */
  readonly memory?: number | undefined;
  /** The name of the adapter, or a part of it; undefined: the best. */
  readonly adapter?: string | undefined;
}

interface Sides {
  readonly gpu: Backend;
  readonly cpu: Backend;
  /** The user did not name the GPU: fall back to the CPU instead of failing. */
  readonly automatic: boolean;
}

/** Fewer than two layers (the output and one more) are not worth the transfers unless requested. */
const LAYERS_MIN = 2;
/** After the GPU ran out of memory: the share of those bytes to try next. */
const STEP_DOWN = 0.8;

/** A backend that loads the right part on the GPU. */
export function offloading(sides: Sides, offload: Offload): Backend {
  const { gpu, automatic } = sides;
  return {
    name: gpu.name,
    ...(gpu.slotBytes && { slotBytes: gpu.slotBytes }),
    async load(program, options) {
      const all = layerCount(program);
      const { layers, memory = Infinity } = offload;
      try {
        if (layers === undefined) return await loadWhatFits(program, options, sides, memory);
        const count = Math.min(layers, all);
        checkRoom(await neededBytes(program, options, { gpu, count }), { program, count, memory });
        return await loadWith(program, options, sides, count);
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
 * Loads the whole program if it fits; else all of it except the experts of as few layers as necessary; else as many of
 * the last layers as fit and as the GPU has kernels for.
 */
async function loadWhatFits(program: Program, options: LoadOptions, sides: Sides, memory: number): Promise<Session> {
  const { gpu, cpu } = sides;
  const experts = cpu.loadSteps ? expertSteps(program) : [];
  if (experts.length > 0) {
    /** The experts that stay on the CPU: with a count of 1 all, with one more the last layer's are on the GPU. */
    const onCpu = (count: number): Step[] => experts.slice(0, experts.length + 1 - count);
    const needs = (count: number): Promise<number> =>
      neededBytes(program, withoutExperts(options, onCpu(count)), { gpu, count: layerCount(program) }).catch(
        (error) => {
          unlessTooMuch(error);
          return Infinity;
        },
      );
    const load = (count: number): Promise<Session> =>
      loadWithExperts(program, options, { gpu, cpu, steps: onCpu(count) });
    const parts = { most: experts.length + 1, least: 1, needs, load };
    const session = await loadMost(parts, memory).catch(unlessTooMuch);
    if (session) return session;
  }
  return loadLayers(program, options, sides, memory);
}

async function loadLayers(program: Program, options: LoadOptions, sides: Sides, memory: number): Promise<Session> {
  const { gpu } = sides;
  const all = layerCount(program);
  let refusal: AppError | undefined;
  // The program cannot be cut there, or a layer has no kernels; fewer layers may work.
  const needs = (count: number): Promise<number> =>
    orInfinity(neededBytes(program, options, { gpu, count }), (error) => {
      if (count === all) refusal = error;
    });
  const least = Math.min(LAYERS_MIN, all);
  const load = (count: number): Promise<Session> => loadWith(program, options, sides, count);
  const session = await loadMost({ most: all, least, needs, load }, memory);
  if (session) return session;
  if (refusal) throw refusal;
  checkRoom(await needs(least), { program, count: least, memory });
  return load(0);
}

/** The undefined that stands for an error by which a program does not fit. */
function unlessTooMuch(error: unknown): undefined {
  if (!(error instanceof AppError) || !["too_large", "unsupported"].includes(error.code)) throw error;
}

/** Bytes; Infinity for a program that no memory is enough for. */
const orInfinity = (bytes: Promise<number>, onRefusal?: (error: AppError) => void): Promise<number> =>
  bytes.catch((error: unknown) => {
    if (!(error instanceof AppError) || error.code !== "unsupported") throw error;
    onRefusal?.(error);
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
 * the least does not fit.
 */
async function loadMost({ most, least, needs, load }: Parts, room: number): Promise<Session | undefined> {
  let count = await mostThatFit({ most, needs, room });
  while (count >= least) {
    try {
      return await load(count);
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== "too_large") throw error;
      count = await mostThatFit({ most: count - 1, needs, room: STEP_DOWN * (await needs(count)) });
      if (count < least) throw error;
    }
  }
  return undefined;
}

/** The largest count whose need is finite and fits; 0 if even one layer does not. */
async function mostThatFit(search: {
  most: number;
  needs: (count: number) => Promise<number>;
  room: number;
}): Promise<number> {
  const isFitting = async (count: number): Promise<boolean> => {
    const needed = await search.needs(count);
    return Number.isFinite(needed) && needed <= search.room;
  };
  if (search.most > 0 && (await isFitting(search.most))) return search.most;
  let [fits, tooMany] = [0, search.most];
  while (tooMany - fits > 1) {
    const middle = Math.floor((fits + tooMany) / 2);
    if (await isFitting(middle)) fits = middle;
    else tooMany = middle;
  }
  return fits;
}

async function loadWith(program: Program, options: LoadOptions, { gpu, cpu }: Sides, count: number): Promise<Session> {
  if (count === layerCount(program)) return gpu.load(program, options); // also 0 of 0: a projector without attention
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

function checkRoom(
  needed: number,
  { program, count, memory }: { program: Program; count: number; memory: number },
): void {
  if (needed <= memory) return;
  const what = `${count} of ${layerCount(program)} layers on the GPU`;
  const text = `${program.weights.path}: ${what}: ${needed} bytes needed, ${memory} are there for a model`;
  throw new AppError("too_large", text);
}
