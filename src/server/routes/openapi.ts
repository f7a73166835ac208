/**
 * `GET /openapi.json` and `GET /docs`: the description of every endpoint, made from the notes beside the routes, and a
 * page to read and try it. The page loads nothing from other servers.
 */
import { join } from "node:path";
import type { toOpenAPISchema } from "@elysiajs/openapi";
import { AppError } from "../../base/index.ts";
import { packageFolder } from "../../base/system.ts";
import type { IngressDescription } from "../../gateway/index.ts";
import type { RouteDeps } from "./deps.ts";
import { get, type Route } from "./route.ts";

/** The page's files, by requested name. */
const ASSETS: Readonly<Record<string, string>> = {
  "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
  "swagger-ui.css": "text/css; charset=utf-8",
};

/** Its URLs are relative: a proxy may serve it below another path. */
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Hearth API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="page"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script>SwaggerUIBundle({ url: "openapi.json", dom_id: "#page", validatorUrl: null, deepLinking: true })</script>
</body>
</html>
`;

type Described = Parameters<typeof toOpenAPISchema>[0];

/** @param app returns the application once all its routes exist */
export function openapiRoutes(app: () => Described): Route[] {
  let described: Promise<Description> | undefined;
  let last: { readonly ingress: IngressDescription | undefined; readonly json: Blob } | undefined;
  /** The text is long, so it is rewritten only after a change of the configuration. */
  const description = async ({ version, gateway }: RouteDeps): Promise<Blob> => {
    const api = await (described ??= describeApi(app(), version));
    const ingress = gateway?.ingress.describe();
    if (!last || last.ingress !== ingress)
      last = { ingress, json: new Blob([JSON.stringify(withIngress(api, ingress))]) };
    return last.json;
  };
  return [
    get("/openapi.json", async (deps) => ({ kind: "json", body: await description(deps) }), {
      api: "server",
      summary: "This description",
    }),
    get("/docs", () => ({ kind: "text", body: PAGE, contentType: "text/html; charset=utf-8" }), {
      api: "server",
      summary: "This description as a page",
      reply: "html",
    }),
    get("/docs/:file", async (_, __, { params: { file = "" } }) => {
      const contentType = Object.hasOwn(ASSETS, file) ? ASSETS[file] : undefined;
      if (!contentType) throw new AppError("not_found", "no such file");
      const path = join(packageFolder("swagger-ui-dist", import.meta.dir), file);
      return { kind: "text", body: await Bun.file(path).text(), contentType };
    }),
  ];
}

const SECURITY_SCHEMES = {
  key: { type: "http", scheme: "bearer", description: "One of `HEARTH_API_KEYS`, if set" },
  gatewayToken: { type: "http", scheme: "bearer", description: "`gateway.token`" },
};

type Description = Awaited<ReturnType<typeof describeApi>>;

/** Webhooks are not routes: their paths follow the current configuration. */
function withIngress(description: Description, ingress: IngressDescription | undefined): object {
  if (!ingress) return description;
  const securitySchemes = { ...description.components.securitySchemes, ...ingress.securitySchemes };
  return { ...description, paths: { ...description.paths, ...ingress.paths }, components: { securitySchemes } };
}

async function describeApi(app: Described, version: string) {
  const { toOpenAPISchema } = await import("@elysiajs/openapi"); // loaded on demand, because it is rarely used
  const { paths } = toOpenAPISchema(app, { staticFile: false }); // true would omit every path with a dot
  return {
    openapi: "3.1.0",
    info: {
      title: "Hearth",
      version,
      description: "Language models on this machine: the native API, OpenAI's and Anthropic's, and webhooks.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "./" }], // relative to this description, below any proxy's path
    paths: withNamedRests(paths),
    components: { securitySchemes: SECURITY_SCHEMES },
    security: [{ key: [] }, {}],
  };
}

/** A wildcard route, `/models/*`, gets a named parameter: the name of a model, with its slashes. */
function withNamedRests(paths: Readonly<Record<string, object | undefined>>): object {
  const parameters = [{ name: "model", in: "path", required: true, schema: { type: "string" } }];
  return Object.fromEntries(
    Object.entries(paths).map(([path, item]) =>
      path.endsWith("/*") ? [`${path.slice(0, -1)}{model}`, { ...item, parameters }] : [path, item],
    ),
  );
}
