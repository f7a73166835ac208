/**
 * Where the command line writes: answers and tables on standard output, everything about them on standard error. Every
 * command writes through this, which makes text of others plain on its way to a terminal; on a pipe, bytes stay as they
 * are. Colours and progress bars only where a person looks at them.
 */
import type { ReadStream } from "node:tty";
import { grey, plain, PlainText, type Drawing } from "./drawing.ts";

export interface Terminal {
  readonly input: ReadStream;
  /** For libraries that draw by themselves; they get text that is plain. */
  readonly output: NodeJS.WriteStream;
  /** As `output`. */
  readonly errors: NodeJS.WriteStream;
  /** Whether a person types, and reads. */
  readonly isInteractive: boolean;
  /** Whether standard error may be redrawn. */
  readonly showsProgress: boolean;
  /** Columns of standard output; undefined if it is not a terminal. */
  readonly width: number | undefined;
  /** On standard output. */
  write(text: string): void;
  /** One line on standard error. */
  note(line: string): void;
  /** Makes text that comes in pieces ready for `draw`. */
  pieces(): (text: string) => Drawing;
  draw(drawing: Drawing): void;
  /** On standard error. */
  drawBeside(drawing: Drawing): void;
  /** Greyed where colours are shown. */
  grey(drawing: Drawing): Drawing;
  /** Resolves once what was written to standard output is on its way. */
  flush(): Promise<void>;
}

export function makeTerminal(process: NodeJS.Process, env: Readonly<Record<string, string | undefined>>): Terminal {
  const { stdin: input, stdout: output, stderr: errors } = process;
  const hasColour = output.isTTY && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  const asIs = (text: string): Drawing => text as Drawing; // a pipe obeys no sequences
  const forOutput = output.isTTY ? plain : asIs;
  const forErrors = errors.isTTY ? plain : asIs;
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
