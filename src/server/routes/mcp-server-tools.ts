/** The tools of `/mcp`, each as a request to an endpoint of this server. */
import { isObject, type Fields } from "../../base/index.ts";
import type { RouteDeps } from "./deps.ts";

interface OwnRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: object;
  /** True for the gateway's endpoints, which take the hook token. */
  readonly isHook?: boolean;
}

export interface OwnTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Fields;
  readonly annotations: { readonly readOnlyHint: boolean };
  readonly request: (args: Fields) => OwnRequest;
  /** The text of an answer; absent: its JSON. */
  readonly read?: (answer: Fields) => string;
}

const text = (description: string) => ({ type: "string", description });
const texts = (description: string) => ({ type: "array", items: { type: "string" }, description });
const object = (properties: object, required: readonly string[]): Fields => ({ type: "object", properties, required });
const MODEL = text("Name of a model, as list_models gives it");
const READS = { readOnlyHint: true };

const MODEL_TOOLS: readonly OwnTool[] = [
  {
    name: "list_models",
    description: "Lists the language models of this server.",
    inputSchema: object({}, []),
    annotations: READS,
    request: () => ({ method: "GET", path: "/api/tags" }),
  },
  {
    name: "chat",
    description: "Asks a language model of this server, and returns its answer.",
    inputSchema: object({ model: MODEL, prompt: text("The question"), system: text("Instructions") }, [
      "model",
      "prompt",
    ]),
    annotations: READS,
    request: ({ model, prompt, system }) => ({
      method: "POST",
      path: "/api/chat",
      body: {
        model,
        stream: false,
        messages: [
          ...(system === undefined ? [] : [{ role: "system", content: system }]),
          { role: "user", content: prompt },
        ],
      },
    }),
    read: ({ message }) => String(isObject(message) ? message["content"] : ""),
  },
  {
    name: "embed",
    description: "Turns texts into vectors.",
    inputSchema: object({ model: MODEL, input: texts("The texts") }, ["model", "input"]),
    annotations: READS,
    request: ({ model, input }) => ({ method: "POST", path: "/api/embed", body: { model, input } }),
  },
  {
    name: "rerank",
    description: "Ranks documents by relevance to a query, the best first.",
    inputSchema: object({ model: MODEL, query: text("The query"), documents: texts("The documents") }, [
      "model",
      "query",
      "documents",
    ]),
    annotations: READS,
    request: ({ model, query, documents }) => ({
      method: "POST",
      path: "/api/rerank",
      body: { model, query, documents },
    }),
  },
];

const hookTools = (path: string): readonly OwnTool[] => [
  {
    name: "post_event",
    description: "Posts an event to the agent of this server, which reads it at its next turn.",
    inputSchema: object({ text: text("The event") }, ["text"]),
    annotations: { readOnlyHint: false },
    request: (args) => ({ method: "POST", path: `${path}/wake`, body: { text: args["text"] }, isHook: true }),
  },
  {
    name: "run_agent",
    description: "Gives the agent of this server a task, and returns its answer or the id of its run.",
    inputSchema: object({ message: text("The task") }, ["message"]),
    annotations: { readOnlyHint: false },
    request: ({ message }) => ({
      method: "POST",
      path: `${path}/agent`,
      body: { message, deliver: false },
      isHook: true,
    }),
  },
];

/** The tools of this server; with webhooks also the tools of its agent. */
export function ownTools({ gateway }: Pick<RouteDeps, "gateway">): readonly OwnTool[] {
  const described = gateway?.ingress.describe();
  return described ? [...MODEL_TOOLS, ...hookTools(described.path)] : MODEL_TOOLS;
}
