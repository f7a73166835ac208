/**
 * Where the command line writes: answers and tables on standard output, everything about them on standard error.
 * Colours and progress bars only where a person looks at them.
 */
import type { ReadStream } from "node:tty";

export interface Terminal {
  readonly input: ReadStream;
  readonly output: NodeJS.WriteStream;
  readonly errors: NodeJS.WriteStream;
  /** Whether a person types, and reads. */
  readonly isInteractive: boolean;
  /** Whether standard error may be redrawn. */
  readonly showsProgress: boolean;
  /** Columns of standard output; undefined if it is no terminal. */
  readonly width: number | undefined;
  write(text: string): void;
  /** One line on standard error. */
  note(line: string): void;
  /** Greyed where colours are shown. */
  grey(text: string): string;
}

export function makeTerminal(process: NodeJS.Process, env: Readonly<Record<string, string | undefined>>): Terminal {
  const { stdin: input, stdout: output, stderr: errors } = process;
  const hasColour = output.isTTY && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  // `hearth list | head -1`: the reader closed the pipe
  output.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
  return {
    input,
    output,
    errors,
    isInteractive: input.isTTY && output.isTTY,
    showsProgress: errors.isTTY && env["TERM"] !== "dumb",
    get width() {
      return output.isTTY ? output.columns || 80 : undefined;
    },
    write: (text) => void output.write(text),
    note: (line) => void errors.write(`${line}\n`),
    grey: (text) => (hasColour ? `\x1b[90m${text}\x1b[0m` : text),
  };
}
