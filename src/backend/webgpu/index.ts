/**
 * The WebGPU backend: a step list lowered to a recorded sequence of dispatches of our own kernels (`kernels/wgsl/`),
 * which read GGUF blocks as they are. `auto` takes it on a GPU only; by name it runs on a software adapter too.
 */
import { messageOf } from "../../base/errors.ts";
import type { Backend } from "../backend.ts";
import { adapterFacts, requestAdapter } from "./adapters.ts";
import { openDevice } from "./device.ts";
import { makeShift } from "./kv-cache.ts";
import { makePlan } from "./plan.ts";
import { WebGpuSession } from "./session.ts";

export const webGpuBackend: Backend = {
  name: "webgpu",
  unavailable: () => undefined,
  async refuses({ automatic }) {
    try {
      const { software, name } = adapterFacts(await requestAdapter());
      return automatic && software ? `'${name}' is a software adapter` : undefined;
    } catch (error) {
      return messageOf(error);
    }
  },
  async load(program, options) {
    const device = await openDevice();
    const plan = await makePlan(device, program, options);
    try {
      const shift = await makeShift(device, program, { plan, ctxLen: options.ctxLen });
      options.onProgress?.(1);
      return new WebGpuSession({ device, program, options, plan, shift });
    } catch (error) {
      plan.destroy();
      throw error;
    }
  },
};
