/**
 * A runner that loads nothing and answers every prompt with "ok" at once: for tests of the process around a model. The
 * prompt "hang up" makes it close its channel and stay alive. With the argument "gpu" it has 8 layers of a byte each,
 * and puts the requested number on the GPU, or as many as fit: 6 if the room is unknown.
 */
import type { FromRunner, ToRunner } from "../../src/engine/runner/messages.ts";
import { fromWire, toWire } from "../../src/base/wire.ts";

const hasGpu = process.argv[2] === "gpu";
const send = (message: FromRunner): void => void process.send?.(toWire(message));

process.on("message", (received: ToRunner) => {
  const message = fromWire(received);
  if (message.kind === "load") {
    const bytes = { weights: 3, kv: 2, scratch: 1 };
    const { gpuMemory = 6 } = message;
    const onGpu = Math.min(message.gpuLayers ?? gpuMemory, 8);
    if (hasGpu && message.gpuMemory !== undefined && onGpu > gpuMemory)
      return send({ kind: "failed", code: "too_large", message: `${onGpu} of 8 layers: room for ${gpuMemory}` });
    send({
      kind: "ready",
      info: {
        arch: "fake",
        backend: "fake",
        device: "",
        ctxLen: 8,
        ctxLenTrained: 8,
        dim: 4,
        embedsOnly: false,
        ranks: undefined,
        bytes,
        vramBytes: hasGpu ? onGpu : 4,
        slots: message.slots === "auto" ? 5 : message.slots,
        gpuLayers: hasGpu ? { count: onGpu, all: 8 } : undefined,
        canFill: false,
        parameters: {},
        samplersUnused: [],
        media: [],
      },
      template: { code: "bad_request", message: "a fake has no template" },
    });
  }
  const text = message.kind === "generate" && message.asked.kind === "text" ? message.asked.text : "";
  if (text === "hang up") return process.disconnect?.();
  if (message.kind === "generate") {
    const statistics = { promptEvalCount: 1, promptCachedCount: 0, promptEvalNs: 1, evalCount: 1, evalNs: 1 };
    const tokens = new Int32Array(1);
    send({
      kind: "events",
      events: [
        { kind: "text", id: message.id, text: "ok" },
        { kind: "done", id: message.id, reason: "stop", statistics, tokens },
      ],
    });
  }
  if (message.kind === "close") process.exit(0);
});
setInterval(() => {}, 1000); // alive also without a channel
