/** Commands for developers: figures to compare with other programs, devices, tests of kernels, and quantizing. */
import { constants, homedir } from "node:os";
import { join } from "node:path";
import { InvalidArgumentError, type Command } from "commander";
import { AppError, BACKENDS_IN_WORDS, type KernelChoice, KERNELS_EXPECTED, parseKernels } from "../base/index.ts";
import { type Config, readSettings } from "../base/config/index.ts";
import { selfCommand } from "../base/system.ts";
import type { ModelRun } from "./diagnostics/diagnostics.ts";
import { gpuMemoryHere } from "./gpu-memory.ts";
import type { CliParts } from "./terminal/failing.ts";

type Env = NodeJS.ProcessEnv;

/** The types of `hearth quantize`, in the order of their size. */
export const QUANTIZE_TYPES =
  "q2_K q3_K_S q3_K_M q3_K_L q4_0 q4_1 q4_K_S q4_K_M q5_0 q5_1 q5_K_S q5_K_M q6_K q8_0".split(" ");

export function addDeveloperCommands(program: Command, parts: CliParts): void {
  addLogits(program, parts);
  addImage(program, parts);
  addGenerate(program, parts);
  addTokenize(program, parts);
  addDevices(program, parts);
  addSelftest(program, parts);
  addQuantize(program, parts);
}

/** Options for running a model. */
const addRunOptions = (command: Command): Command =>
  command
    .option("--backend <name>", `${BACKENDS_IN_WORDS}; default: as the server`)
    .option("--num-gpu <n>", "layers on the GPU, the output counted as one; left out: as many as fit", wholeNumber)
    .option("--precise", "float32 activations", false)
    .option("--threads <n>", "0: one per core", wholeNumber, 0)
    .option("--kernels <list>", `GPU kernels: ${KERNELS_EXPECTED}; default: as the server`, kernels);

function addLogits(program: Command, parts: CliParts): void {
  const { env, terminal } = parts;
  addRunOptions(
    program
      .command("logits")
      .description("write the logits of every position")
      .requiredOption("--model <file>", "GGUF file")
      .option("--adapter <file...>", "LoRA adapters, GGUF")
      .option("--tokens <ids>", "token ids separated by commas")
      .option(
        "--text <text>",
        "with --image: a text with <__media__> where the image is; writes the last position only",
      )
      .option("--projector <file>", "with --image: GGUF file of the image encoder")
      .option("--image <file>", "PNG, JPEG, WebP or GIF")
      .requiredOption("--out <file>", "where to write them, as little-endian float32"),
  ).action((options) =>
    withoutTelemetry(env, async () => {
      const { image, projector, text, tokens } = options;
      if (image === undefined && tokens !== undefined) {
        return (await diagnostics()).writeLogits(await runOptions(parts, options));
      }
      if (image === undefined || projector === undefined || text === undefined) {
        throw new AppError("bad_request", "expected --tokens, or --image, --projector and --text");
      }
      const { writeImageLogits } = await import("./diagnostics/image-diagnostics.ts");
      terminal().write(`${JSON.stringify(await writeImageLogits(await runOptions(parts, options)))}\n`);
    }),
  );
}

function addImage(program: Command, parts: CliParts): void {
  const { env, terminal } = parts;
  program
    .command("image")
    .description("write the pixels that an image encoder reads, and its output")
    .requiredOption("--projector <file>", "GGUF file of the image encoder")
    .requiredOption("--image <file>", "PNG, JPEG, WebP or GIF")
    .option("--pixels <file>", "where to write the pixels, as little-endian float32")
    .option("--embeddings <file>", "where to write the rows for the text model, as little-endian float32")
    .option("--backend <name>", "auto, simd, onnx or cpu; default: as the server")
    .option("--threads <n>", "0: one per core", wholeNumber, 0)
    .action((options) =>
      withoutTelemetry(env, async () => {
        const { writeImage } = await import("./diagnostics/image-diagnostics.ts");
        terminal().write(`${JSON.stringify(await writeImage(await runOptions(parts, options)))}\n`);
      }),
    );
}

function addGenerate(program: Command, parts: CliParts): void {
  const { env, terminal } = parts;
  addRunOptions(
    program
      .command("generate")
      .description("print the most likely next token ids")
      .requiredOption("--model <file>", "GGUF file")
      .option("--adapter <file...>", "LoRA adapters, GGUF")
      .requiredOption("--tokens <ids>", "token ids separated by commas")
      .requiredOption("--greedy <n>", "tokens to generate", wholeNumber),
  ).action((options) =>
    withoutTelemetry(env, async () => {
      const tokens = await (
        await diagnostics()
      ).greedyTokens({ ...(await runOptions(parts, options)), count: options.greedy });
      terminal().write(`${tokens.join(",")}\n`);
    }),
  );
}

function addTokenize(program: Command, { terminal }: CliParts): void {
  program
    .command("tokenize")
    .description("print the token ids of standard input")
    .requiredOption("--model <file>", "GGUF file")
    .option("--no-special", "treat the text of special tokens as plain text")
    .action(async (options: { model: string; special: boolean }) => {
      const text = await Bun.stdin.text();
      const { tokenIds } = await diagnostics();
      const ids = tokenIds({ model: options.model, text, parseSpecial: options.special });
      terminal().write(`${ids.join(",")}\n`);
    });
}

