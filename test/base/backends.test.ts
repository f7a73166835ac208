import { expect, test } from "bun:test";
import { BACKEND_CHOICES, backendTraits } from "../../src/base/backends.ts";

test("the choices begin with auto, then come the backends, best first", () => {
  expect(BACKEND_CHOICES).toEqual(["auto", "webgpu", "simd", "wasm", "onnx", "cpu"]);
});

test("two backends that share a model have the traits of both", () => {
  expect(backendTraits("simd")).toEqual({ adaptersByRow: true });
  expect(backendTraits("webgpu+simd")).toEqual({ onGpu: true, adaptersByRow: true });
  expect(backendTraits("webgpu+onnx")).toEqual({ onGpu: true, tokensOnly: true, repacks: true });
  expect(backendTraits("onnx")).toEqual({ tokensOnly: true, repacks: true });
  expect(backendTraits("toString")).toEqual({});
});
