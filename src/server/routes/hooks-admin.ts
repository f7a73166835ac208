/** `/hooks-admin`: deliveries and mappings for operators, behind the gateway token. */
import { Elysia } from "elysia";
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
  replayedSchema,
} from "../../gateway/index.ts";
import { AppError, unexpected } from "../../base/index.ts";
import { jsonSchemaOf } from "../../base/schema.ts";
import { readRequest } from "../http/body.ts";
import type { RouteDeps } from "./deps.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { describe, type RouteNote } from "../schema/describe.ts";
import { DryRunBody, NoBody, VerdictBody } from "../schema/hooks-admin.ts";

type Work = (admin: Admin, exchange: Exchange) => object | Promise<object>;

/** The API description of one of these routes. */
const operation = (summary: string, answer: TSchema, more: Pick<RouteNote, "body" | "parameters"> = {}) =>
  describe({ api: "gateway", summary, reply: "json", answer: jsonSchemaOf(answer), ...more });

const filters = () =>
  Object.entries(filterFields).map(([name, schema]) => ({
    name,
    in: "query" as const,
    required: false,
    schema: jsonSchemaOf(schema),
  }));

const NO_GATEWAY =
  "no gateway is configured: a section hooks, agents, channels or session in the server's configuration file makes one";

interface Peer {
  readonly request: Request;
  readonly server: { requestIP(request: Request): { readonly address: string } | null } | null;
}

export function hooksAdminRoutes(deps: RouteDeps) {
  const answer = ({ request, server }: Peer, work: Work): Promise<Response> =>
    deps.answer(request, async (exchange): Promise<Reply> => {
      const { admin } = deps.gateway ?? {};
      if (!admin) throw new AppError("not_found", NO_GATEWAY);
      admin.admit(request.headers.get("authorization"), server?.requestIP(request)?.address);
      return { kind: "json", body: await work(admin, exchange) };
    });
  return new Elysia()
    .use(gatewayRoutes(answer))
    .get(
      "/hooks-admin/deliveries",
      (at) => answer(at, (admin, { request }) => admin.list(new URL(request.url).searchParams)),
      {
        detail: operation("List deliveries, newest first", pageSchema, { parameters: filters() }),
      },
    )
    .get("/hooks-admin/deliveries/:id", (at) => answer(at, (admin) => admin.find(at.params.id)), {
      detail: operation("All that is known of a delivery and its runs", detailsSchema),
    })
    .post("/hooks-admin/deliveries/:id/replay", (at) => answer(at, (admin) => admin.replay(at.params.id)), {
      parse: "none",
      detail: operation("Run a delivery or run again", replayedSchema, { body: NoBody }),
    })
    .post(
      "/hooks-admin/deliveries/:id/cancel",
      (at) => answer(at, async (admin) => ({ runs: await admin.cancel(at.params.id) })),
      {
        parse: "none",
        detail: operation("End a delivery's runs", cancelledSchema, { body: NoBody }),
      },
    )
    .get("/hooks-admin/mail", (at) => answer(at, (admin) => admin.mail()), {
      detail: operation("How the listener of the mailbox is doing", mailStatusSchema),
    })
    .post(
      "/hooks-admin/mappings/:id/test",
      (at) => answer(at, (admin, exchange) => test(admin, at.params.id, exchange)),
      {
        parse: "none",
        detail: operation("What a mapping would make of a request; nothing is dispatched", dryRunSchema, {
          body: DryRunBody,
        }),
      },
    );
}

/** Routes about the gateway's setup and state. */
const gatewayRoutes = (answer: (at: Peer, work: Work) => Promise<Response>) =>
  new Elysia()
    .get("/hooks-admin/mappings", (at) => answer(at, (admin) => ({ mappings: admin.mappings() })), {
      detail: operation("List mappings, in the order in which they are tried", mappingsSchema),
    })
    .get("/hooks-admin/nodes", (at) => answer(at, async (admin) => ({ nodes: await admin.nodes() })), {
      detail: operation("List the servers that share the database, and their leases", nodesSchema),
    })
    .get("/hooks-admin/approvals", (at) => answer(at, async (admin) => ({ approvals: await admin.approvals() })), {
      detail: operation("List the calls of tools that wait for an approval, the oldest first", approvalsSchema),
    })
    .post(
      "/hooks-admin/approvals/:code",
      (at) => answer(at, (admin, exchange) => decide(admin, at.params.code, exchange)),
      {
        parse: "none",
        detail: operation("Allow a call once, or refuse it", decidedSchema, { body: VerdictBody }),
      },
    )
    .get("/hooks-admin/findings", (at) => answer(at, async (admin) => ({ findings: await admin.findings() })), {
      detail: operation("What an audit of the configuration finds, worst first", findingsSchema),
    })
    .post("/hooks-admin/pause", (at) => answer(at, (admin) => paused(admin, true)), {
      parse: "none",
      detail: operation(
        "Begin no turn, on any server of the database, until `resume`, whatever is restarted meanwhile",
        pausedSchema,
        {
          body: NoBody,
        },
      ),
    })
    .post("/hooks-admin/resume", (at) => answer(at, (admin) => paused(admin, false)), {
      parse: "none",
      detail: operation("Begin turns again", pausedSchema, { body: NoBody }),
    });

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
