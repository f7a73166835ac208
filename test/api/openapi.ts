/** Checks answers against the API description. */
import { Ajv2020 } from "ajv/dist/2020.js";

const ajv = new Ajv2020({ strict: false });
const validators = new Map<string, ReturnType<typeof ajv.compile>>(); // compiling one takes longer than a request

/** The reason why a value does not match a schema; empty if it does. */
export function schemaProblems(schema: object, value: unknown): string {
  const key = JSON.stringify(schema);
  const validate = validators.get(key) ?? ajv.compile(schema);
  validators.set(key, validate);
  return validate(value) ? "" : ajv.errorsText(validate.errors);
}

/** The operation of an answer: found by URL, whatever the method. */
export function operationOf({ paths }: { paths: any }, response: Pick<Response, "url">): any {
  const { pathname } = new URL(response.url);
  const bare = pathname.replace(/\/$/, "");
  const base =
    Object.keys(paths)
      .find((path) => path.endsWith("/runs/{id}"))
      ?.replace("/runs/{id}", "") ?? "";
  const sub = bare.slice(base.length);
  const pattern = /^\/runs\/[^/]+\/events$/.test(sub)
    ? "/runs/{id}/events"
    : /^\/runs\/[^/]+$/.test(sub)
      ? "/runs/{id}"
      : sub === "/wake" || sub === "/agent"
        ? sub
        : "/{name}";
  const item = paths[base + pattern];
  return item?.post ?? item?.get;
}
