/**
 * The certificate and key of a server that speaks TLS itself. The files are read again when they change; an unusable
 * pair leaves the last good one in use.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { AppError, type Logger, messageOf } from "../../base/index.ts";
import type { TlsFiles } from "../../base/config/index.ts";
import { readingSync } from "../../base/system.ts";

/** PEM texts. */
export interface TlsPair {
  readonly cert: string;
  readonly key: string;
}

/** A file of certificates, or of a key, has a few KB. */
const BYTES_MAX = 2 ** 20;
/** Polled, because watching would miss files behind links that a program replaces, as Kubernetes and certbot do. */
const EVERY_MS = 2000;

/**
 * Throws `bad_request` naming the file: one that cannot be read, is not PEM, or has expired, and a key of another
 * certificate.
 */
export function readTls({ certificate: certPath, key: keyPath }: TlsFiles, now: () => number = Date.now): TlsPair {
  const cert = readPem("tls.certificate", certPath);
  const key = readPem("tls.key", keyPath);
  const own = parsed("tls.certificate", certPath, "a certificate in PEM", () => new X509Certificate(cert));
  checkDates(own, certPath, now());
  if (!own.checkPrivateKey(privateKey(key, keyPath))) {
    throw new AppError("bad_request", `tls.key: '${keyPath}' is not the key of the certificate '${certPath}'`);
  }
  return { cert, key };
}

function readPem(setting: string, path: string): string {
  try {
    return readingSync(path, () => {
      const { size } = statSync(path);
      if (size > BYTES_MAX) throw new AppError("bad_file", `${path}: expected at most ${BYTES_MAX} bytes, got ${size}`);
      return readFileSync(path, "utf8");
    });
  } catch (error) {
    throw new AppError("bad_request", `${setting}: ${messageOf(error)}`, { cause: error });
  }
}

function privateKey(key: string, path: string): KeyObject {
  if (/ENCRYPTED/.test(key)) {
    throw new AppError("bad_request", `tls.key: '${path}': expected a key without a passphrase, got an encrypted one`);
  }
  return parsed("tls.key", path, "a private key in PEM", () => createPrivateKey(key));
}

function parsed<T>(setting: string, path: string, expected: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new AppError("bad_request", `${setting}: '${path}': expected ${expected}`, { cause: error });
  }
}

function checkDates({ validFrom, validTo }: X509Certificate, path: string, nowMs: number): void {
  if (Date.parse(validTo) < nowMs)
    throw new AppError("bad_request", `tls.certificate: '${path}' expired on ${validTo}`);
  if (Date.parse(validFrom) > nowMs) {
    throw new AppError("bad_request", `tls.certificate: '${path}' is not valid before ${validFrom}`);
  }
}

interface Watching {
  readonly log: Pick<Logger, "info" | "warn">;
  /** Called with each new pair. */
  readonly onChange: (pair: TlsPair) => void | Promise<void>;
  readonly everyMs?: number;
}

/** Returns a function that ends the watch. */
export function watchTls(files: TlsFiles, { log, onChange, everyMs = EVERY_MS }: Watching): () => void {
  let last = stampOf(files);
  const look = async (): Promise<void> => {
    const stamp = stampOf(files);
    if (stamp === last) return;
    last = stamp;
    try {
      await onChange(readTls(files));
      log.info("the new certificate is in use", { path: files.certificate });
    } catch (error) {
      log.warn("the new certificate is unusable: the last one stays in use", { error: messageOf(error) });
    }
  };
  const timer = setInterval(() => void look(), everyMs);
  timer.unref();
  return () => clearInterval(timer);
}

/** Differs after any change of either file. */
function stampOf({ certificate, key }: TlsFiles): string {
  return [certificate, key]
    .map((path) => {
      const found = statSync(path, { throwIfNoEntry: false });
      return found ? `${found.ino} ${found.size} ${found.mtimeMs} ${found.ctimeMs}` : "";
    })
    .join("\n");
}
