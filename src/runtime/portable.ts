/** Inference through a runner, in this process or another, for pages too. */
export { makeCallGrammars } from "./inference/call-grammars.ts";
export { runChat } from "./inference/chat.ts";
export { connect, type ConnectOptions } from "./processes/connect.ts";
export { runGenerate } from "./inference/generate.ts";
export type { RuntimeParts } from "./inference/lease.ts";
export { RunnerClient, type RunnerEvent } from "./processes/runner-client.ts";
export type {
  AdapterFacts,
  AdapterScale,
  ChatRequest,
  ChatRuntime,
  ChosenLogprob,
  CutCall,
  EmbedResult,
  Format,
  GenerateRequest,
  InferenceEvent,
  LoadedModel,
  Message,
  ModelActivity,
  NamedModel,
  PromptLogprob,
  RankResult,
  Runtime,
  Statistics,
  Think,
  TokenLogprob,
  Tool,
  ToolCall,
  ToolChoice,
  TranscribeRequest,
} from "./requests/runtime.ts";
