/**
 * Runs a graph through the JavaScript binding of `onnxruntime-node`, if `bun:ffi` does not work. Same library, same
 * logits; but the binding copies every output on each run, including the whole KV cache, so it gets slower with the
 * cache's size (2 tokens/s instead of 22 at 4,096 tokens of a 1.2 B model).
 */
import type * as ort from "onnxruntime-node";
import type { Executor, Feed, KvCache } from "./executor.ts";

const ELEMENT_TYPE = { float: "float32", int32: "int32", int64: "int64" } as const;

/** Opens a session on a model file and runs it over a KV cache. The files may be deleted once it is open. */
export async function makeFallbackExecutor(
  modelPath: string,
  { threads, cache }: { threads: number; cache: KvCache },
): Promise<Executor> {
  const { InferenceSession, Tensor } = await import("onnxruntime-node"); // loads the library, so only on demand
  const session = await InferenceSession.create(modelPath, {
    executionProviders: ["cpu"],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    enableMemPattern: false, // shapes change from run to run
    graphOptimizationLevel: "all",
    logSeverityLevel: 3,
  });
  const tensor = ({ type, data, shape }: Omit<Feed, "name">): ort.Tensor => {
    const count = shape.reduce((product, dim) => product * dim, 1);
    return new Tensor(ELEMENT_TYPE[type], data.subarray(0, count), shape);
  };
  return {
    async run({ lowSlot, batch, feeds, result }) {
      const inputs = Object.fromEntries(feeds.map((feed) => [feed.name, tensor(feed)]));
      // The run writes the given outputs in place; `run` returns copies of them.
      const outputs: Record<string, ort.Tensor> = {
        [result.name]: tensor({ ...result, type: "float" }),
      };
      for (const { layer, nKvHeads, headDim, keys, values } of cache.layers) {
        const slotSize = nKvHeads * cache.ctxLen * headDim;
        const shape = [batch, nKvHeads, cache.ctxLen, headDim];
        const from = lowSlot * slotSize;
        inputs[`pk.${layer}`] = outputs[`ok.${layer}`] = tensor({ type: "float", shape, data: keys.subarray(from) });
        inputs[`pv.${layer}`] = outputs[`ov.${layer}`] = tensor({ type: "float", shape, data: values.subarray(from) });
      }
      await session.run(inputs, outputs);
    },
    close: () => void session.release(),
  };
}
