/**
 * The WebGPU backend: a step list lowered to a recorded sequence of dispatches of our own kernels (`kernels/wgsl/`),
 * which read GGUF blocks directly. `auto` uses it on GPUs only; requested by name, it also runs on a software adapter.
 */
import type { Backend } from "../../program/backend.ts";
import { makeChooser } from "./chooser.ts";
import { openDevice } from "./device.ts";
import { ops, variants } from "../../../../kernels/wgsl/lower.ts";
import { missingOps } from "../missing.ts";
import { makeShift } from "./kv-cache.ts";
import type { GpuProvider } from "./provider.ts";
import { choosingRows, makePlan, plannedBytes } from "./plan.ts";
import { WebGpuSession } from "./session.ts";
import { keepSlots } from "./slot-states.ts";

/** The backend on a provider's device, which is opened at first use. */
export const makeWebGpuBackend = (provider: () => GpuProvider): Backend => ({
  name: "webgpu",
  missing: (program) => missingOps(program, { ops, variants }),
  neededBytes: async (program, options) => plannedBytes(await openDevice(provider()), program, options),
  async load(program, options) {
    const device = await openDevice(provider());
    const plan = await makePlan(device, program, options);
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
