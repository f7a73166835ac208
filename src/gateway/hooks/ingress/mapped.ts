/**
 * `/<name>`: a configured mapping turns any sender's request into actions. Each mapping has one credential of its own,
 * the hook token or a signature over the body; matching a body never weakens the credential that a mapping needs.
 */
import { AppError, retryAfter } from "../../../base/index.ts";
import type { HookAction } from "../action.ts";
import { acknowledgement, answerHandshake } from "./handshake.ts";
import { type Mapping, type MappingOutcome, type MappingRequest, repeatId, runMapping } from "../mapping/index.ts";
import { failureKey } from "./address.ts";
import { LOCKED_READ_MS, READ_MS, readBody, UNPROVED_READ_MS } from "./body.ts";
import { checkAction, ownModelOf } from "./checks.ts";
import type { Authenticator, Pass } from "./authenticator.ts";
import { handshakeRequest } from "./early-handshake.ts";
import { headerKey } from "./idempotency.ts";
import { readPayload } from "./payload.ts";
import type { EndpointReply, IngressDeps } from "./ports.ts";
import { type ProblemName, Refusal } from "./problems.ts";
import type { RateLimits } from "./rate-limits.ts";
import { jsonReply, textReply } from "./reply.ts";
import type { ShareLimit } from "./share-limit.ts";
import { acceptActions, type RequestContext } from "./request-context.ts";
import type { Waits } from "./waits.ts";

export interface MappedDeps extends IngressDeps {
  readonly waits: Waits;
  readonly authenticator: Authenticator;
  readonly limits: RateLimits;
  /** For bodies of unauthenticated senders. */
  readonly unproved: Reads;
  /** For bodies from locked-out addresses. */
  readonly locked: Reads;
}

/** Limits on concurrent reads and their memory. */
interface Reads {
  readonly slots: ShareLimit;
  readonly bytes: ShareLimit;
}

/** Each mapping's verdict on the sender's credentials. */
type Proofs = ReadonlyMap<Mapping, Pass | { readonly reason: string }>;

/**
 * Throws a `Refusal`.
 * @param candidates mappings that match the path
 */
export async function answerMapped(
  deps: MappedDeps,
  candidates: readonly Mapping[],
  context: RequestContext,
): Promise<EndpointReply> {
  const { settings, request, client, note, addHeaders } = context;
  const { hooks } = settings;
  const { rawBody, proofs } = await prove(deps, candidates, context);
  note({ bytes: rawBody.length });
  const contentType = request.headers.get("content-type");
  const asked: MappingRequest = {
    path: client.path,
    query: Object.fromEntries(request.url.searchParams),
    headers: Object.fromEntries(request.headers),
    payload: await readPayload(rawBody, { contentType, isMapped: true, isStrict: hooks.strict }),
    now: client.nowMs,
  };
  const claim = claimOf(context, asked, proofs);
  if (!claim) throw new Refusal("not_found", { reason: "no mapping takes this request" });
  const { mapping, pass } = claim;
  note({ mapping: mapping.id });
  if ("reason" in pass) throw deps.authenticator.refusal(client, pass.reason);
  note({ auth: pass.auth.id });
  const own = [`mapping ${mapping.id}`, mapping.config.rateLimit] as const;
  addHeaders(deps.limits.take([own, ["hooks", hooks.rateLimit]]));
  if (rawBody.length > bodyLimit(mapping, hooks.maxBodyBytes)) throw new Refusal("payload_too_large");
  const reply = claim.answer ?? (await answerProved(deps, context, { mapping, asked, pass, rawBody }));
  const isOutcome = Object.hasOwn(reply.headers, "preference-applied"); // true if the request waited for its outcome
  // a check of the address: the provider expects its own answer
  const isCheck = claim.answer !== undefined && claim.answer !== NOTHING;
  const plain = isOutcome || isCheck ? undefined : acknowledgement(mapping.config, contentType);
  const { status, headers, body } = plain ? textReply(plain, {}) : reply;
  return { ...reply, status, body, headers: { ...reply.headers, ...headers, ...pass.headers } };
}

