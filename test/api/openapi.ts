/** Answers held against the API description. */
import { Ajv2020 } from "ajv/dist/2020.js";

const ajv = new Ajv2020({ strict: false });
const validators = new Map<string, ReturnType<typeof ajv.compile>>(); // to compile one takes longer than a request

/** Why a value does not fit a schema; empty where it does. */
export function schemaProblems(schema: object, value: unknown): string {
  const key = JSON.stringify(schema);
  const validate = validators.get(key) ?? ajv.compile(schema);
  validators.set(key, validate);
  return validate(value) ? "" : ajv.errorsText(validate.errors);
}

/** The operation that an answer is one of: by its address, whatever the method of those that there are. */
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
