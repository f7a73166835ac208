/**
 * Session keys: `agent:<id>:<rest>`. A key from a request always lands below `agent:<id>:hook:`, so that no spelling of
 * it names the main session or another agent's. A key says where a conversation is kept, and grants no trust.
 */
import { AppError } from "../../base/index.ts";
import type { SessionConfig } from "./config.ts";

/** The agent that `agents.defaults` describes. */
export const DEFAULT_AGENT = "main";

/** Maximum number of UTF-16 units of a key in a request. */
const KEY_LENGTH_MAX = 256;
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

/** Keys are case-insensitive. */
const fold = (key: string): string => key.normalize("NFC").toLowerCase();

/** The session that holds an agent's events and heartbeats. */
export const mainSessionKey = (session: Pick<SessionConfig, "mainKey">, agentId = DEFAULT_AGENT): string =>
  `agent:${agentId}:${fold(session.mainKey)}`;

/** The agent that a session belongs to. */
export function agentOf(sessionKey: string): string {
  return /^agent:([^:]+):/.exec(sessionKey)?.[1] ?? DEFAULT_AGENT;
}

export interface KeyQuestion {
  /** The key in the request or the mapping; undefined: a new session for the run. */
  readonly requested: string | undefined;
  readonly runId: string;
  readonly agentId?: string;
  readonly session: Pick<SessionConfig, "mainKey">;
}

export interface HookSession {
  readonly key: string;
  /** True if the session ends with its run. */
  readonly isEphemeral: boolean;
}

/** The session of a hook's run. Throws `bad_request` if the key is malformed, reserved or another agent's. */
export function hookSession({ requested, runId, agentId = DEFAULT_AGENT, session }: KeyQuestion): HookSession {
  if (requested === undefined) return { key: `agent:${agentId}:hook:${fold(runId)}`, isEphemeral: true };
  const asked = fold(requested.trim());
  if (asked === "") throw new AppError("bad_request", "sessionKey: expected some text, got none");
  if (asked.length > KEY_LENGTH_MAX) {
    const message = `sessionKey: expected at most ${KEY_LENGTH_MAX} characters, got ${asked.length}`;
    throw new AppError("bad_request", message);
  }
  if (UNPRINTABLE.test(asked)) {
    throw new AppError("bad_request", "sessionKey: expected printable characters, got control characters");
  }
  const own = `agent:${agentId}:`;
  if (asked.startsWith("agent:") && !asked.startsWith(own)) {
    throw new AppError("bad_request", "sessionKey: expected a key of this agent, got another agent's");
  }
  const rest = asked.startsWith(own) ? asked.slice(own.length) : asked;
  const key = `${own}hook:${rest.replace(/^hook:/, "")}`;
  if ([fold(session.mainKey), DEFAULT_AGENT].includes(rest) || key === mainSessionKey(session, agentId)) {
    throw new AppError(
      "bad_request",
      "sessionKey: expected a key of a hook, got the main session's, which is reserved",
    );
  }
  if (rest === "" || rest === "hook:")
    throw new AppError("bad_request", "sessionKey: expected a name after the prefix");
  return { key, isEphemeral: false };
}
