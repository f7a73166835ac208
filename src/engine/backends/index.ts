/** The backends of this process: which there are, which one a model gets, and what that comes to. */
export { slowOnCpu, chooseBackend, checkBackend, gpuTools } from "./registry.ts";
