/** The Worker that runs WebLLM. The page starts it for a chat with an MLC model. */
import { MLCEngine, type ChatCompletionMessageParam } from "@mlc-ai/web-llm";
import { AppError, messageOf } from "../../../base/index.ts";
import { makeModelFetch } from "./fetch.ts";
import type { FromWebLlm, ToWebLlm, WebLlmLoad } from "./messages.ts";

/** A Worker's own scope, which the library of types lacks here. */
interface Scope {
  onmessage: (event: { readonly data: ToWebLlm }) => void;
  postMessage(message: FromWebLlm): void;
  fetch: typeof fetch;
  readonly location: { readonly href: string; readonly origin: string };
  readonly navigator: { readonly gpu?: unknown };
}

function serve(scope: Scope): void {
  let engine: MLCEngine | undefined;
  const chat = async ({ messages, settings }: Extract<ToWebLlm, { kind: "chat" }>): Promise<void> => {
    if (!engine) throw new AppError("runner", "no model is loaded");
    const chunks = await engine.chat.completions.create({
      messages: messages as ChatCompletionMessageParam[], // the library checks roles
      stream: true,
      stream_options: { include_usage: true },
      ...settings,
    });
    let [reason, promptTokens, tokens] = ["stop", 0, 0];
    for await (const { choices, usage } of chunks) {
      const [choice] = choices;
      if (choice?.delta.content) scope.postMessage({ kind: "text", text: choice.delta.content });
      reason = choice?.finish_reason ?? reason;
      if (usage) [promptTokens, tokens] = [usage.prompt_tokens, usage.completion_tokens];
    }
    scope.postMessage({ kind: "done", reason, promptTokens, tokens });
  };
  scope.onmessage = ({ data }) => {
    if (data.kind === "stop") return void engine?.interruptGenerate();
    const work = data.kind === "load" ? load(scope, data).then((loaded) => void (engine = loaded)) : chat(data);
    work.catch((error: unknown) => scope.postMessage({ kind: "failed", message: messageOf(error) }));
  };
}

/** Loads the library and the model; from then on it can fetch only the model's files. */
async function load(scope: Scope, { model, digest, files, headers, ctxLen }: WebLlmLoad): Promise<MLCEngine> {
  if (!scope.navigator.gpu) {
    const what = "this browser has no WebGPU, without which WebLLM runs nothing: choose a GGUF model";
    throw new AppError("unsupported", what);
  }
  const base = `${scope.location.origin}/mlc/${digest}/resolve/main/`;
  const library = files.find(({ name }) => name.endsWith(".wasm"));
  if (!library) throw new AppError("bad_file", "the model has no library: expected a file '….wasm'");
  const root = new URL("..", scope.location.href); // the server's root: this script is one level below
  const ask = scope.fetch.bind(scope);
  const get = makeModelFetch({ base, files, headers, fetch: (path, init) => ask(new URL(`.${path}`, root), init) });
  scope.fetch = get as typeof fetch; // the library passes strings and Requests
  const record = { model: base, model_id: model, model_lib: base + library.name };
  const engine = new MLCEngine({
    // other caches would fetch by themselves, without verification
    appConfig: { cacheBackend: "opfs", model_list: [record] },
    initProgressCallback: ({ text, progress }) => scope.postMessage({ kind: "progress", text, fraction: progress }),
  });
  await engine.reload(model, ctxLen === undefined ? undefined : { context_window_size: ctxLen });
  scope.postMessage({ kind: "loaded", ctxLen });
  return engine;
}

serve(globalThis as unknown as Scope);
