/** Inference on the models of a library, by runners of this machine or by a server elsewhere. */
export { probeInChild } from "./processes/probe-device.ts";
export { fieldsOfPrefix } from "./requests/json-prefix.ts";
export { makeRuntime } from "./local.ts";
export { makeRemoteRuntime } from "./remote/remote.ts";
export { RunnerProcess, spawnRunner } from "./processes/runner-process.ts";
export { SpareRunner } from "./processes/spare-runner.ts";
export { logLoad } from "./processes/log-load.ts";
