import { Validator } from "@seriousme/openapi-schema-validator";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { makeHarness, type Harness } from "./harness.ts";

const ROOT = join(import.meta.dir, "../..");
let harness: Harness;
beforeEach(async () => void (harness = await makeHarness()));
afterEach(() => harness.close());

const METHODS = ["get", "put", "post", "delete", "head", "patch"] as const;

async function description(): Promise<Record<string, any>> {
  return (await harness.call("GET", "/openapi.json")).json() as Promise<Record<string, any>>;
}

test("the description is valid OpenAPI", async () => {
  expect(await new Validator().validate(await description())).toEqual({ valid: true });
});

/** Operations whose answer does not depend on a body. */
const NO_BODY = new Set([
  "/api/me",
  "/api/signout",
  "/api/experimental/web_search",
  "/api/experimental/web_fetch",
  "/v1/responses/:id/cancel",
]);

test("every route is described with its request and its responses", async () => {
  const { paths } = await description();
  const routes = harness.app.routes.filter(({ path }) => !/^\/(docs|ui)\/:file$/.test(path));
  expect(routes.length).toBeGreaterThan(20);
  for (const { method, path } of routes) {
    const pattern = path.replace(/:(\w+)/g, "{$1}").replace("*", "{model}");
    const operation = paths[pattern]?.[method.toLowerCase()];
    expect([method, path, typeof operation?.summary]).toEqual([method, path, "string"]);
    expect(Object.keys(operation.responses).length).toBeGreaterThan(1);
    if (method === "POST" && !NO_BODY.has(path)) expect([path, operation.requestBody?.required]).toEqual([path, true]);
  }
});

test("documents name every route", async () => {
  const pages = ["api", "operations", "mcp", "webhooks"].map((name) => Bun.file(join(ROOT, `docs/${name}.md`)).text());
  const text = (await Promise.all(pages)).join("\n");
  const paths = Object.keys((await description())["paths"] as object).map((path) => path.split(/\/?\{/)[0]!);
  const named = (path: string): boolean => new RegExp(`(?<![\\w/])${path}(?![\\w-])`).test(text);
  expect(paths.filter((path) => !path.startsWith("/api/experimental/") && !named(path))).toEqual([]);
});

test("schemas have the fields that requests are checked against, without internal names", async () => {
  const { paths } = await description();
  const { schema } = paths["/api/chat"].post.requestBody.content["application/json"];
  expect(Object.keys(schema.properties)).toEqual(expect.arrayContaining(["model", "messages", "tools", "keep_alive"]));
  expect(JSON.stringify(paths)).not.toMatch(/goType|goStruct/);
});

test("pages are described with the content type of their answers", async () => {
  const { paths } = await description();
  for (const path of ["/ui", "/docs"]) {
    const type = (await harness.call("GET", path)).headers.get("content-type")!.split(";")[0]!;
    expect([path, Object.keys(paths[path].get.responses["200"].content)]).toEqual([path, [type]]);
  }
  expect(Object.keys(paths["/"].get.responses["200"].content)).toEqual(["text/plain", "text/html"]);
});

test("every operation has a unique id", async () => {
  const { paths } = await description();
  const ids = Object.values<any>(paths).flatMap((path) => METHODS.map((method) => path[method]?.operationId));
  const given = ids.filter((id) => id !== undefined);
  expect(new Set(given).size).toBe(given.length);
});

test("the documentation page loads all its parts from this server", async () => {
  const page = await harness.call("GET", "/docs");
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  const html = await page.text();
  expect(html).not.toMatch(/https?:\/\//);
  const parts = [...html.matchAll(/(?:src|href)="(docs\/[^"]+)"/g)].map((match) => `/${match[1]}`);
  expect(parts.length).toBe(2);
  for (const part of parts) {
    const response = await harness.call("GET", part);
    expect([part, response.status, (await response.text()).length > 10_000]).toEqual([part, 200, true]);
  }
  expect((await harness.call("GET", "/docs/package.json")).status).toBe(404);
  expect((await harness.call("GET", "/docs/constructor")).status).toBe(404);
});
