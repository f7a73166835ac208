/**
 * The device of this process: opened once, shared by its sessions, with its compiled pipelines. Its failures, from a
 * lost driver to a missing answer, become `AppError`s.
 */
import { kernelSource, type KernelName, type Variant } from "../../../../kernels/wgsl/sources.ts";
import { AppError, messageOf, type SubgroupMatrix } from "../../../base/index.ts";
import { adapterFacts, requestAdapter, type AdapterFacts } from "./adapters.ts";
import type { Pump } from "./device-polling.ts";
import type { GpuProvider } from "./provider.ts";
import { chooseMatrix, SUBGROUP_MATRIX, type MatrixInfo } from "./subgroup-matrix.ts";

/** Features with kernel variants, enabled if an adapter has them. */
const FEATURES: readonly GPUFeatureName[] = ["shader-f16", "subgroups", "timestamp-query", SUBGROUP_MATRIX];

/** A run takes a fraction of a second on a GPU, but may take minutes on a CPU that emulates one. */
const DEADLINE_MS = { hardware: 60_000, software: 600_000 };

/** The variant of a kernel, apart from the device's features. */
export type KernelVariant = Omit<Variant, "subgroups" | "matrix">;
type Pipeline = Promise<GPUComputePipeline>;

interface DeviceParts {
  readonly facts: AdapterFacts;
  /** Kernels may use `subgroups` and `subgroup_id`. */
  readonly subgroups: boolean;
  /** The subgroup matrices that kernels may multiply; undefined: none. */
  readonly matrix: SubgroupMatrix | undefined;
  readonly pump: Pump;
  readonly deadlineMs: number;
}

/** Owns the GPU device, one per process, for the life of the process. */
export class Device {
  readonly gpu: GPUDevice;
  readonly facts: AdapterFacts;
  /** Kernels use `subgroups` and `subgroup_id`. */
  readonly subgroups: boolean;
  /** The subgroup matrices that kernels may multiply; undefined: none. */
  readonly matrix: SubgroupMatrix | undefined;
  readonly #pump: Pump;
  readonly #deadlineMs: number;
  /** By source. */
  readonly #pipelines = new Map<string, Promise<GPUComputePipeline>>();
  readonly #failure = Promise.withResolvers<AppError>();
  readonly #waiting = new Set<(error: AppError) => void>();
  #failed: AppError | undefined;

