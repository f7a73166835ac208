/** The ingress in `GET /openapi.json`: valid, with the right paths, and in agreement with real answers. */
import { Validator } from "@seriousme/openapi-schema-validator";
import { expect, test } from "bun:test";
import { startGateway } from "../gateway/operate/world.ts";
import { type Api, json, refusal, startHooks } from "./hooks-api.ts";
import { operationOf, schemaProblems } from "./openapi.ts";

const description = async (api: Pick<Api, "url">): Promise<any> => json(await fetch(`${api.url}/openapi.json`));

const TEMPLATE = { messageTemplate: "x" };

test("GET /openapi.json: is valid and contains the ingress", async () => {
  const mappings = [{ match: { path: "meta" }, handshake: "meta", ...TEMPLATE }];
  const api = await startHooks({ hooks: { mappings } });
  const described = await description(api);
  expect(await new Validator().validate(described)).toEqual({ valid: true });
  const paths = Object.entries<object>(described.paths).filter(([path]) => path.startsWith("/hooks/"));
  expect(paths.map(([path, item]) => [path, ...Object.keys(item).filter((key) => key !== "parameters")])).toEqual([
    ["/hooks/wake", "post"],
    ["/hooks/agent", "post"],
    ["/hooks/{name}", "post", "get"],
    ["/hooks/runs/{id}", "get"],
    ["/hooks/runs/{id}/events", "get"],
  ]);
});

test("GET /openapi.json: describes the ingress at the current hooks.path, and omits it while hooks are off", async () => {
  const api = await startHooks({ hooks: { path: "/in/coming" } });
  expect(Object.keys((await description(api)).paths)).toContain("/in/coming/wake");
  const { hooks, ...rest } = api.world.settings;
  api.world.settings = { hooks: { ...hooks, path: "/moved" }, ...rest };
  const moved = Object.keys((await description(api)).paths);
  expect(moved).toContain("/moved/wake");
  expect(moved).not.toContain("/in/coming/wake");
  api.world.settings = { hooks: { ...hooks, enabled: false }, ...rest };
  const off = await description(api);
  expect(JSON.stringify(off)).not.toMatch(/coming|moved|hookToken/);
});

test("GET /openapi.json: describes the authentication, with the query token only if that is allowed", async () => {
  const schemes = async (allowQueryToken: boolean): Promise<[string[], object[]]> => {
    const described = await description(await startHooks({ hooks: { allowQueryToken } }));
    const { security } = described.paths["/hooks/wake"].post;
    return [Object.keys(described.components.securitySchemes), security];
  };
  const [all, open] = await schemes(true);
  expect(all).toEqual(["key", "gatewayToken", "hookToken", "hookHeader", "hookQuery"]);
  expect(open).toEqual([{ hookToken: [] }, { hookHeader: [] }, { hookQuery: [] }]);
  const [strict, closed] = await schemes(false);
  expect([strict.length, closed.length]).toEqual([4, 2]);
});

test("GET /openapi.json: describes GET of a mapping only if a mapping answers such a handshake", async () => {
  const api = await startHooks({ hooks: { mappings: [{ match: { path: "a" }, ...TEMPLATE }] } });
  expect((await description(api)).paths["/hooks/{name}"]).not.toHaveProperty("get");
});

