/** Parts of the engine that need this machine: the backends, the choice among them, and kept snapshots. */
export { slowOnCpu, chooseBackend, checkBackend, gpuTools, runSelftest } from "./registry.ts";
export { needsDriver, probeDevice, type ProbedDevice } from "./device-probe.ts";
export { quantizeModule } from "./host/quantize-module.ts";
export { NO_LEVEL, WASM_LEVEL } from "./host/simd-library.ts";
export { Trust, type Verdict } from "./host/trust.ts";
export { trimSnapshots } from "../formats/files/snapshots.ts";
