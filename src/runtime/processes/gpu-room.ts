/**
 * GPU memory for one more model. Unloads idle models one by one before layers have to stay on the CPU, or a requested
 * number of layers is refused.
 */
import { AppError } from "../../base/index.ts";
import type { LoadMessage } from "../../engine/index.ts";

interface Neighbour {
  readonly users: number;
  readonly runner: { readonly info: { readonly vramBytes: number } } | undefined;
}

interface Room<N extends Neighbour, R> {
  /** Loaded models in eviction order. */
  neighbours(): readonly N[];
  evict(neighbour: N): Promise<void>;
  start(load: LoadMessage): Promise<R>;
}

/** Starts a runner with as many layers on the GPU as possible without evicting a model in use. */
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
      const victim = onGpu().find(isIdle); // models chosen earlier may be busy by now
      if (victim) await room.evict(victim);
    }
  }
}

const vramBytes = ({ runner }: Neighbour): number => runner?.info.vramBytes ?? 0;
