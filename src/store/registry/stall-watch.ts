/** Watches one exchange with a registry: gives it up when nothing moves, or when its last caller has left. */
import { AppError } from "../../base/errors.ts";
import { Transient } from "./retry.ts";

/** Whoever makes one disposes it, which also closes what is left of the exchange. */
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

  /** Something arrived or went out. */
  moved(): void {
    this.#timer.refresh();
  }

  /** What a failure of the exchange means. @param where host, for the message */
  translate(error: unknown, where: string): Error {
    if (error instanceof AppError || error instanceof Transient) return error;
    if (this.#wanted.aborted) return new AppError("cancelled", "request canceled");
    if (this.#hasStalled) return new Transient(`${where}: nothing moved for ${this.#stallMs / 1000} s`);
    const { code = "" } = error as { code?: string }; // whatever fetch throws
    const message = `${where}: ${reasonOf(error)}`;
    if (!UNTRUSTED.has(code)) return new Transient(message, { cause: error });
    return new AppError("registry", `${message} ('insecure' allows it)`, { cause: error });
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#wanted.removeEventListener("abort", this.#leave);
    this.#gone.abort();
  }
}

/** No TLS, or a certificate that does not hold: it will be no other next time. */
const UNTRUSTED: ReadonlySet<string> = new Set([
  "EPROTO",
  "CERT_HAS_EXPIRED",
  "CERT_NOT_YET_VALID",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

/** Codes whose messages give advice that does not fit here. */
const REASONS: Readonly<Record<string, string>> = {
  ConnectionRefused: "connection refused",
  ECONNREFUSED: "connection refused",
  FailedToOpenSocket: "cannot connect",
  ConnectionClosed: "the connection was closed",
  ECONNRESET: "the connection was closed",
};

function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string }; // whatever fetch throws
  return REASONS[code ?? ""] ?? message ?? String(error);
}
