/**
 * The WebGPU backend: a step list lowered to a recorded sequence of dispatches of our own kernels (`kernels/wgsl/`),
 * which read GGUF blocks directly. `auto` uses it on GPUs only; requested by name, it also runs on a software adapter.
 */
import { cacheTypeOf } from "../../../../kernels/wgsl/cache.ts";
import { AppError, messageOf } from "../../../base/index.ts";
import type { Backend, Program } from "../../program/backend.ts";
import { memoryLayers } from "../../program/memory.ts";
import { floatBytes } from "../../program/sequence-state.ts";
import { makeChooser } from "./chooser.ts";
import { openDevice } from "./device.ts";
import { ops, variants } from "../../../../kernels/wgsl/lower.ts";
import { missingOps } from "../missing-ops.ts";
import { makeShift } from "./kv-cache.ts";
import type { KvShape } from "./growing-kv.ts";
import { kvShapes, kvTokensMax, memoryShapes } from "./memory.ts";
import type { GpuProvider } from "./provider.ts";
import { choosingRows, makePlan, plannedBytes } from "./plan.ts";
import { WebGpuSession } from "./session.ts";
import { keepSlots } from "./slot-states.ts";

/** A driver that over-commits memory loses the device: fewer layers may fit, on another device. */
function lostWhileLoading({ weights }: Program, cause: unknown): AppError {
  return new AppError("too_large", `${weights.path}: ${messageOf(cause)} while the model was loaded`, { cause });
}

/** Bytes of a position in all layers. */
const bytesEach = (shapes: readonly KvShape[]): number =>
  shapes.reduce((sum, { keyBytes, valueBytes }) => sum + keyBytes + valueBytes, 0);

/** The backend on a provider's device, which is opened at first use. */
export const makeWebGpuBackend = (provider: () => GpuProvider): Backend => ({
  name: "webgpu",
  missing: (program) => missingOps(program, { ops, variants }),
  neededBytes: async (program, options) => plannedBytes(await openDevice(provider()), program, options),
  async slotBytes({ steps }, options) {
    const cacheType = cacheTypeOf(steps, options);
    const shapes = kvShapes(steps, cacheType);
    const memories = memoryShapes(steps, cacheType);
    const [{ rows } = { rows: 0 }] = memoryLayers(steps);
    const own = steps.filter(({ op }) => op !== "crossAttention");
    const bytes = { perToken: bytesEach(shapes), once: floatBytes(own).once + rows * bytesEach(memories) };
    const device = await openDevice(provider()).catch(() => undefined); // a load reports it
    if (!device) return bytes;
    const slotsMax = rows > 0 && { slotsMax: Math.floor(kvTokensMax(device, memories) / rows) };
    return { ...bytes, tokensMax: kvTokensMax(device, shapes), ...slotsMax };
  },
  async load(program, options) {
    const device = await openDevice(provider());
    const plan = await makePlan(device, program, options).catch((error: unknown) => {
      throw device.isLost ? lostWhileLoading(program, error) : error;
    });
    const made: { destroy(): void }[] = [plan];
    try {
      const shift = await makeShift(device, program, { plan, ctxLen: options.ctxLen });
      made.push(shift);
      const rows = choosingRows(plan.capacity, options);
      const chooser = program.logits && (await makeChooser(device, program, { plan, rows }));
      if (chooser) made.push(chooser);
      const states = await keepSlots(device, program, { states: plan.states, slots: options.slots });
      options.onProgress?.(1);
      return new WebGpuSession({ device, program, options, plan, shift, chooser, states });
    } catch (error) {
      for (const each of made) each.destroy();
      throw error;
    }
  },
});