test("GET /openapi.json: a body that a schema allows is accepted without a warning, and no other is", async () => {
  const api = await startHooks({ hooks: { callbacks: { allowFromRequest: true } } });
  const described = await description(api);
  const bodies: [string, object, boolean][] = [
    ["wake", { text: "a", mode: "next-heartbeat", idempotencyKey: "k" }, true],
    ["wake", { text: "a", mode: "later" }, false],
    ["wake", { text: 5 }, false],
    ["wake", { text: "a", idempotencyKey: "k".repeat(257) }, false],
    ["agent", { message: "a", deliver: "false", timeoutSeconds: "4.5", to: 42, channel: "telegram" }, true],
    ["agent", { message: "a", deliver: 0 }, false],
    ["agent", { message: "a", timeoutSeconds: 0 }, false],
    ["agent", { message: "a", to: 1.5 }, false],
    ["agent", { message: "a", to: "x".repeat(513) }, false],
    ["agent", { message: "a", model: "" }, false],
  ];
  for (const [path, body, fits] of bodies) {
    const { schema } = described.paths[`/hooks/${path}`].post.requestBody.content["application/json"];
    expect([body, schemaProblems(schema, body) === ""]).toEqual([body, fits]);
    const response = await api.post(`/hooks/${path}`, body);
    const answer = await json(response);
    expect([body, response.ok && answer.warnings === undefined]).toEqual([body, fits]);
    const { schema: answered } = operationOf(described, response)!.responses[response.status].content[
      "application/json"
    ];
    expect(schemaProblems(answered, answer)).toBe("");
  }
});

test("GET /openapi.json: runs, their events and waiting answers match their schemas", async () => {
  const world = await startGateway();
  const described = await description(world);
  const waited = await world.hook("agent", { message: "hi" }, { headers: { prefer: "wait=60" } });
  const outcome = await json(waited);
  const run = await world.hook(`runs/${outcome.runId}`);
  const seen = [
    [waited, outcome],
    [run, await json(run)],
  ] as const;
  for (const [response, body] of seen) {
    const { schema } = operationOf(described, response)!.responses[200].content["application/json"];
    expect([response.url, schemaProblems(schema, body)]).toEqual([response.url, ""]);
  }
  const events = await world.hook(`runs/${outcome.runId}/events`);
  await events.text();
  const { content } = operationOf(described, events)!.responses[200];
  expect(Object.keys(content)).toEqual([events.headers.get("content-type")!.split(";")[0]!]);
});

test("GET /openapi.json: every test of a refusal fails on a code that the description lacks", async () => {
  const api = await startHooks();
  const response = await api.post("/hooks/wake", {});
  const strange = new Response(JSON.stringify({ ...(await json(response)), code: "not_found" }), response);
  Object.defineProperty(strange, "url", { value: response.url });
  await expect(refusal(strange)).rejects.toThrow();
});

test("GET /openapi.json: the operators' answers match their schemas, and need the gateway token", async () => {
  const mappings = [{ id: "ci", match: { path: "ci" }, messageTemplate: "Build {{payload.n}}" }];
  const queue = { keepBodies: true };
  const mail = { host: "127.0.0.1", port: 1, secure: false, user: "joe", password: "p" }; // no server listens there
  const world = await startGateway({ settings: { hooks: { mappings, queue, mail } } });
  const described = await description(world);
  const { runId } = await json(await world.hook("ci", { n: 1 }, { headers: { prefer: "wait=60" } }));
  const asked: [string, string, unknown?][] = [
    ["get", "deliveries"],
    ["get", "deliveries/{id}"],
    ["post", "deliveries/{id}/replay"],
    ["post", "deliveries/{id}/cancel"],
    ["post", "mappings/{id}/test", { payload: { n: 2 } }],
    ["get", "mail"],
    ["get", "mappings"],
    ["get", "findings"],
    ["post", "pause"],
    ["post", "resume"],
  ];
  for (const [method, path, body] of asked) {
    const operation = described.paths[`/hooks-admin/${path}`][method];
    expect(operation.security).toEqual([{ gatewayToken: [] }]);
    const id = path.startsWith("mappings") ? "ci" : runId;
    const response = await world.admin(path.replace("{id}", id), { method: method.toUpperCase(), body });
    const { schema } = operation.responses[200].content["application/json"];
    expect(schema.properties).toBeObject();
    expect([path, response.status, schemaProblems(schema, await json(response))]).toEqual([path, 200, ""]);
  }
  const { parameters } = described.paths["/hooks-admin/deliveries"].get;
  expect(parameters.map(({ name }: { name: string }) => name)).toEqual(["state", "path", "mapping", "before", "limit"]);
});
