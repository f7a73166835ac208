/** Inference on the models of a library, by runners of this machine or by a server elsewhere. */
export { askOutlook } from "./ask-outlook.ts";
export { fieldsOfPrefix } from "./json-prefix.ts";
export { makeRuntime } from "./local.ts";
export { makeRemoteRuntime } from "./remote.ts";
export { RunnerProcess, spawnRunner } from "./runner-process.ts";
export { SpareRunner } from "./spare-runner.ts";
export { tellLoad } from "./tell-load.ts";
