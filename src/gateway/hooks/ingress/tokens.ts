/**
 * Hook tokens: their places in a request, and the check against the configured ones. It compares digests of all of
 * them, so that the answer's timing reveals nothing about any token.
 */
import { timingSafeEqual } from "node:crypto";
import type { HooksConfig } from "../config.ts";
import { trimSlashes } from "../mapping/request.ts";

/** The id of `hooks.token`. */
export const MAIN_TOKEN = "main";

export interface Credential {
  readonly from: "bearer" | "header" | "query";
  readonly value: string;
}

/** The first one found counts: a later valid one does not replace a wrong one. */
export function findCredential(headers: Headers, query: URLSearchParams): Credential | undefined {
  const bearer = /^bearer\s+(.*)$/i.exec(headers.get("authorization")?.trim() ?? "")?.[1]?.trim();
  if (bearer) return { from: "bearer", value: bearer };
  const header = headers.get("x-gateway-token")?.trim();
  if (header) return { from: "header", value: header };
  const inQuery = query.get("token")?.trim();
  return inQuery ? { from: "query", value: inQuery } : undefined;
}

export type TokenVerdict =
  | { readonly ok: true; readonly id: string }
  | { readonly ok: false; readonly reason: "wrong" | "expired" | "not for this path" };

/** @param at.path relative to the ingress, without slashes at its ends */
export function checkToken(
  { token, tokens }: Pick<HooksConfig, "token" | "tokens">,
  { value, path, nowMs }: { value: string; path: string; nowMs: number },
): TokenVerdict {
  const given = digest(value);
  const known = [...(token === undefined ? [] : [{ id: MAIN_TOKEN, token }]), ...tokens];
  const [found] = known.filter((each) => timingSafeEqual(digest(each.token), given));
  if (!found) return { ok: false, reason: "wrong" };
  const { expiresAt, paths } = { expiresAt: undefined, paths: undefined, ...found };
  if (expiresAt !== undefined && Date.parse(expiresAt) <= nowMs) return { ok: false, reason: "expired" };
  const isHere = paths === undefined || paths.some((each) => trimSlashes(each) === path);
  return isHere ? { ok: true, id: found.id } : { ok: false, reason: "not for this path" };
}

const digest = (text: string): Buffer => Bun.CryptoHasher.hash("sha256", text);