function addDevices(program: Command, { env, terminal }: CliParts): void {
  program
    .command("devices")
    .description("list the GPUs that models can run on")
    .option("--json", "print all limits, as JSON", false)
    .option("--tune", "print the fastest kernels of the default GPU; search for unknown ones", false)
    .option("--backend <name>", `print what this backend would use, as JSON: ${BACKENDS_IN_WORDS}`)
    .action(async ({ json, tune, backend }: { json: boolean; tune: boolean; backend?: string }) => {
      const { showDevices, showKernels, showProbe } = await diagnostics();
      const { gpu } = serverSettings(env);
      if (backend !== undefined) return showProbe(terminal(), { backend, gpu });
      if (!tune) {
        await showDevices(terminal(), { json });
        if (!json) terminal().write(`${await (await import("./kernels.ts")).kernelsLine()}\n`);
        return;
      }
      const { home } = readSettings({ env, flags: {}, home: homedir() });
      await showKernels(terminal(), { json, gpu, cacheDir: join(home, "cache") });
      await terminal().flush();
      process.exit(); // an open device would keep the process alive
    });
}

function addSelftest(program: Command, { env, terminal }: CliParts): void {
  program
    .command("selftest")
    .description("test the CPU kernels of this machine, and keep the results for the server")
    .option("--json", "print the results as JSON", false)
    .action(async ({ json }: { json: boolean }) => {
      const { selftest } = await import("./kernels.ts");
      const passed = await selftest(terminal(), { json, command: selfCommand(), env });
      await terminal().flush();
      if (!passed) process.exit(1);
    });
}

function addQuantize(program: Command, { terminal }: CliParts): void {
  program
    .command("quantize")
    .description("write a GGUF file in another type, such as q4_K_M")
    .argument("<in>", "GGUF file of F32, F16 or BF16 weights")
    .argument("<out>", "GGUF file to write")
    .argument("<type>", `${QUANTIZE_TYPES.slice(0, -1).join(", ")} or ${QUANTIZE_TYPES.at(-1)}`)
    .option("--threads <n>", "0: one per core", wholeNumber, 0)
    .action(async (from: string, to: string, type: string, { threads }: { threads: number }) =>
      (await diagnostics()).quantize(terminal(), { from, to, type, ...(threads > 0 ? { threads } : {}) }),
    );
}

/** Commands that print figures, to compare with other programs. */
function diagnostics() {
  return import("./diagnostics/diagnostics.ts");
}

/**
 * Runs `work` in a process whose environment turns off ONNX Runtime's telemetry: the variable must be set before the
 * process starts, so this one restarts itself if it is not.
 */
async function withoutTelemetry(env: Env, work: () => Promise<void>): Promise<void> {
  if (env["ORT_DISABLE_TELEMETRY"] === "1") return work();
  const child = Bun.spawnSync([...selfCommand(), ...process.argv.slice(2)], {
    env: { ...env, ORT_DISABLE_TELEMETRY: "1" },
    stdio: ["inherit", "inherit", "inherit"],
  });
  const signal = child.signalCode === undefined ? 0 : constants.signals[child.signalCode as NodeJS.Signals];
  process.exit(child.exitCode ?? 128 + signal); // the exit code that shells use
}

/** The server's settings, as defaults of flags. */
function serverSettings(env: Env): Pick<ModelRun, "backend" | "kernels" | "gpu" | "gpuMemory"> {
  const { setting } = readSettings({ env, flags: {}, home: homedir() });
  return {
    backend: setting("backend"),
    kernels: setting("gpuKernels"),
    gpu: setting("gpu"),
    gpuMemory: gpuMemoryHere(setting("gpuMemory")),
  };
}

/** The options with flags in their documented form, and the level of CPU kernels that passed its self-test. */
async function runOptions<T extends object>(
  { env, terminal }: Pick<CliParts, "env" | "terminal">,
  flags: T,
): Promise<ReturnType<typeof serverSettings> & T & Pick<ModelRun, "simdLevel">> {
  const options = { ...serverSettings(env), ...flags };
  const { makeKernels } = await import("./kernels.ts");
  const simd = readSettings({ env, flags: {}, home: homedir() }).setting("simd");
  const warn = (text: string, facts: object = {}): void =>
    terminal().note(`Warning: ${[text, ...Object.values(facts)].join(": ")}`);
  const kernels = makeKernels(
    { backend: options.backend as Config["backend"], simd },
    { command: selfCommand(), env, log: { warn } },
  );
  return { ...options, simdLevel: await kernels.level() };
}

function kernels(text: string): KernelChoice {
  const choice = parseKernels(text);
  if (choice) return choice;
  throw new InvalidArgumentError(`expected ${KERNELS_EXPECTED}`);
}

/** A flag's number. */
export function wholeNumber(text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  throw new InvalidArgumentError("expected a whole number");
}
