/** Watches one exchange with a registry: aborts it when no bytes move, or when its last caller has left. */
import { AppError } from "../../base/index.ts";
import { Transient } from "./retry.ts";

/** The creator disposes it, which also closes the rest of the exchange. */
export class StallWatch {
  readonly #gone = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly #wanted: AbortSignal;
  readonly #leave = (): void => this.#gone.abort();
  #hasStalled = false;
  readonly #stallMs: number;

  constructor({ stallMs, wanted }: { stallMs: number; wanted: AbortSignal }) {
    this.#stallMs = stallMs;
    this.#wanted = wanted;
    this.#timer = setTimeout(() => {
      this.#hasStalled = true;
      this.#gone.abort();
    }, stallMs);
    if (wanted.aborted) this.#gone.abort();
    else wanted.addEventListener("abort", this.#leave, { once: true });
  }

  /** For `fetch`. */
  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  /** Bytes arrived or were sent. */
  moved(): void {
    this.#timer.refresh();
  }

  /** Converts a failure of the exchange. @param where host, for the message */
  translate(error: unknown, where: string): Error {
    if (error instanceof AppError || error instanceof Transient) return error;
    if (this.#wanted.aborted) return new AppError("cancelled", "request canceled");
    if (this.#hasStalled) return new Transient(stalled(where, this.#stallMs), { isExplained: true });
    const { code = "", message = String(error) } = error as { code?: string; message?: string };
    const certificate = TLS[code];
    if (certificate !== undefined) {
      return new AppError("registry", `${where}: ${certificate} ('insecure' allows it)`, { cause: error });
    }
    const said = CONNECTING[code]?.(where);
    return new Transient(said ?? `${where}: ${REASONS[code] ?? message}`, {
      cause: error,
      isExplained: said !== undefined,
    });
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#wanted.removeEventListener("abort", this.#leave);
    this.#gone.abort();
  }
}

/** The usual cause if no other host is reachable. */
const ONLINE = "is this machine online? (HTTPS_PROXY is read)";

const stalled = (where: string, stallMs: number): string =>
  `nothing came from ${where} for ${stallMs / 1000} s: ${ONLINE}`;

const unknown = (where: string): string => `cannot find ${where}: ${ONLINE}`;
const refused = (where: string): string =>
  `cannot connect to ${where}: connection refused: does a registry listen there? (HTTPS_PROXY is read)`;
const unreachable = (where: string): string => `cannot reach ${where}: ${ONLINE}`;

/** Reasons for a failed connection, by the codes of `fetch` and of the system. */
const CONNECTING: Readonly<Record<string, (where: string) => string>> = {
  ENOTFOUND: unknown,
  EAI_AGAIN: unknown,
  EAI_FAIL: unknown,
  ENODATA: unknown,
  ConnectionRefused: refused,
  ECONNREFUSED: refused,
  FailedToOpenSocket: unreachable,
  EHOSTUNREACH: unreachable,
  ENETUNREACH: unreachable,
  ENETDOWN: unreachable,
  ETIMEDOUT: unreachable,
  Timeout: unreachable,
};

const UNVERIFIED = "its certificate is not signed by an authority that this machine trusts";

/** TLS failures, such as an invalid certificate: retrying does not help. */
const TLS: Readonly<Record<string, string>> = {
  EPROTO: "it does not answer in TLS",
  CERT_HAS_EXPIRED: "its certificate has expired",
  CERT_NOT_YET_VALID: "its certificate is not valid yet",
  DEPTH_ZERO_SELF_SIGNED_CERT: UNVERIFIED,
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another name",
  SELF_SIGNED_CERT_IN_CHAIN: UNVERIFIED,
  UNABLE_TO_GET_ISSUER_CERT: UNVERIFIED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNVERIFIED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNVERIFIED,
  UNKNOWN_CERTIFICATE_VERIFICATION_ERROR: "its certificate is invalid",
};

/** Codes of broken connections whose original messages would mislead here. */
const REASONS: Readonly<Record<string, string>> = {
  ConnectionClosed: "the connection was closed",
  ECONNRESET: "the connection was closed",
};
