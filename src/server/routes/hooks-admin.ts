/** `/hooks-admin`: deliveries and mappings for operators, behind the gateway token. */
import { t } from "elysia";
import type { TSchema } from "@sinclair/typebox";
import {
  type Admin,
  approvalsSchema,
  cancelledSchema,
  decidedSchema,
  detailsSchema,
  dryRunSchema,
  filterFields,
  findingsSchema,
  mailStatusSchema,
  mappingsSchema,
  nodesSchema,
  pageSchema,
  pausedSchema,
  REPLAYABLE,
  replayedPageSchema,
  replayedSchema,
} from "../../gateway/index.ts";
import { AppError, isObject, unexpected } from "../../base/index.ts";
import { jsonSchemaOf } from "../../base/schema.ts";
import { readJson, readRequest } from "../http/body.ts";
import { decode } from "../http/decode.ts";
import type { Exchange } from "../http/exchange.ts";
import type { RouteNote } from "../schema/describe.ts";
import { get, type RouteInput, post, type Route } from "./route.ts";

const DryRunBody = t.Object(
  {
    payload: t.Optional(t.Unknown()),
    body: t.Optional(t.String({ description: "In place of `payload`: the body as its sender writes it, in base64" })),
    headers: t.Optional(t.Record(t.String(), t.String())),
    query: t.Optional(t.Record(t.String(), t.String())),
  },
  { title: "DryRunRequest" },
);
export type DryRunBody = typeof DryRunBody.static;

const VerdictBody = t.Object(
  {
    verdict: t.String({ description: '"yes" or "no"' }),
    digest: t.Optional(t.String({ description: "Digest of the call that was shown; another one is refused" })),
  },
  { title: "Verdict" },
);

const ReplayBody = t.Object(
  {
    what: t.String({ description: '"dead": runs that were given up; "replies": failed replies, without a new turn' }),
    mapping: t.Optional(t.String({ description: "Only runs of this mapping" })),
    path: t.Optional(t.String({ description: "Only runs received at this path" })),
    since: t.Optional(t.Number({ description: "Epoch milliseconds: only runs that ended then or later" })),
    after: t.Optional(t.String({ description: "`next` of the previous page" })),
    dryRun: t.Optional(t.Boolean({ description: "Only count" })),
  },
  { title: "ReplayRequest" },
);

/** No fields: all parameters are in the URL. */
const NoBody = t.Object({}, { title: "NoFields" });

type Work = (admin: Admin, exchange: Exchange, params: RouteInput["params"]) => object | Promise<object>;

/** A handler for the gateway's operators. */
const byAdmin =
  (work: Work): Route["handler"] =>
  async ({ gateway }, exchange, { params, peer }) => {
    const { admin } = gateway ?? {};
    if (!admin) throw new AppError("not_found", NO_GATEWAY);
    admin.admit(exchange.request.headers.get("authorization"), peer);
    return { kind: "json", body: await work(admin, exchange, params) };
  };

/** The API description of one of these routes. */
const note = (summary: string, answer: TSchema, more: Pick<RouteNote, "body" | "parameters"> = {}): RouteNote => ({
  api: "gateway",
  summary,
  answer: jsonSchemaOf(answer),
  ...more,
});

const filters = () =>
  Object.entries(filterFields).map(([name, schema]) => ({
    name,
    in: "query" as const,
    required: false,
    schema: jsonSchemaOf(schema),
  }));

const NO_GATEWAY =
  "no gateway is configured: a section hooks, agents, channels or session in the server's configuration file makes one";

const PATH = "/hooks-admin";

export const hooksAdminRoutes = (): Route[] => [...setupRoutes(), ...deliveryRoutes()];

/** Routes about the gateway's setup and state. */
const setupRoutes = (): Route[] => [
  get(
    `${PATH}/mappings`,
    byAdmin((admin) => ({ mappings: admin.mappings() })),
    note("List mappings, in the order in which they are tried", mappingsSchema),
  ),
  get(
    `${PATH}/nodes`,
    byAdmin(async (admin) => ({ nodes: await admin.nodes() })),
    note("List the servers that share the database, and their leases", nodesSchema),
  ),
  get(
    `${PATH}/approvals`,
    byAdmin(async (admin) => ({ approvals: await admin.approvals() })),
    note("List the calls of tools that wait for an approval, the oldest first", approvalsSchema),
  ),
  post(
    `${PATH}/approvals/:code`,
    byAdmin((admin, exchange, { code = "" }) => decide(admin, code, exchange)),
    note("Allow a call once, or refuse it", decidedSchema, { body: VerdictBody }),
  ),
  get(
    `${PATH}/findings`,
    byAdmin(async (admin) => ({ findings: await admin.findings() })),
    note("What an audit of the configuration finds, worst first", findingsSchema),
  ),
  post(
    `${PATH}/pause`,
    byAdmin((admin) => paused(admin, true)),
    note("Begin no turn, on any server of the database, until `resume`, also after restarts", pausedSchema, {
      body: NoBody,
    }),
  ),
  post(
    `${PATH}/resume`,
    byAdmin((admin) => paused(admin, false)),
    note("Begin turns again", pausedSchema, { body: NoBody }),
  ),
];

