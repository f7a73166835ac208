/** The backends of this process and the choice among them. */
export { slowOnCpu, chooseBackend, checkBackend, gpuTools, takeExam } from "./registry.ts";
export { needsDriver, probeDevice, type ProbedDevice } from "./device-probe.ts";
export { loadOptionsFor } from "./small.ts";
export { NO_LEVEL } from "./host/simd-library.ts";
export { Trust, type Verdict } from "./host/trust.ts";
