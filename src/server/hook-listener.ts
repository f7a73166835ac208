/**
 * The separate listener of hooks, `hooks.listen`: it serves only `hooks.path`, however a proxy in front rewrites a
 * path. It follows the configuration: a new address is opened before the old one is closed.
 */
import { lstatSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { AppError, type Logger, messageOf } from "../base/index.ts";
import { type HooksListen, parseListen, UNIX_PEER } from "../gateway/index.ts";
import type { HookAnswers } from "./routes/hooks.ts";
import { startBare, type RunningServer } from "./http/serve.ts";
import type { TlsPair } from "./http/tls.ts";

/** Owner and group may connect: a proxy that runs as another user joins the group. */
const SOCKET_UMASK = 0o117;
/** Time for running requests to finish at a former address. */
const LEAVE_MS = 30_000;

export interface HookListenerParts {
  readonly hooks: Pick<HookAnswers, "answerAlone">;
  /** The current `hooks.listen`; undefined: hooks are off, or have no separate listener. */
  readonly listen: () => string | undefined;
  readonly onChange: (listener: () => void) => void;
  readonly log: Logger;
  /** The certificate, for addresses with a port; undefined: plain HTTP. */
  readonly tls: TlsPair | undefined;
}

export interface HookListener {
  /** Undefined: there is no listener. */
  url(): string | undefined;
  /** Uses another certificate for new connections. */
  renew(tls: TlsPair): Promise<void>;
  stop(graceMs: number): Promise<void>;
}

/** Throws `conflict` if the address is in use, `bad_request` if it is unusable. */
export async function startHookListener(parts: HookListenerParts): Promise<HookListener> {
  const { hooks, listen, onChange, log } = parts;
  let { tls } = parts;
  let text = listen();
  let open = text === undefined ? undefined : await openAt(text, hooks, tls);
  let isStopped = false;
  let moving = Promise.resolve();
  const move = async (): Promise<void> => {
    const wanted = listen();
    if (isStopped || wanted === text) return;
    const next = wanted === undefined ? undefined : await openAt(wanted, hooks, tls);
    const left = open;
    [text, open] = [wanted, next];
    log.info("moved the hooks listener", { url: next?.url });
    void left?.stop(LEAVE_MS);
  };
  onChange(() => {
    moving = moving.then(move).catch((error: unknown) => {
      log.error("the hooks listener could not move to its new address", { error: messageOf(error) });
    });
  });
  return {
    url: () => open?.url,
    async renew(pair) {
      tls = pair;
      await open?.renew(pair);
    },
    async stop(graceMs) {
      isStopped = true;
      await moving;
      await open?.stop(graceMs);
    },
  };
}

async function openAt(
  text: string,
  hooks: HookListenerParts["hooks"],
  tls: TlsPair | undefined,
): Promise<RunningServer> {
  const place = parseListen(text);
  if (!place) throw new AppError("bad_request", `hooks.listen: cannot be read: '${text}'`); // validated with the file
  if ("unix" in place) return openSocket(place, hooks);
  const answer: Parameters<typeof startBare>[1] = (request, server) =>
    hooks.answerAlone(request, () => server.requestIP(request)?.address);
  return startBare(place, answer, tls);
}

async function openSocket(
  place: Extract<HooksListen, { unix: string }>,
  hooks: HookListenerParts["hooks"],
): Promise<RunningServer> {
  await removeStale(place.unix);
  const umask = process.umask(SOCKET_UMASK); // set before the socket exists, so that it never has another mode
  try {
    return startBare(place, (request) => hooks.answerAlone(request, () => UNIX_PEER));
  } finally {
    process.umask(umask);
  }
}

/** Removes the socket of a killed server; never one in use, nor any other file. */
async function removeStale(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found) return;
  if (!found.isSocket()) throw new AppError("conflict", `cannot listen on unix:${path}: there is a file of that name`);
  if (await isStale(path)) rmSync(path, { force: true });
}

/** Only a refused connection proves that the socket is stale. */
function isStale(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.on("connect", () => {
      socket.destroy();
      resolve(false);
    });
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED"));
  });
}
