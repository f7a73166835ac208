/** A request as mappings see it: authenticated, parsed, and without credentials. */
import type { SignatureConfig } from "../config.ts";
import { isCredentialHeader, isCredentialParameter } from "../credentials.ts";
import { credentialHeaders } from "../ingress/signatures/index.ts";

export interface MappingRequest {
  /** Below the ingress, without slashes at its ends. */
  readonly path: string;
  /** Values by name; of equal names the last. */
  readonly query: Readonly<Record<string, string>>;
  /** Values by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** Any JSON. */
  readonly payload: unknown;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** The values that paths of templates and conditions reach. */
export interface View {
  readonly path: string;
  readonly now: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: unknown;
  /** The current item of `forEach` and its index. */
  readonly item?: unknown;
  readonly index?: number;
  /** Values from a transform, for templates. */
  readonly values?: unknown;
}

/** Omits credentials: the headers of the mapping's scheme, and headers or parameters with credential-like names. */
export function viewOf(request: MappingRequest, auth: SignatureConfig | undefined): View {
  const hidden = new Set(auth ? credentialHeaders(auth) : []);
  const isShown = (name: string): boolean => !hidden.has(name) && !isCredentialHeader(name);
  return {
    path: trimSlashes(request.path),
    now: new Date(request.now).toISOString(),
    query: withoutNames(request.query, (name) => !isCredentialParameter(name)),
    headers: withoutNames(request.headers, isShown, (name) => name.toLowerCase()),
    payload: request.payload,
  };
}

/** A path below the root in request form: special characters encoded, dots resolved. */
export const asRequested = (path: string): string =>
  trimSlashes(new URL(`http://localhost/${trimSlashes(path)}`).pathname);

/** Takes linear time for any path. */
export function trimSlashes(path: string): string {
  let [start, end] = [0, path.length];
  while (path[start] === "/") start++;
  while (end > start && path[end - 1] === "/") end--;
  return path.slice(start, end);
}

function withoutNames(
  fields: Readonly<Record<string, string>>,
  isShown: (name: string) => boolean,
  spell: (name: string) => string = (name) => name,
): Record<string, string> {
  const shown = Object.entries(fields).map(([name, value]) => [spell(name), value] as const);
  return Object.fromEntries(shown.filter(([name]) => isShown(name)));
}
