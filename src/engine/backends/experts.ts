/**
 * A mixture of experts with some of its experts on the CPU and everything else on the GPU. The experts are most of such
 * a model's bytes, of which a token reads few. Per layer and row, the input of the experts and their result cross, and
 * the GPU waits for the CPU unless a shared expert keeps it busy.
 */
import { assert, checkNotCancelled } from "../../base/index.ts";
import type { Backend, LoadOptions, Program, Session, StepSession } from "../program/backend.ts";
import { weightsOf } from "../program/describe.ts";
import { describePlacement, placementOf } from "../program/placement.ts";
import { layerCount } from "../program/split.ts";
import type { Step } from "../program/step.ts";

/** The steps whose experts the CPU can compute, in order. Rows choose no adapters of theirs. */
export const expertSteps = ({ steps }: Pick<Program, "steps">): Step[] =>
  steps.filter((step) => step.op === "moe" && !weightsOf(step).some(({ offered }) => offered));

/** Load options for a GPU without those steps; enough to ask for the bytes that it needs. */
export const withoutExperts = (options: LoadOptions, steps: readonly Step[]): LoadOptions =>
  steps.length === 0 ? options : { ...options, hostSteps: { steps: new Set(steps), run: notLoaded } };

const notLoaded = (): never => {
  assert(false, "experts run before they are loaded");
};

/** Loads a program on a GPU, and the experts of `steps` on the CPU. */
export async function loadWithExperts(
  program: Program,
  options: LoadOptions,
  { gpu, cpu, steps }: { gpu: Backend; cpu: Backend; steps: readonly Step[] },
): Promise<Session> {
  if (steps.length === 0) return gpu.load(program, options);
  assert(cpu.loadSteps, `the backend '${cpu.name}' runs single steps`);
  let experts: StepSession | undefined;
  const hostSteps = {
    steps: new Set(steps),
    run: (...given: Parameters<StepSession["run"]>) => experts!.run(...given),
  }; // loaded before any run
  const session = await gpu.load(program, { ...options, hostSteps });
  try {
    checkNotCancelled(options.signal);
    experts = await cpu.loadSteps(program, steps, options);
  } catch (error) {
    session.close();
    throw error;
  }
  return joined(session, experts, { all: layerCount(program), count: steps.length });
}

/** @param layers the number of layers, and how many have their experts on the CPU */
function joined(session: Session, experts: StepSession, { all, count }: { all: number; count: number }): Session {
  const sum = (key: keyof Session["bytes"]): number => session.bytes[key] + experts.bytes[key];
  const placement = [...placementOf(session, all), { device: experts.device, layers: 0, experts: count }];
  return {
    ...session,
    backend: `${session.backend}+${experts.backend}`,
    device: describePlacement(placement),
    placement,
    bytes: { weights: sum("weights"), kv: sum("kv"), scratch: sum("scratch") },
    gpuLayers: { count: all, all, cpuExperts: count },
    close() {
      session.close();
      experts.close();
    },
  };
}
