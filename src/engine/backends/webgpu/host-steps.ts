/**
 * Runs a pass up to the steps that the CPU computes. Per such step and row, the step's inputs cross to the CPU and its
 * result crosses back, a few thousand float32 each. The device waits for the CPU, except that it meanwhile runs the
 * dispatches that do not need the result.
 */
import type { HostSteps } from "../../program/backend.ts";
import type { Device } from "./device.ts";
import type { HostBuffers } from "./memory.ts";
import { makeDurations } from "./device-polling.ts";
import { allFinite, mapResults } from "./readback.ts";
import type { Counts, Pass } from "./record.ts";
import type { Stop } from "./stops.ts";

interface HostRunParts {
  readonly device: Device;
  readonly buffers: HostBuffers;
  readonly hostSteps: HostSteps;
  /** Records the dispatches `first` … `end − 1`. */
  encode(encoder: GPUCommandEncoder, pass: Pass, counts: Counts, range: { first: number; end: number }): void;
  /** Throws once the session is closed. */
  checkOpen(): void;
}

interface HostRun {
  readonly pass: Pass;
  readonly counts: Counts;
  /** The first dispatch of the run: 0, or one at which a pass may be cut. */
  readonly first?: number;
  /** The number of dispatches that the run needs. */
  readonly end: number;
  /** As for `StepRows`. */
  readonly drafted: boolean;
}

export interface HostRuns {
  /**
   * Runs a pass up to its last stop before `end`; returns the first dispatch after it.
   * @param onBad called for inputs that are NaN or infinite; its error is thrown
   */
  run(options: HostRun & { onBad(): Promise<Error> }): Promise<number>;
  /** Computes the step of a stop again, whose inputs are complete on the device. */
  runAgain(stop: Stop, run: Pick<HostRun, "counts" | "drafted">): Promise<void>;
}

export function makeHostRuns({ device, buffers, hostSteps, encode, checkOpen }: HostRunParts): HostRuns {
  const { read, handed, returned } = buffers;
  const durations = makeDurations<number>();
  /** Reads the inputs, which `encoder` completes, and uploads the result. Undefined if an input is NaN or infinite. */
  const exchange = async (
    { step, rows, dim }: Stop,
    { counts, drafted, submit }: Pick<HostRun, "counts" | "drafted"> & { submit(size: number): void },
  ): Promise<true | undefined> => {
    const size = 4 * dim * counts[rows];
    const submittedMs = performance.now();
    submit(size);
    await mapResults({ device, checkOpen }, read, size);
    durations.took(counts.all, performance.now() - submittedMs);
    try {
      const values = new Float32Array(read.getMappedRange(0, size));
      if (!allFinite(values)) return undefined;
      const result = hostSteps.run(step, { values, drafted });
      device.gpu.queue.writeBuffer(returned, 0, result as Float32Array<ArrayBuffer>); // kernels' memory is not shared
      return true;
    } finally {
      read.unmap();
    }
  };
  const copy = (encoder: GPUCommandEncoder, size: number): GPUCommandBuffer => {
    encoder.copyBufferToBuffer(handed, 0, read, 0, size);
    return encoder.finish();
  };
  return {
    async run({ pass, counts, first: begin = 0, end, drafted, onBad }) {
      let first = begin;
      for (const stop of pass.stops) {
        if (stop.handed <= begin) continue;
        if (stop.handed > end || counts[stop.rows] === 0) break;
        const submit = (size: number): void => {
          const encoder = device.gpu.createCommandEncoder();
          encode(encoder, pass, counts, { first, end: stop.handed });
          const expectedMs = device.facts.software ? undefined : durations.expected(counts.all);
          device.submit(copy(encoder, size), expectedMs);
          if (stop.returned === stop.handed) return;
          const meanwhile = device.gpu.createCommandEncoder();
          encode(meanwhile, pass, counts, { first: stop.handed, end: stop.returned });
          device.gpu.queue.submit([meanwhile.finish()]);
        };
        if (!(await exchange(stop, { counts, drafted, submit }))) throw await onBad();
        first = stop.returned;
      }
      return first;
    },
    async runAgain(stop, run) {
      const submit = (size: number): void => device.submit(copy(device.gpu.createCommandEncoder(), size));
      await exchange(stop, { ...run, submit });
    },
  };
}
