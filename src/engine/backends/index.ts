/** The backends of this process and the choice among them. */
export { slowOnCpu, chooseBackend, checkBackend, gpuTools } from "./registry.ts";
export { needsDriver, outlookOf, type Outlook } from "./outlook.ts";
export { loadOptionsFor } from "./small.ts";