interface Claim {
  readonly mapping: Mapping;
  readonly pass: Pass | { readonly reason: string };
  /** Set if the mapping need not run. */
  readonly answer?: EndpointReply;
}

/**
 * The mapping that owns a request. A provider's check of the address is answered whatever the conditions say; a request
 * that the conditions exclude is accepted without action, not answered with 404, because providers give up on missing
 * addresses. Both only for senders with the mapping's credential. Throws a `Refusal`.
 */
function claimOf(context: RequestContext, asked: MappingRequest, proofs: Proofs): Claim | undefined {
  const known = [...proofs].flatMap(([mapping, pass]) => ("reason" in pass ? [] : [{ mapping, pass }]));
  for (const each of known) {
    const { handshake } = each.mapping.config;
    const { payload } = asked;
    const reply =
      handshake && answerHandshake(handshake, handshakeRequest(context, { mapping: each.mapping, payload }));
    if (reply) return { ...each, answer: textReply(reply, { handshake }) };
  }
  const owner = ownerOf(asked, proofs);
  if (owner) return owner;
  const leaver = known.find(({ mapping }) => mapping.isFor(asked));
  return leaver && { ...leaver, answer: NOTHING };
}

const NOTHING = jsonReply({ status: 204, body: undefined }, { notes: { runs: 0 } });

/** Throws a `Refusal` if a condition cannot decide: another mapping may trust more. */
function ownerOf(asked: MappingRequest, proofs: Proofs): Claim | undefined {
  try {
    const [mapping, pass] = [...proofs].find(([candidate]) => candidate.takes(asked)) ?? [];
    return mapping && pass && { mapping, pass };
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== "too_large") throw error;
    throw new Refusal("text_too_long", { reason: error.message, cause: error });
  }
}

export const bodyLimit = ({ config }: Mapping, standard: number): number => config.maxBodyBytes ?? standard;

/**
 * Reads and authenticates a body. A token is checked first; a signature covers the body, which has to be read for it.
 */
async function prove(
  deps: MappedDeps,
  candidates: readonly Mapping[],
  context: RequestContext,
): Promise<{ rawBody: Uint8Array; proofs: Proofs }> {
  const { hooks } = context.settings;
  const { client } = context;
  const limitBytes = Math.max(...candidates.map((mapping) => bodyLimit(mapping, hooks.maxBodyBytes)), 0);
  const { authenticator, readMs } = deps;
  if (candidates.every(({ config }) => !config.auth)) {
    const pass = authenticator.admit(hooks, client);
    if (candidates.length === 0) throw new Refusal("not_found", { reason: "no mapping of this path" });
    const rawBody = await readBody(context.request, { limitBytes, timeoutMs: readMs?.proved ?? READ_MS });
    // the token may have been revoked meanwhile
    if (deps.settings().hooks !== hooks) authenticator.admit(deps.settings().hooks, client);
    return { rawBody, proofs: new Map(candidates.map((mapping) => [mapping, pass])) };
  }
  const takesTokens = candidates.some(({ config }) => !config.auth);
  const isKnown = takesTokens && "auth" in authenticator.byToken(hooks, client);
  const rawBody = isKnown
    ? await readBody(context.request, { limitBytes, timeoutMs: readMs?.proved ?? READ_MS })
    : await readUnproved(deps, context, limitBytes);
  const proofs: Proofs = new Map(
    candidates.map((mapping) => {
      const { auth } = mapping.config;
      const { id } = mapping;
      const now = deps.settings().hooks; // the token may have been revoked meanwhile
      return [
        mapping,
        auth ? authenticator.bySignature({ id, auth }, client, rawBody) : authenticator.byToken(now, client),
      ];
    }),
  );
  const failures = [...proofs.values()].flatMap((proof) => ("reason" in proof ? [proof.reason] : []));
  if (failures.length === proofs.size) {
    // some clients of HTTP Basic send a password only after a challenge
    const isBasic = candidates.some(({ config }) => config.auth?.scheme === "basic");
    throw authenticator.refusal(client, [...new Set(failures)].join("; "), isBasic ? "Basic" : "Bearer");
  }
  return { rawBody, proofs };
}

