/** Runs models with experts on the CPU and everything else on a software adapter; experts.test.ts reads its output. */
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import { expertSteps, loadWithExperts } from "../../../../src/engine/backends/experts.ts";
import { simdBackend } from "../../../../src/engine/backends/host/simd.ts";
import { webGpuBackend } from "../../../../src/engine/backends/host/webgpu.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import type { Program, Session } from "../../../../src/engine/program/backend.ts";
import type { Step } from "../../../../src/engine/program/step.ts";
import { nmse } from "../compare.ts";
import { exercise, options as short } from "../exercise.ts";

/** Enough for runs on the kernels for many rows. */
const CTX_LEN = 50;
const options = { ...short, ctxLen: CTX_LEN };

/** The same program, whose routers read the input of the norm before the experts. */
export function withOwnInput(program: Program): Program {
  const steps = program.steps.map((step, i): Step => {
    const before = program.steps[i - 1];
    return step.op === "moe" && before?.op === "rmsNorm" ? { ...step, routed: before.x } : step;
  });
  return { ...program, steps };
}

/** A model with the experts of some layers on the CPU. */
export interface Divided extends Pick<Session, "gpuLayers" | "backend" | "device"> {
  /** The distance to the CPU kernels' results. */
  readonly distance: number;
  /** A decoded row has the same bits alone, together with others, and drafted. */
  readonly keepsBits: boolean;
  /** The parts of a prompt with steps of another slot in between, and whether all had the bits of whole runs. */
  readonly parts: { readonly count: number; readonly keepBits: boolean };
}

export interface Dividing {
  readonly divided: readonly Divided[];
  /** Errors of a run with NaN in the experts of the first layer, and in the attention of the last. */
  readonly faults: readonly string[];
}

/** @param count of the first layers whose experts are on the CPU */
const load = (program: Program, count: number): Promise<Session> =>
  loadWithExperts(program, options, {
    gpu: webGpuBackend,
    cpu: simdBackend,
    steps: expertSteps(program).slice(0, count),
  });

async function divide(program: Program, count: number): Promise<Divided> {
  const whole = await simdBackend.load(program, options);
  const expected = await exercise(whole);
  whole.close();
  const session = await load(program, count);
  const distance = nmse(await exercise(session), expected);
  const keepsBits = await hasSameBits(session, program.logits!.dim);
  const { gpuLayers, backend, device } = session;
  session.close();
  const parts = await runInParts(await load(program, count));
  return { ...(gpuLayers && { gpuLayers }), backend, device, distance, keepsBits, parts };
}

async function runInParts(session: Session): Promise<Divided["parts"]> {
  const text = Int32Array.from({ length: CTX_LEN }, (_, i) => (i * 7) % 40);
  const rows = (slot: number, start: number, end: number) => ({ slot, start, tokens: text.slice(start, end) });
  await session.run([{ ...rows(1, 0, 4), logits: "none" }]);
  const prompt = { ...rows(0, 0, CTX_LEN - 1), logits: "last" } as const;
  const run = session.slices!.start(prompt);
  const steps: number[] = [];
  let [count, at] = [1, 4];
  let done = await run.next(0);
  for (; !done; count++) {
    steps.push(...(await session.run([{ ...rows(1, at++, at), logits: "last" }])));
    done = await run.next(0);
  }
  const got = [...done];
  const keepBits = (values: readonly number[], expected: Float32Array): boolean =>
    values.length === expected.length && values.every((value, i) => value === expected[i]);
  let keeps = keepBits(got, await session.run([prompt]));
  for (let i = 4; i < at; i++) {
    const one = await session.run([{ ...rows(1, i, i + 1), logits: "last" }]);
    keeps &&= keepBits(steps.splice(0, one.length), one);
  }
  session.close();
  return { count, keepBits: keeps };
}

async function hasSameBits(session: Session, vocabSize: number): Promise<boolean> {
  const rows = (slot: number, start: number, ...tokens: number[]) => ({ slot, start, tokens: Int32Array.from(tokens) });
  for (const slot of [0, 1, 2]) await session.run([{ ...rows(slot, 0, 3, 5 + slot), logits: "none" }]);
  const alone = (await session.run([{ ...rows(1, 2, 7), logits: "last" }])).slice();
  const beside = [0, 1, 2].map((slot) => ({ ...rows(slot, 2, 7), logits: "last" as const }));
  const company = (await session.run(beside)).slice(vocabSize, 2 * vocabSize);
  const drafted = await session.run([{ ...rows(1, 2, 7, 8, 9), logits: "all", drafted: true }]);
  return alone.every((value, i) => value === company[i] && value === drafted[i]);
}

/** The error of a model with a tensor full of NaN. */
async function faultOf(program: Program, tensor: string): Promise<string> {
  const read = (name: string): Uint8Array =>
    name === tensor ? new Uint8Array(program.weights.read(name).length).fill(0xff) : program.weights.read(name);
  const session = await load({ ...program, weights: { path: "broken", read } }, 2);
  const row = { slot: 0, start: 0, tokens: Int32Array.of(1), logits: "last" } as const;
  const fault = await session.run([row]).then(String, ({ message }: Error) => message);
  session.close();
  return fault;
}

if (import.meta.main) {
  const gguf = openGguf(process.argv[2]!);
  const program = loadProgram(gguf);
  const divided = [await divide(program, 1), await divide(withOwnInput(program), 2)];
  const faults = [
    await faultOf(program, "blk.0.ffn_down_exps.weight"),
    await faultOf(program, "blk.1.attn_output.weight"),
  ];
  console.log(JSON.stringify({ divided, faults } satisfies Dividing));
  gguf.close();
  process.exit(0); // a driver's threads may remain
}
