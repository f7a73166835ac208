/** Messages between the server and a transform's process: one line of JSON each way. */

/** A transform's input: never credentials. */
export interface TransformInput {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: unknown;
  readonly item?: unknown;
  readonly index?: number;
}

export interface TransformCall {
  /** The reply repeats it: a module cannot forge a reply. */
  readonly id: string;
  /** A file URL. */
  readonly module: string;
  readonly export?: string | undefined;
  /** Absent: the module is loaded and checked, but not called. */
  readonly input?: TransformInput;
}

/** `output` is absent for undefined. */
export type TransformReply =
  | { readonly id: string; readonly kind: "done"; readonly output?: unknown }
  | { readonly id: string; readonly kind: "failed"; readonly reason: string };

/** Maximum number of characters of a reply's line. */
export const REPLY_CHARS_MAX = 4 * 1024 * 1024;
/** A process writes this once, when it is ready. */
export const READY = "ready";
