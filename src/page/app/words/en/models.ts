/** English: the models of the server, and of this page. */
import { counted } from "../count.ts";

export const models = {
  pullLabel: "Name of a model to download",
  pullHint: "Download a model: llama3.2:1b, hf.co/owner/model-GGUF:Q4_K_M",
  pull: "Download",
  list: "Models on the server",
  none: "There are no models yet. Download one by its name, for example llama3.2:1b.",
  chat: "Chat",
  more: (model: string) => `More about ${model}`,
  show: "Details",
  load: "Load now",
  unload: "Unload",
  update: "Update",
  createFrom: "Create a model from it",
  copyTitle: (model: string) => `Copy ${model}`,
  copyName: "Name of the copy",
  deleted: (model: string, size: string) => `Deleted ${model} (${size}).`,
  embeds: "makes embeddings",
  inMemory: (size: string) => `In memory: ${size}`,
  onCpu: "on the CPU",
  onGpu: (percent: number) => `${percent}% on the GPU`,
  context: (tokens: string) => `context of ${tokens} tokens`,
  leaves: (when: string) => `unloads ${when}`,
  stays: "stays loaded",
};

/** Models that many users run, as listed by the server. */
export const catalogue = {
  title: "Catalogue",
  /** In other languages, by name; a server newer than the page has further models. */
  describe: (_name: string, english: string) => english,
  purpose: "Purpose",
  all: "All",
  purposes: { chat: "Chat", reasoning: "Reasoning", code: "Code", vision: "Pictures", embedding: "Embeddings" },
  installed: "installed",
  chatWith: (model: string) => `Chat with ${model}`,
  download: (model: string) => `Download ${model}`,
  pausing: (model: string) => `Pause the download of ${model}`,
  fits: (free: string) => `Fits: ${free} of memory is free.`,
  tight: (reason: string) => `Tight: ${reason}.`,
  tooLarge: (reason: string) => `Does not fit: ${reason}.`,
  updated: (month: string) => `As of ${month}. Sizes are approximate. To download another model, enter its name above.`,
  suggested: "Suggested models",
};

/** Downloads, and models that are being created. */
export const jobs = {
  title: "Downloads",
  pause: "Pause",
  resume: "Resume",
  forget: "Remove",
  forgot: (model: string) => `Removed the download of ${model}.`,
  withoutTls: "Download without TLS",
  progress: (model: string) => `Progress of ${model}`,
  paused: "Paused. The server keeps the downloaded part for a week.",
  stopped: "Stopped.",
  checking: "Checking the file",
  uploading: "Uploading",
  waiting: "Waiting",
  downloading: "Downloading",
  downloaded: "Downloaded.",
  created: "Created.",
  amount: (done: string, total: string) => `${done} of ${total}`,
  rate: (size: string) => `${size}/s`,
  left: (time: string) => `${time} left`,
};

/** Model files of this device that become a model of the server. */
export const modelFiles = {
  title: "Add a model from files",
  add: "Add files",
  choose: "Model files",
  action: "Add",
  replaces: (model: string) => `The model ${model} exists. It will be replaced.`,
  imagePart: "for pictures",
  busy: (model: string) => `${model} is already being downloaded or created.`,
  empty: (file: string) => `${file} is empty.`,
  notGguf: (file: string) => `${file} is not a GGUF file. It was renamed, or its download is incomplete.`,
  unreadable: (file: string) => `The browser cannot read ${file}. It was moved or changed.`,
  missing: (count: number, files: string) =>
    `${counted("en", count, { one: "A part of the model is missing:", other: "# parts of the model are missing:" })} ${files}. Choose all parts together.`,
  several: "These files are more than one model. Add one model at a time.",
  onlyImages: "This file is only the picture encoder of a model. Add the model's GGUF file with it.",
  drop: "Drop files to attach them. GGUF files become a model.",
};

/** The form that makes a model. */
export const create = {
  title: "Create a model",
  modelfile: "Modelfile",
  quantize: "Quantize",
  asIs: "No",
};

/** Details of a model. */
export const show = {
  reading: "Reading the model",
  parameters: "Parameters",
  template: "Template",
  license: "License",
  copy: (part: string) => `Copy: ${part}`,
  facts: {
    architecture: "Architecture",
    parameter_size: "Parameters",
    quantization_level: "Quantization",
    context_length: "Context, tokens",
    embedding_length: "Embedding length",
    block_count: "Blocks",
    "attention.head_count": "Attention heads",
    vocab_size: "Vocabulary",
    expert_count: "Experts",
  },
};

/** Models that run in this page. */
export const inPage = {
  title: "Models in this page",
  insecure: "Models run in this page only over HTTPS or on localhost.",
  about:
    "A chat can run its model in this page instead of on the server. The page downloads the model once and keeps it in " +
    "this browser. Models compiled by MLC run only here, with WebLLM, which needs WebGPU.",
  runsOn: "Run on",
  backends: {
    auto: "the fastest available",
    webgpu: "the graphics card (WebGPU)",
    wasm: "the processor (WebAssembly)",
    cpu: "the reference implementation (slow)",
  },
  look: "Show cached models",
  nothing: "No cached models.",
  used: (usage: string, quota: string) => `${usage} of ${quota} used`,
  weights: "Weights of a model",
  webllm: "A model for WebLLM",
  partOf: (what: string) => `Part of: ${what}`,
  onWebLlm: "runs on WebLLM",
  on: (size: string, backend: string) => `${size} on ${backend}`,
  context: (tokens: number) => counted("en", tokens, { one: "context of # token", other: "context of # tokens" }),
};

/** Messages of an engine in this page. */
export const engine = {
  insecure: "Models run in this page only over HTTPS or on localhost. Run the model on the server instead.",
  starting: "Starting the engine in this page",
  startingWebLlm: "Starting WebLLM in this page",
  otherChat: "Waiting for the answer to another chat",
  noWebGpu: "This browser has no WebGPU, so the model runs on the processor. The server is faster.",
  loading: "Loading the model",
  fetching: (done: string, total: string) => `Downloading the model into this page: ${done} of ${total}`,
  busy: "Another tab is downloading this model. Waiting for it.",
  notKept: (why: string) => `The page cannot keep the model (${why}). It reads the model from the server each time.`,
  reading: "Reading the model from the server",
  advice: {
    runner:
      "The page lost the model from its memory. Continue or try again to load it. If it fails again, run it on the " +
      "processor (Models, Models in this page) or on the server.",
    upstream: "The page keeps the downloaded part. Try again when the server is back to download the rest.",
    too_large:
      "Choose a smaller model or context, or run it on the processor (Models, Models in this page) or on the server.",
  },
  noPictures: "WebLLM accepts no pictures here. Choose a GGUF model that can see pictures.",
  onlyMlc: "WebLLM runs only models compiled by MLC. Run this model on the server or in this page.",
  cannotLoad: (why: string) => `WebLLM cannot load the model: ${why}`,
};
