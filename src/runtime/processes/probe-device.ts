/** Asks a child process which devices models can run on, to keep GPU drivers out of the server. */
import { AppError } from "../../base/index.ts";
import { needsDriver, type ProbedDevice, probeDevice } from "../../engine/backends/index.ts";

/** A driver answers in a second or two; one that hangs must not delay the server. */
const ANSWER_MS = 10_000;
/** Characters quoted from a failed child's output. */
const COMPLAINT_SHOWN = 500;

interface Asking {
  readonly backend: string;
  /** Command line of the child, which prints an `ProbedDevice` as JSON. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Throws `unsupported`, quoting the child, if it found no device for the backend. */
export async function probeInChild({ backend, command, env }: Asking): Promise<ProbedDevice> {
  if (!needsDriver(backend)) return probeDevice(backend);
  const stdio = { stdin: "ignore", stdout: "pipe", stderr: "pipe" } as const;
  const child = Bun.spawn([...command], { env, ...stdio, timeout: ANSWER_MS, killSignal: "SIGKILL" });
  const [text, complaint] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) === 0) return JSON.parse(text) as ProbedDevice; // this same program wrote it
  throw new AppError("unsupported", complaint.trim().slice(-COMPLAINT_SHOWN) || `no answer in ${ANSWER_MS} ms`);
}
