/** A user at a terminal: types, and waits for output. */
import { HEARTH } from "../program.ts";
import { eventually, isolatedEnv } from "./hearth.ts";

export interface Person {
  readonly child: Bun.Subprocess;
  /** Types, after clearing earlier output. */
  types(keys: string, expected: string | RegExp): Promise<void>;
  sees(what: string | RegExp): Promise<boolean>;
  screen(): string;
  /** The exit code, once all output is on the screen: it may come after the end of the process. */
  ended(): Promise<number>;
}

/** Starts a command at a terminal of 80 columns. */
export function sitDownAt(args: readonly string[], home: string, env: Record<string, string>): Person {
  let screen = "";
  const decoder = new TextDecoder();
  const output = Promise.withResolvers<void>();
  const child = Bun.spawn([...HEARTH, ...args], {
    env: isolatedEnv(home, { TERM: "xterm", ...env }),
    terminal: {
      cols: 80,
      rows: 24,
      data: (_, bytes) => void (screen += decoder.decode(bytes, { stream: true })),
      exit: () => output.resolve(),
    },
  });
  const sees = (what: string | RegExp): Promise<boolean> =>
    eventually(() => (typeof what === "string" ? screen.includes(what) : what.test(screen)), 60_000);
  return {
    child,
    async types(keys, expected) {
      screen = "";
      child.terminal!.write(keys);
      if (!(await sees(expected))) throw new Error(`expected ${expected}, saw ${JSON.stringify(screen)}`);
    },
    sees,
    screen: () => screen,
    async ended() {
      await output.promise;
      return child.exited;
    },
  };
}
