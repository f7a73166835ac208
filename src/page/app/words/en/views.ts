/** English: the gateway, the system, and the dialogs of the page. */
import { counted } from "../count.ts";

export const gateway = {
  parts: "Parts of the gateway",
  deliveries: "Deliveries",
  mappings: "Mappings",
  approvals: "Approvals",
  findings: "Findings",
  paused: "Paused",
  waiting: "Waiting",
  running: "Running",
  replies: "Replies to send",
  messages: "Messages to send",
  off: {
    title: "Let other systems wake a model",
    text:
      "A GitHub issue becomes a summary in Slack. A failed build becomes an explanation. The gateway takes webhooks, " +
      "runs a model, and sends its answer to a chat.",
    how: "The gateway is off. Add this to hearth.json5, set the three variables, and restart the server:",
    copy: "Copy the configuration",
    locked:
      "The gateway runs, but this view is locked because no token is set. Add gateway.token to hearth.json5 and " +
      "restart the server.",
    docs: "The file docs/webhooks.md of Hearth explains each setting.",
  },
  token: "Gateway token",
  tokenHint: "Enter gateway.token from hearth.json5. This tab keeps it until you close it.",
  tokenRefused: "This token is wrong. Enter gateway.token from hearth.json5.",
  open: "Open",
};

/** Settings of this page. */
export const pageSettings = {
  title: "This page",
  language: "Language",
  browserLanguage: "Browser's language",
  titles: "Let the model write titles of chats",
  titlesHint:
    "Hearth writes the title after the first answer, while no answer is running. Models below one billion parameters write none.",
};

/** Calls of tools in turns of webhooks that wait for a decision. */
export const approvals = {
  none: "No call is waiting for an approval.",
  allow: "Allow once",
  refuse: "Refuse",
  until: (time: string) => `waits until ${time}`,
  allowed: (tool: string) => `Allowed the call of ${tool}.`,
  refused: (tool: string) => `Refused the call of ${tool}.`,
};

export const deliveries = {
  state: "State",
  any: "Any",
  path: "Path",
  anyPath: "any",
  none: "No deliveries yet.",
  earlier: "Show earlier deliveries",
  replayed: "replay",
  title: "Delivery",
  replay: "Replay",
  replayDead: "Run all again",
  replayReplies: "Send all replies again",
  deadCount: (count: number) =>
    counted("en", count, {
      one: "# run was given up. It runs again.",
      other: "# runs were given up. They run again, oldest first.",
    }),
  lostCount: (count: number) =>
    counted("en", count, {
      one: "# reply failed. It is sent again, without asking the model.",
      other: "# replies failed. They are sent again, without asking the model.",
    }),
  replaysLeft: (count: number) => `Still to do: ${count}`,
  replayedAll: (done: number, skipped: number) => `Replayed: ${done}${skipped > 0 ? `, skipped: ${skipped}` : ""}`,
  headers: "Headers",
  body: "Body",
  bodyBase64: "Body, as base64",
  noBody: "The body was not kept because hooks.queue.keepBodies is off.",
  received: "Received",
  about: "About",
  mapping: "Mapping",
  noMapping: "none",
  sender: "Sender",
  request: "Request",
  wake: "Wake",
  turn: "Agent turn",
  reply: (state: string) => `reply: ${state}`,
  fate: ({ state, lost }: { state: string; lost?: string }) => (lost === undefined ? state : `${state}, reply ${lost}`),
  prompt: "Prompt",
};

export const setup = {
  noMappings: "There are no mappings. Only /wake and /agent take webhooks.",
  tryIt: "Try it",
  everyPath: "every path",
  repliesTo: (channel: string) => `replies to ${channel}`,
  preset: (name: string) => `preset ${name}`,
  tryTitle: (mapping: string) => `Try ${mapping}`,
  tryAbout: "Shows the result of the mapping for a payload. Nothing is stored or sent.",
  payload: "Payload, as JSON",
  headers: "Headers, one on each line, such as X-GitHub-Event: issues",
  notHeader: (line: string) => `"${line}" is not a header. Expected: NAME: VALUE`,
  notJson: "The payload is not valid JSON.",
  try: "Try",
  noFindings: "The audit found no problems.",
};

export const system = {
  metrics: "Metrics",
  machine: "This machine",
  facts: {
    version: "Version",
    backend: "Backend",
    device: "Device",
    memory: "Memory",
    disk: "Disk",
    running: "Answers in progress",
    waiting: "Requests waiting",
    load: "Models loaded since start",
    crash: "Crashes since start",
  },
  memory: (free: string, total: string) => `${free} free of ${total}`,
  free: (size: string) => `${size} free`,
  settings: "Settings of the server",
  settingsFrom: "Set in hearth.json5, environment variables or flags. The server reads them when it starts.",
  names: {
    host: "Address",
    backend: "Backend",
    num_parallel: "Answers at once per model",
    max_loaded_models: "Models in memory",
    max_queue: "Requests that may wait",
    keep_alive: "Models stay in memory",
    context_length: "Context, tokens",
    gpu_memory: "GPU memory",
    api_keys: "API keys",
    debug: "Debug log",
  },
  auto: "automatic",
  forever: "forever",
  on: "on",
  off: "off",
  none: "none",
  key: "This tab has an API key",
  forgetKey: "Forget the key",
  forgotKey: "Forgot the API key of this tab.",
  requests: "Last requests",
  requestTable: "Table of the last requests",
  noRequests: "No requests yet, except this page's own.",
  columns: {
    time: "Time",
    request: "Request",
    status: "Status",
    took: "Took",
    model: "Model",
    tokens: "Tokens",
    key: "Key",
  },
};

export const keyDialog = {
  title: "This server needs an API key",
  refused: "The key is wrong. Ask the operator of this server for a valid one.",
  about: "The operator of this server set API keys (HEARTH_API_KEYS). This tab keeps your key until you close it.",
  key: "API key",
  enter: "Enter the key",
  use: "Use this key",
};

export const keyboard = {
  title: "Keyboard",
  mac: "On a Mac, use ⌘ for Ctrl.",
  newChat: "New chat",
  search: "Search chats",
  write: "Write a message",
  send: "Send",
  newLine: "New line",
  stop: "Stop the answer, or close the open dialog or menu",
  editLast: "Edit your last message, if the message field is empty",
  settings: "Settings of this chat",
  undo: "Undo a deletion, for 10 seconds",
  list: "Show this list",
};

export const help = {
  title: "Help",
  topics: [
    {
      title: "Get a model",
      text:
        "Open Models and enter a name, for example llama3.2:1b. If you close the page, the download stops; you can " +
        "resume it later.",
    },
    {
      title: "Chat",
      text:
        "Attach files with the clip, or drop or paste them. Edit a message to make a new version of it; the old one " +
        "stays. The settings at the top right change the system prompt and the sampling.",
    },
    {
      title: "Your data",
      text: "Chats stay in this browser. Export them from the menu next to Chats before you clear its data.",
    },
    {
      title: "Other programs",
      text: "Hearth speaks the APIs of Ollama, OpenAI and Anthropic. Point a client at the address of this page.",
    },
    { title: "Command line", text: "hearth -h lists all commands. The folder docs of Hearth explains each setting." },
  ],
  api: "API reference",
};

export const markdown = {
  copied: "Copied",
  copyCode: "Copy code",
  code: "Code",
  codeIn: (language: string) => `Code in ${language}`,
  table: "Table",
};
