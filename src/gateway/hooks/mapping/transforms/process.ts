/**
 * The server's side of a process that runs one version of a transform: it runs one call at a time, is killed when it
 * takes too long or too much memory, and dropped when it exits.
 */
import { AppError } from "../../../../base/index.ts";
import { programFile, residentBytes, scriptEnv } from "../../../../base/system.ts";
import { READY, REPLY_CHARS_MAX, type TransformCall, type TransformReply } from "./messages.ts";

/** Largest resident memory of a transform. An empty process has 30 MB. */
const MEMORY_BYTES_MAX = 256 * 1024 * 1024;
/** A loop that fills memory takes a few hundred megabytes between two checks. */
const MEMORY_EVERY_MS = 20;
/** Long enough for a busy machine. */
const START_TIMEOUT_MS = 30_000;

export interface CallLimits {
  readonly timeoutMs: number;
  /** The total time limit, for error texts; default: `timeoutMs`. */
  readonly limitMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/** Path in the source tree. */
const CHILD = "src/gateway/hooks/mapping/transforms/child.ts";
const CHILD_CONFIG = "src/gateway/hooks/mapping/transforms/child.toml";

/** Owns the process; `kill` ends it. */
export class TransformProcess {
  readonly #child: Bun.Subprocess<"pipe", "pipe", "ignore">;
  readonly #watch: Timer | undefined;
  #received = "";
  #onLine: ((line: string) => void) | undefined;
  #fail: ((problem: AppError) => void) | undefined;
  #problem: AppError | undefined;
  /** Resolves when it is ready for a call. */
  readonly ready: Promise<void>;

  /** @param folder used to resolve packages */
  constructor(folder: string) {
    const config = `--config=${programFile(CHILD_CONFIG)}`;
    this.#child = Bun.spawn(
      [process.execPath, "--smol", "--no-install", "--no-env-file", config, programFile(CHILD)],
      { cwd: folder, env: scriptEnv(), stdin: "pipe", stdout: "pipe", stderr: "ignore" }, // passes none of our secrets
    );
    this.#read().catch(() => {}); // the exit handler reports an ended process
    void this.#child.exited.then((code) => {
      const how = this.#child.signalCode ?? `status ${code}`;
      this.#end(new AppError("runner", `it ended its process (${how})`));
    });
    if (process.platform === "linux") {
      this.#watch = setInterval(() => this.#checkMemory(), MEMORY_EVERY_MS);
      this.#watch.unref();
    }
    this.ready = this.#start();
    this.ready.catch(() => {}); // callers get the error
  }

  /** False once the process has ended or was killed. */
  get isAlive(): boolean {
    return this.#problem === undefined;
  }

  /** Throws `runner` for any fault of the module, `timeout`, and `cancelled`; each kills the process. */
  async call(call: Omit<TransformCall, "id">, limits: CallLimits): Promise<TransformReply> {
    const id = crypto.randomUUID();
    const text = lineOf({ id, ...call });
    const line = await this.#nextLine(limits, () => {
      this.#write(text).catch(() => {}); // as above
    });
    const reply = parseReply(line);
    if (reply?.id === id) return reply;
    throw this.#end(new AppError("runner", "it wrote to its standard output, which is reserved for its replies"));
  }

  async #write(text: string): Promise<void> {
    this.#child.stdin.write(text);
    await this.#child.stdin.flush();
  }

  kill(): void {
    this.#end(new AppError("cancelled", "its process was stopped"));
  }

  get exited(): Promise<unknown> {
    return this.#child.exited;
  }

  async #start(): Promise<void> {
    const line = await this.#nextLine({ timeoutMs: START_TIMEOUT_MS }, () => {});
    if (line !== READY) throw this.#end(new AppError("runner", "its process said something else than expected"));
  }

  async #nextLine({ timeoutMs, limitMs = timeoutMs, signal }: CallLimits, send: () => void): Promise<string> {
    if (this.#problem) throw this.#problem;
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const cancel = (): void => void this.#end(new AppError("cancelled", "request canceled"));
    const timer = setTimeout(() => this.#end(new AppError("timeout", `it took more than ${limitMs} ms`)), timeoutMs);
    signal?.addEventListener("abort", cancel, { once: true });
    this.#onLine = resolve;
    this.#fail = reject;
    try {
      if (signal?.aborted) cancel();
      else send();
      this.#deliver();
      return await promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
      this.#onLine = undefined;
      this.#fail = undefined;
    }
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of this.#child.stdout) {
      this.#received += decoder.decode(chunk, { stream: true });
      if (this.#received.length > REPLY_CHARS_MAX + 1024) {
        this.#end(new AppError("runner", "it wrote too much to its standard output"));
        return;
      }
      this.#deliver();
    }
  }

  /** Passes a complete line to the waiting caller. */
  #deliver(): void {
    const end = this.#received.indexOf("\n");
    if (end < 0 || !this.#onLine) return;
    const line = this.#received.slice(0, end);
    this.#received = this.#received.slice(end + 1);
    this.#onLine(line);
  }

  #checkMemory(): void {
    if ((residentBytes(this.#child.pid) ?? 0) > MEMORY_BYTES_MAX) {
      this.#end(new AppError("runner", `it took more than ${MEMORY_BYTES_MAX / 1024 / 1024} MiB of memory`));
    }
  }

  /** Keeps only the first problem. */
  #end(problem: AppError): AppError {
    if (this.#problem) return this.#problem;
    this.#problem = problem;
    clearInterval(this.#watch);
    this.#child.kill("SIGKILL");
    this.#fail?.(problem);
    return problem;
  }
}

function lineOf(call: TransformCall): string {
  try {
    return `${JSON.stringify(call)}\n`;
  } catch (error) {
    throw new AppError("too_large", "the payload nests too deep", { cause: error });
  }
}

function parseReply(line: string): TransformReply | undefined {
  try {
    const reply = JSON.parse(line) as Partial<TransformReply> | null; // its fields are checked next
    if (reply?.kind === "done") return reply as TransformReply;
    return reply?.kind === "failed" && typeof reply.reason === "string" ? (reply as TransformReply) : undefined;
  } catch {
    return undefined;
  }
}
