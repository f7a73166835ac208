/** Pieces of an OpenAPI description: parameters, bodies, answers, and refusals by status. */
import { jsonSchemaOf } from "../../../../base/schema.ts";
import { refusalOf } from "../answers.ts";
import { type ProblemName, statusOfProblem } from "../problems.ts";
import { type Answer, type Headers, type Operation, type Parameter, RATE_HEADERS } from "./operations.ts";

export type Json = Readonly<Record<string, unknown>>;

const TEXT = { type: "string" };

export const describeParameter = ({ schema, ...parameter }: Parameter): Json => ({
  ...parameter,
  required: parameter.in === "path",
  schema: schema ? jsonSchemaOf(schema) : TEXT,
});

export function describeBody({ schema, types }: NonNullable<Operation["body"]>): Json {
  const json = jsonSchemaOf(schema);
  return { required: true, content: Object.fromEntries(types.map((type) => [type, { schema: json }])) };
}

export function describeAnswer({ description, headers = {}, schema, text }: Answer): Json {
  const content = {
    ...(schema ? { "application/json": { schema: jsonSchemaOf(schema) } } : {}),
    ...(text === undefined ? {} : { [text]: { schema: TEXT } }),
  };
  const about = { description, headers: describeHeaders(headers) };
  return Object.keys(content).length === 0 ? about : { ...about, content };
}

/** By status, with its possible codes. */
export function describeRefusals(names: readonly ProblemName[]): Json {
  const byStatus = Map.groupBy(new Set(names), statusOfProblem);
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => {
      const schema = refusalOf(codes);
      return [status, describeAnswer({ description: codes.join(", "), headers: HEADERS_OF[status] ?? {}, schema })];
    }),
  );
}

const COMMON_HEADERS = { "X-Request-Id": "Identifies the request in the log" };

const describeHeaders = (headers: Headers): Json =>
  Object.fromEntries(
    Object.entries({ ...COMMON_HEADERS, ...headers }).map(([name, description]) => [
      name,
      { description, schema: TEXT },
    ]),
  );

const RETRY = { "Retry-After": "Seconds until a retry makes sense" };
/** Headers of refusals, by status. */
const HEADERS_OF: Readonly<Record<number, Headers>> = {
  401: { "WWW-Authenticate": "`Bearer`", ...RATE_HEADERS },
  405: { Allow: "The allowed methods" },
  415: { "Accept-Encoding": "The supported encodings, after an unsupported one" },
  429: { ...RETRY, ...RATE_HEADERS },
  503: RETRY,
};
