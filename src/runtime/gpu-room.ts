/**
 * Room on the GPU for one more model: what the others there leave of it. Before layers stay on the CPU for want of it,
 * or a number of layers is refused, idle models are unloaded, one after another.
 */
import { AppError } from "../base/index.ts";
import type { LoadMessage } from "../engine/index.ts";

interface Neighbour {
  readonly users: number;
  readonly runner: { readonly info: { readonly vramBytes: number } } | undefined;
}

interface Room<N extends Neighbour, R> {
  /** The models in memory now, the one that goes first first. */
  neighbours(): readonly N[];
  evict(neighbour: N): Promise<void>;
  start(load: LoadMessage): Promise<R>;
}

/** Starts a runner with as much on the GPU as can be had without taking it from a model in use. */
export async function startWithRoom<N extends Neighbour, R>(load: LoadMessage, room: Room<N, R>): Promise<R> {
  const onGpu = (): N[] => room.neighbours().filter((each) => vramBytes(each) > 0);
  const isIdle = ({ users }: N): boolean => users === 0;
  for (;;) {
    const taken = onGpu().reduce((sum, each) => sum + vramBytes(each), 0);
    const mayEvict = onGpu().some(isIdle);
    try {
      return await room.start({
        ...load,
        gpuMemory: load.gpuMemory === undefined ? undefined : Math.max(0, load.gpuMemory - taken),
        gpuLayers: load.gpuLayers ?? (mayEvict ? Infinity : undefined), // all, or an error
      });
    } catch (error) {
      if (!mayEvict || !(error instanceof AppError) || error.code !== "too_large") throw error;
      const victim = onGpu().find(isIdle); // those of before may have got work
      if (victim) await room.evict(victim);
    }
  }
}

const vramBytes = ({ runner }: Neighbour): number => runner?.info.vramBytes ?? 0;