const deliveryRoutes = (): Route[] => [
  get(
    `${PATH}/deliveries`,
    byAdmin((admin, { request }) => admin.list(new URL(request.url).searchParams)),
    note("List deliveries, newest first", pageSchema, { parameters: filters() }),
  ),
  get(
    `${PATH}/deliveries/:id`,
    byAdmin((admin, _, { id = "" }) => admin.find(id)),
    note("All that is known of a delivery and its runs", detailsSchema),
  ),
  post(
    `${PATH}/deliveries/:id/replay`,
    byAdmin((admin, _, { id = "" }) => admin.replay(id)),
    note("Run a delivery or run again", replayedSchema, { body: NoBody }),
  ),
  post(
    `${PATH}/replay`,
    byAdmin((admin, exchange) => replayAll(admin, exchange)),
    note("Run all again that were given up, or send all failed replies again: one page", replayedPageSchema, {
      body: ReplayBody,
    }),
  ),
  post(
    `${PATH}/deliveries/:id/cancel`,
    byAdmin(async (admin, _, { id = "" }) => ({ runs: await admin.cancel(id) })),
    note("End a delivery's runs", cancelledSchema, { body: NoBody }),
  ),
  get(
    `${PATH}/mail`,
    byAdmin((admin) => admin.mail()),
    note("How the listener of the mailbox is doing", mailStatusSchema),
  ),
  post(
    `${PATH}/mappings/:id/test`,
    byAdmin((admin, exchange, { id = "" }) => test(admin, id, exchange)),
    note("What a mapping would make of a request; nothing is dispatched", dryRunSchema, { body: DryRunBody }),
  ),
];

/** Refuses unknown fields: without a misspelt filter, more runs would be repeated than meant. */
async function replayAll(admin: Admin, { request }: Exchange): Promise<object> {
  const given = await readJson(request);
  const known = Object.keys(ReplayBody.properties);
  const isKnown = (key: string): boolean => known.includes(key) || key === "stream"; // the command line's, on every body
  const unknown = isObject(given) ? Object.keys(given).find((key) => !isKnown(key)) : undefined;
  if (unknown !== undefined) {
    throw new AppError("bad_request", `unknown field '${unknown.slice(0, 80)}'; known: ${known.join(", ")}`);
  }
  const { what, mapping: mappingId, dryRun = false, since = 0, path, after } = decode(ReplayBody, given);
  const one = REPLAYABLE.find((each) => each === what);
  if (!one) throw unexpected("what", REPLAYABLE.map((each) => `"${each}"`).join(" or "), what);
  if (!Number.isSafeInteger(since) || since < 0) throw unexpected("since", "a whole number of milliseconds", since);
  return admin.replayAll({ what: one, mappingId, path, since, after, isDryRun: dryRun });
}

async function decide(admin: Admin, code: string, { request }: Exchange): Promise<object> {
  const { verdict, digest } = await readRequest(request, VerdictBody);
  if (verdict !== "yes" && verdict !== "no") throw unexpected("verdict", '"yes" or "no"', verdict);
  return { approval: await admin.decide(code, { verdict, digest }), verdict };
}

async function paused(admin: Admin, isPaused: boolean): Promise<{ readonly paused: boolean }> {
  await admin.setPaused(isPaused);
  return { paused: admin.isPaused() };
}

async function test(admin: Admin, id: string, { request }: Exchange): Promise<object> {
  const { payload, body, headers = {}, query = {} } = await readRequest(request, DryRunBody);
  if ((payload === undefined) === (body === undefined)) throw new AppError("bad_request", "expected payload or body");
  const spelled = Object.entries(texts(headers, "headers")).map(([name, value]) => [name.toLowerCase(), value]);
  const rawBody = body === undefined ? {} : { rawBody: bytesOf(body) };
  return admin.test(id, { payload, ...rawBody, headers: Object.fromEntries(spelled), query: texts(query, "query") });
}

function bytesOf(base64: string): Uint8Array {
  const bytes = Buffer.from(base64, "base64");
  if (bytes.toString("base64") !== base64) throw new AppError("bad_request", "body: expected base64");
  return bytes;
}

function texts(fields: Readonly<Record<string, unknown>>, name: string): Readonly<Record<string, string>> {
  const bad = Object.entries(fields).find(([, value]) => typeof value !== "string");
  if (bad) throw new AppError("bad_request", `${name}.${bad[0]}: expected a text, got ${typeof bad[1]}`);
  return fields as Record<string, string>; // checked above
}