/**
 * Reads a body of an unauthenticated sender. The number of such reads is limited, and each address has a share; a
 * locked-out address gets a short time in a separate pool. A body that is too slow is a failed attempt.
 */
async function readUnproved(
  { authenticator, readMs, unproved, locked }: MappedDeps,
  { request, client }: RequestContext,
  limitBytes: number,
): Promise<Uint8Array> {
  const isLocked = authenticator.isLocked(client);
  const timeoutMs = isLocked ? LOCKED_READ_MS : (readMs?.unproved ?? UNPROVED_READ_MS);
  const { slots, bytes } = isLocked ? locked : unproved;
  const key = failureKey(client.address);
  let held = 0;
  const hold = (more: number): boolean => {
    const isTaken = bytes.take(key, more);
    held += isTaken ? more : 0;
    return isTaken;
  };
  try {
    return await slots.run(
      key,
      () => readBody(request, { limitBytes, timeoutMs, hold }).finally(() => bytes.give(key, held)),
      () => new Refusal("too_busy", { headers: retryAfter(1000) }),
    );
  } catch (error) {
    if (!(error instanceof Refusal) || error.problem !== "body_timeout") throw error;
    const failure = authenticator.refusal(client, "the body came too slowly");
    throw isLocked ? failure : error;
  }
}

interface Proved {
  readonly mapping: Mapping;
  readonly asked: MappingRequest;
  readonly pass: Pass;
  readonly rawBody: Uint8Array;
}

async function answerProved(
  deps: MappedDeps,
  context: RequestContext,
  { mapping, asked, pass, rawBody }: Proved,
): Promise<EndpointReply> {
  const { transformsDir, transformTimeoutMs } = deps.mappings(context.settings);
  const channels = deps.checks.channels();
  const outcome = await runMapping(mapping, asked, {
    transforms: deps.transforms,
    transformsDir,
    transformTimeoutMs,
    isChannel: (name) => channels.find(name) !== undefined,
    signal: context.request.signal,
  });
  if (outcome.kind === "nothing") return NOTHING;
  if (outcome.kind === "failed") throw refusalOf(outcome);
  const header = headerKey(context.request.headers);
  const deliveryId = repeatId(mapping, { request: asked, rawBody, signedId: pass.deliveryId });
  const { actions, warnings } = await checkAll(deps, mapping, outcome.actions);
  return acceptActions(deps, context, {
    pass: { ...pass, ...(deliveryId === undefined ? {} : { deliveryId }) },
    rawBody,
    actions,
    warnings: [...header.warnings, ...outcome.warnings, ...warnings],
    idempotencyKey: header.key,
    mappingId: mapping.id,
    payload: asked.payload,
  });
}

type Failed = Extract<MappingOutcome, { kind: "failed" }>;

const FAILURES = {
  bad_request: "mapping_rejected",
  too_large: "mapping_rejected",
  busy: "too_busy",
  cancelled: "client_gone",
  mapping_failed: "mapping_failed",
} as const satisfies Record<Failed["code"], ProblemName>;

const refusalOf = ({ code, reason }: Failed): Refusal =>
  new Refusal(FAILURES[code], { reason, headers: code === "busy" ? retryAfter(1000) : {} });

async function checkAll(
  { checks }: IngressDeps,
  { config }: Mapping,
  actions: readonly HookAction[],
): Promise<{ actions: readonly HookAction[]; warnings: readonly string[] }> {
  const checked = await Promise.all(actions.map((action) => checkAction(action, checks, ownModelOf(config))));
  const warnings = new Set(checked.flatMap((each) => each.warnings));
  return { actions: checked.map(({ action }) => action), warnings: [...warnings] };
}
