/** What goes between the server and a process that runs a transform: one line of JSON each way. */

/** What a transform is called with: never credentials. */
export interface TransformInput {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: unknown;
  readonly item?: unknown;
  readonly index?: number;
}

export interface TransformCall {
  /** The reply has the same: a module cannot pass off a line of its own as one. */
  readonly id: string;
  /** A file URL. */
  readonly module: string;
  readonly export?: string | undefined;
  /** Absent: the module is loaded and looked at, nothing is called. */
  readonly input?: TransformInput;
}

/** `output` is absent for undefined. */
export type TransformReply =
  | { readonly id: string; readonly kind: "done"; readonly output?: unknown }
  | { readonly id: string; readonly kind: "failed"; readonly reason: string };

/** Characters of a reply's line. */
export const REPLY_CHARS_MAX = 4 * 1024 * 1024;
/** What a process says once, when it can be called. */
export const READY = "ready";
