/**
 * The command line's output: answers and tables on standard output, everything else on standard error. Every command
 * writes through this, which makes outside text plain at a terminal; on a pipe, bytes stay unchanged. Colours and
 * progress bars appear only at a terminal.
 */
import type { ReadStream } from "node:tty";
import { grey, plain, PlainText, type Drawing } from "./drawing.ts";

export interface Terminal {
  readonly input: ReadStream;
  /** For libraries that draw by themselves; give them only plain text. */
  readonly output: NodeJS.WriteStream;
  /** Like `output`, for standard error. */
  readonly errors: NodeJS.WriteStream;
  /** True if a user types and reads. */
  readonly isInteractive: boolean;
  /** True if standard error may be redrawn. */
  readonly showsProgress: boolean;
  /** Columns of standard output; undefined if it is not a terminal. */
  readonly width: number | undefined;
  /** On standard output. */
  write(text: string): void;
  /** One line on standard error. */
  note(line: string): void;
  /** Makes text that arrives in pieces safe for `draw`. */
  pieces(): (text: string) => Drawing;
  draw(drawing: Drawing): void;
  /** On standard error. */
  drawBeside(drawing: Drawing): void;
  /** In grey if colours are on. */
  grey(drawing: Drawing): Drawing;
  /** Resolves once earlier writes to standard output are flushed. */
  flush(): Promise<void>;
}

export function makeTerminal(process: NodeJS.Process, env: Readonly<Record<string, string | undefined>>): Terminal {
  const { stdin: input, stdout: output, stderr: errors } = process;
  const hasColour = output.isTTY && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  const asIs = (text: string): Drawing => text as Drawing; // a pipe interprets no sequences
  const forOutput = output.isTTY ? plain : asIs;
  const forErrors = errors.isTTY ? plain : asIs;
  // `hearth list | head -1`: the reader closed the pipe
  output.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    errors.write(`Error: cannot write to standard output: ${error.message}\n`);
    process.exit(1);
  });
  return {
    input,
    output,
    errors,
    isInteractive: input.isTTY && output.isTTY,
    showsProgress: errors.isTTY && env["TERM"] !== "dumb",
    get width() {
      return output.isTTY ? output.columns || 80 : undefined;
    },
    write: (text) => void output.write(forOutput(text)),
    note: (line) => void errors.write(`${forErrors(line)}\n`),
    pieces() {
      if (!output.isTTY) return asIs;
      const text = new PlainText();
      return (piece) => text.push(piece);
    },
    draw: (drawing) => void output.write(drawing),
    drawBeside: (drawing) => void errors.write(drawing),
    grey: (drawing) => (hasColour ? grey(drawing) : drawing),
    flush: () => new Promise((resolve) => void output.write("", () => resolve())),
  };
}
