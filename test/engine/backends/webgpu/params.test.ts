/** Parameters of kernels by name: their offsets follow the kernel's struct. */
import { expect, test } from "bun:test";
import { fieldsOf, writeParams } from "../../../../kernels/wgsl/params.ts";
import { KERNELS, type KernelName } from "../../../../kernels/wgsl/sources.ts";
import { lower } from "../../../../kernels/wgsl/lower.ts";
import { fuse } from "../../../../kernels/wgsl/fuse.ts";
import { runnableCases } from "./chosen-cases.ts";

const room = () => new DataView(new ArrayBuffer(128));
const names = Object.keys(KERNELS) as KernelName[]; // the literal's keys

test("the fields of a kernel are those of its struct, in order, with their types", () => {
  expect(fieldsOf("rms_norm")).toEqual([
    { name: "dim", type: "u32" },
    { name: "len", type: "u32" },
    { name: "weights", type: "u32" },
    { name: "divisor", type: "f32" },
    { name: "eps", type: "f32" },
    { name: "hasResidual", type: "u32" },
    { name: "scale", type: "f32" },
  ]);
  expect(fieldsOf("linear_3").at(-1)).toEqual({ name: "hasBias3", type: "u32" });
  for (const name of names) {
    const fields = fieldsOf(name);
    expect([name, new Set(fields.map((field) => field.name)).size]).toEqual([name, fields.length]);
    expect([name, fields.length > 0]).toEqual([name, /struct Params/.test(KERNELS[name])]);
  }
});

test("a parameter is written at the offset and in the type of its field", () => {
  const view = room();
  const params = { scale: 0.5, eps: 1e-5, hasResidual: 1, len: 64, dim: 128, weights: 3, divisor: 2 };
  writeParams(view, 8, { kernel: "rms_norm", params });
  expect([8, 12, 16, 28].map((at) => view.getUint32(at, true))).toEqual([128, 64, 3, 1]);
  expect([20, 24, 32].map((at) => view.getFloat32(at, true))).toEqual([2, Math.fround(1e-5), 0.5]);
});

test("a parameter that is missing, or that the kernel does not have, is an error that names it", () => {
  const write = (params: Record<string, number>) => () => writeParams(room(), 0, { kernel: "scale", params });
  expect(write({ dim: 1 })).toThrow("kernel scale: expected the parameters by,dim, got dim");
  expect(write({ dim: 1, by: 2, eps: 1 })).toThrow("got by,dim,eps");
});

test("every dispatch of lowering and fusion has the parameters of its kernel", () => {
  const kernels = new Set<string>();
  for (const { program } of runnableCases()) {
    for (const isGemm of [false, true]) {
      const piecesOf = ({ tensorRows, experts }: { tensorRows: number; experts: number }) => [
        { index: 0, first: 0, count: tensorRows * experts },
      ];
      const dispatches = lower(program.steps, { ctxLen: 64, isGemm, piecesOf });
      for (const each of [...dispatches, ...fuse(dispatches, [program.states.name])]) {
        kernels.add(each.kernel);
        writeParams(room(), 0, each);
      }
    }
  }
  expect(kernels.size).toBeGreaterThan(20);
});
