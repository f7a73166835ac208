/** A runner in a child process: starts it, and quotes its last output if it dies. */
import { AppError } from "../../base/index.ts";
import type { FromRunner, LoadMessage } from "../../engine/index.ts";
import { fromWire, toWire } from "../../base/system.ts";
import type { StartedRunner } from "./spare-runner.ts";
import { connect, type Connected, type ConnectOptions } from "./connect.ts";
import { RunnerClient } from "./runner-client.ts";

/** Bytes of a dead runner's stderr that an error quotes. */
const STDERR_TAIL_BYTES = 2048;

interface RunnerCommand {
  /** Command line of a runner: this program with its `runner` subcommand. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

interface SpawnOptions extends ConnectOptions, RunnerCommand {
  /** Takes a prestarted process of this command; undefined: a new one is started. */
  readonly take?: () => StartedRunner;
}

/** Owns the child process; `close` or `kill` ends it. */
export class RunnerProcess extends RunnerClient {
  readonly pid: number;

  private constructor(connected: Connected, pid: number) {
    super(connected);
    this.pid = pid;
  }

  /** Starts a process and loads a model in it. On failure, or if the signal is aborted, the process is gone. */
  static async start(load: LoadMessage, options: SpawnOptions, signal: AbortSignal): Promise<RunnerProcess> {
    signal.throwIfAborted();
    let pid = 0;
    const connected = await connect(
      load,
      (receive) => {
        const { child, listen } = options.take?.() ?? spawnRunner(options);
        listen(receive);
        ({ pid } = child);
        return {
          send: (message) => child.send(toWire(message)),
          kill: () => child.kill("SIGKILL"),
          exited: watchExit(child, load.path),
        };
      },
      { options, signal },
    );
    return new RunnerProcess(connected, pid);
  }
}

/**
 * The real environment of a runner, because native code reads it there: disables usage reports, returns freed weights
 * to the system, and keeps the many small blocks of a GPU's step at hand between steps, in place of glibc's 7 a size.
 */
export const runnerEnvironment = (env: RunnerCommand["env"]): RunnerCommand["env"] => ({
  GLIBC_TUNABLES: "glibc.malloc.tcache_count=500",
  ...env,
  ORT_DISABLE_TELEMETRY: "1",
  MALLOC_MMAP_THRESHOLD_: "65536",
});

/** Starts a process without a model. */
export function spawnRunner({ command, env }: RunnerCommand): StartedRunner {
  let hear: (message: FromRunner) => void = () => {};
  const child = Bun.spawn([...command], {
    env: runnerEnvironment(env),
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
    serialization: "json",
    ipc: (received) => hear(fromWire(received as FromRunner)), // the child is this same program
  });
  return { child, listen: (receive) => void (hear = receive) };
}

/** Resolves with the error for requests on a dead runner, which quotes the end of its output. */
async function watchExit(child: Bun.Subprocess, path: string): Promise<AppError> {
  const tail = await readTail(child.stderr as ReadableStream<Uint8Array>); // a stream, because spawned with "pipe"
  await child.exited;
  if (child.signalCode === "SIGBUS" || /\bBus error\b/.test(tail)) {
    const message = `${path}: expected the file as it was when the model was loaded, got one that is shorter or fails`;
    return new AppError("runner", `${message}: the model runner has stopped (SIGBUS)`);
  }
  const how = child.signalCode ? `signal ${child.signalCode}` : `exit code ${child.exitCode}`;
  const detail = tail.trim().split("\n").slice(-3).join(" | ");
  return new AppError("runner", `model runner has unexpectedly stopped (${how})${detail ? `: ${detail}` : ""}`);
}

async function readTail(stream: ReadableStream<Uint8Array>): Promise<string> {
  let tail = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) tail = (tail + decoder.decode(chunk, { stream: true })).slice(-STDERR_TAIL_BYTES);
  return tail;
}
