/**
 * The ONNX backend: a step list lowered to one graph, run by ONNX Runtime's CPU kernels. Recipe and measurements:
 * ARCHITECTURE.md. The lowerings are in `kernels/onnx/`.
 */
import { ops, variants } from "../../../../kernels/onnx/lower.ts";
import type { Backend } from "../../program/backend.ts";
import { missingOps } from "../missing-ops.ts";
import { loadSession } from "./load.ts";

export const onnxBackend: Backend = {
  name: "onnx",
  missing: (program) => missingOps(program, { ops, variants }),
  load: (program, options) => loadSession(program, options),
};
