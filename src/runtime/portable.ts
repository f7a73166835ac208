/** Inference through a runner, in this process or another, for pages too. */
export { runChat } from "./chat.ts";
export { connect, type ConnectOptions } from "./connect.ts";
export { runGenerate } from "./generate.ts";
export type { RuntimeParts } from "./lease.ts";
export { RunnerClient, type RunnerEvent } from "./runner-client.ts";
export type {
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
  RankResult,
  Runtime,
  Statistics,
  Think,
  TokenLogprob,
  Tool,
  ToolCall,
  ToolChoice,
} from "./runtime.ts";