  constructor(gpu: GPUDevice, { facts, subgroups, matrix, pump, deadlineMs }: DeviceParts) {
    this.gpu = gpu;
    this.facts = facts;
    this.subgroups = subgroups;
    this.matrix = matrix;
    this.#pump = pump;
    this.#deadlineMs = deadlineMs;
    void gpu.lost.then(({ reason, message }) => this.#fail(`was lost: ${message || reason}`));
    gpu.addEventListener("uncapturederror", ({ error }) => this.#fail(error.message));
  }

  /** Resolves with the failure that made this device unusable. */
  get lost(): Promise<AppError> {
    return this.#failure.promise;
  }

  get isLost(): boolean {
    return this.#failed !== undefined;
  }

  /** Submits work. @param expectedMs its duration, if similar work ran before */
  submit(commands: GPUCommandBuffer | readonly GPUCommandBuffer[], expectedMs?: number): void {
    this.gpu.queue.submit([commands].flat());
    this.#pump.kick(expectedMs);
  }

  /** Notes that submitted work is likely to end soon. @param ms expected time until then, if known */
  expect(ms?: number): void {
    this.#pump.kick(ms);
  }

  /**
   * Starts an operation of the device and awaits it; throws `runner` if the device fails first or takes too long.
   * Attaches nothing to a promise that lives as long as the device, which would grow with every run.
   */
  wait<T>(start: () => Promise<T>): Promise<T> {
    if (this.#failed) return Promise.reject(this.#failed);
    const work = this.#pump.start(start);
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const late = setTimeout(() => this.#fail(`gave no answer within ${this.#deadlineMs / 1000} s`), this.#deadlineMs);
    this.#waiting.add(reject);
    const end = (settle: () => void): void => {
      clearTimeout(late);
      this.#waiting.delete(reject);
      settle();
    };
    const failed = (error: unknown): AppError =>
      this.#failed ?? new AppError("runner", `GPU '${this.facts.name}': ${messageOf(error)}`, { cause: error });
    work.then(
      (value) => end(() => resolve(value)),
      (error: unknown) => end(() => reject(failed(error))),
    );
    return promise;
  }

  /** Waits until all submitted work is done, which also frees the staging memory of writes. */
  async flush(): Promise<void> {
    this.submit(this.gpu.createCommandEncoder().finish());
    await this.wait(() => this.gpu.queue.onSubmittedWorkDone());
  }

  /**
   * Runs `make`, which creates buffers. Throws `too_large` if the device has no room for them, and destroys the
   * returned ones.
   */
  async allocate<T extends readonly GPUBuffer[]>(what: string, make: () => T): Promise<T> {
    this.gpu.pushErrorScope("out-of-memory");
    this.gpu.pushErrorScope("validation");
    const buffers = make();
    const problem = (await this.wait(() => this.gpu.popErrorScope())) ?? undefined;
    const full = (await this.wait(() => this.gpu.popErrorScope())) ?? undefined;
    if (!problem && !full) return buffers;
    const bytes = buffers.reduce((sum, { size }) => sum + size, 0);
    for (const buffer of buffers) buffer.destroy();
    const reason = (full ?? problem)!.message; // at least one of them is set
    throw new AppError("too_large", `${what}: GPU '${this.facts.name}' has no room for ${bytes} bytes: ${reason}`);
  }

  /** A kernel. Compilation starts at the first request, and several kernels are compiled at once. */
  pipeline(kernel: KernelName, quants: readonly string[] = [], variant: KernelVariant = {}): Pipeline {
    const code = kernelSource(kernel, quants, { subgroups: this.subgroups, matrix: this.matrix, ...variant });
    const known = this.#pipelines.get(code);
    if (known) return known;
    const made = this.#compile([kernel, ...quants].join(" "), code);
    this.#pipelines.set(code, made);
    return made;
  }

  async #compile(label: string, code: string): Promise<GPUComputePipeline> {
    this.gpu.pushErrorScope("validation"); // errors are reported below, and the device stays usable
    const module = this.gpu.createShaderModule({ label, code });
    void this.#pump.start(() => this.gpu.popErrorScope());
    const compute = { module, entryPoint: "main" };
    const compile = () => this.gpu.createComputePipelineAsync({ label, layout: "auto", compute });
    return this.wait(compile).catch(async (error) => {
      const { messages } = await this.#pump.start(() => module.getCompilationInfo());
      const first = messages.find(({ type }) => type === "error");
      const where = first ? `line ${first.lineNum}:${first.linePos}: ${first.message}` : messageOf(error);
      throw new AppError("unsupported", `kernel ${label}: GPU '${this.facts.name}' refuses it: ${where}`);
    });
  }

  #fail(what: string): void {
    if (this.#failed) return;
    this.#failed = new AppError("runner", `GPU '${this.facts.name}' ${what}`);
    this.#failure.resolve(this.#failed);
    for (const reject of this.#waiting) reject(this.#failed);
    this.#waiting.clear();
  }
}

export interface DeviceOptions {
  /** Features not to request even if the adapter has them. */
  readonly without?: readonly string[];
  /** Limits lower than the adapter's. */
  readonly limits?: Partial<AdapterFacts["limits"]>;
}

/** The provider's device, opened on first use. Throws `unsupported` if there is no adapter. */
export function openDevice(provider: GpuProvider, options: DeviceOptions = {}): Promise<Device> {
  const opened = (provider.device ??= makeDevice(provider, options)) as Promise<Device>; // only this function sets it
  const forget = (): void => {
    if (provider.device === opened) delete provider.device;
  };
  // A lost device stays lost; the next load opens a new one.
  opened.then(({ lost }) => lost.then(forget), forget);
  return opened;
}

async function makeDevice(provider: GpuProvider, { without = [], limits = {} }: DeviceOptions): Promise<Device> {
  const { pump } = provider;
  const adapter = await requestAdapter(provider);
  const own = adapterFacts(adapter);
  const facts = { ...own, name: provider.name ?? own.name, limits: { ...own.limits, ...limits } };
  const wanted = {
    requiredFeatures: FEATURES.filter((name) => adapter.features.has(name) && !without.includes(name)),
    requiredLimits: facts.limits,
  };
  const gpu = await pump.start(() => adapter.requestDevice(wanted));
  const { wgslLanguageFeatures } = await provider.open();
  const subgroups = gpu.features.has("subgroups") && wgslLanguageFeatures.has("subgroup_id");
  const hasF16 = gpu.features.has("shader-f16");
  const multiplies = subgroups && gpu.features.has(SUBGROUP_MATRIX);
  const matrix = multiplies ? chooseMatrix(adapter.info as MatrixInfo, hasF16) : undefined;
  const deadlineMs = DEADLINE_MS[facts.software ? "software" : "hardware"];
  return new Device(gpu, { facts, subgroups, matrix, pump, deadlineMs });
}
