/** English: chats. */
import { counted } from "../count.ts";

/** The list of chats, and search in it. */
export const chats = {
  heading: "Chats",
  none: "Your chats are stored in this browser only.",
  more: (title: string) => `More about ${title}`,
  rename: "Rename",
  export: "Export",
  exportMarkdown: "Export as Markdown",
  name: "Name of the chat",
  transfer: "Folders, import and export",
  import: "Import chats",
  exportAll: "Export all chats",
  files: "Files with chats",
  imported: (count: number) => counted("en", count, { one: "Imported # chat.", other: "Imported # chats." }),
  notChats: (file: string) => `${file} contains no chats. Choose a file that "Export" saved.`,
  deleted: (title: string, messages: number) =>
    `Deleted "${title}" with ${counted("en", messages, { one: "# message", other: "# messages" })}.`,
  notHere: "This chat is not in this browser. It was deleted, or it belongs to another browser.",
  days: { today: "Today", yesterday: "Yesterday", week: "Last 7 days", month: "Last 30 days" },
  pinned: "Pinned",
  pin: "Pin to the top",
  unpin: "Unpin",
  move: "Move to folder",
  moveTitle: (title: string) => `Move "${title}"`,
  noFolder: "No folder",
  newFolder: "New folder",
  folderName: "Name of the folder",
  moreFolder: (name: string) => `More about the folder ${name}`,
  deleteFolder: "Delete the folder, keep its chats",
  deletedFolder: (name: string) => `Deleted the folder "${name}". Its chats are kept.`,
  search: "Search chats",
  results: "Search results",
};

/** A chat: its messages, and what can be done with them. */
export const chat = {
  pictureTitle: "Picture",
  you: "You",
  answer: "Answer",
  tool: "Tool",
  beingWritten: (who: string) => `${who}, writing`,
  messages: "Messages",
  toEnd: "Jump to the end",
  answering: "The model is answering",
  anotherTab: "Another tab is writing this answer.",
  waiting: "Waiting for the model",
  writing: "Writing",
  thinking: "Thinking",
  thoughts: "Thoughts",
  rate: (tokens: string) => `${tokens} tokens/s`,
  tokens: (count: number) => counted("en", count, { one: "# token", other: "# tokens" }),
  wasCut: "the oldest messages did not fit and were left out",
  inPage: "in this page",
  inWebLlm: "in this page, with WebLLM",
  stopped: "Stopped.",
  limit: "The answer reached its length limit.",
  goOn: "Continue",
  goOnWith: "Continue this answer",
  tryAgain: "Try again",
  getAnswer: "Get an answer",
  copy: "Copy",
  copyMarkdown: "Copy as Markdown",
  copied: "Copied the message as Markdown.",
  systemPrompt: "System prompt",
  attachedNames: (names: string) => `Attached: ${names}`,
  pictures: (count: number) => counted("en", count, { one: "# picture", other: "# pictures" }),
  edit: "Edit",
  readAloud: "Read aloud",
  stopReading: "Stop reading",
  again: "Answer again",
  againWith: (model: string) => `Answer again with ${model}`,
  more: "More",
  deleteFrom: (count: number) =>
    counted("en", count, { one: "Delete this message", other: "Delete # messages from here" }),
  deleted: (count: number) => counted("en", count, { one: "Deleted # message.", other: "Deleted # messages." }),
  version: (at: number, all: number) => `Version ${at} of ${all}`,
  versionBefore: "Previous version",
  versionAfter: "Next version",
  attached: "Attached by you",
  calls: (name: string) => `Calls ${name}`,
  result: (name: string) => `Result of ${name}`,
  giveResults: "Send results",
  yourMessage: "Your message",
  theAnswer: "The answer",
  changed: "Changed the message.",
  discarded: "Discarded your changes.",
  askAgain: "Send as a new version",
  busy: "The model is still answering. Wait for it, or stop it.",
  elsewhere: "Another tab is answering this chat. Wait for it, or stop it there.",
  notSaved: (why: string) => `This chat could not be saved: ${why}`,
  noRoom: "the browser has no more storage for this page. Export and delete some chats.",
  interrupted: "The page was closed before this answer was complete.",
  noEnd: "The answer ended without a reason.",
  lost: "The server is unreachable. The answer so far is saved: continue when the server is back.",
  unreachable: "The server is unreachable. Your message is saved: try again when the server is back.",
};

/** Calls of tools that a model asks for. */
export const toolCalls = {
  asks: (tool: string) => `The model wants to call ${tool}.`,
  wasBegun: "An earlier attempt was interrupted. It may have had its effect.",
  decisions: { once: "Allow once", always: "Always in this chat", no: "Refuse", never: "Never in this chat" },
  underWay: (tool: string) => `Calling ${tool}`,
  stop: "Stop this call",
  failed: "failed",
  result: "Result",
  noOutput: "(no output)",
  shortened: "Only the beginning is shown. The model gets the whole result.",
};

/** The tool servers of the configuration. */
export const toolServers = {
  title: "Tool servers",
  hint: "The model may call the tools of the servers that are switched on. The page asks you before each call, unless the configuration lists the tool as harmless.",
  tools: (count: number) => counted("en", count, { one: "# tool", other: "# tools" }),
  always: (tools: string) => `Called without asking: ${tools}.`,
  never: (tools: string) => `Never called: ${tools}.`,
  askAgain: "Ask again",
  missing: (server: string, why: string) => `The tools of ${server} are missing: ${why || "it is not configured."}`,
};

/** Several models that answer one question. */
export const compare = {
  title: "Answers side by side",
  hint: (model: string, others: number) =>
    `Choose up to ${counted("en", others, { one: "# model", other: "# models" })} that answer each question, too. ` +
    `${model} is the model of this chat.`,
  also: (models: string) => `Also answers: ${models}`,
  off: "Turn off",
  goOn: "Continue with this answer",
  goOnWith: (model: string) => `Continue with this answer of ${model}`,
};

/** Texts that are saved for later. */
export const prompts = {
  title: "Saved prompts",
  manage: "Edit saved prompts",
  kinds: {
    message: {
      heading: "Prompts",
      hint: "Write / and the name of a prompt in the message field to insert its text.",
      add: "New prompt",
    },
    system: {
      heading: "Saved system prompts",
      hint: "A new chat can begin with one of these.",
      add: "New system prompt",
    },
  },
  text: "Text",
  saveSystem: "Save this system prompt",
  choose: "Choose a saved system prompt",
  edit: (name: string) => `Edit ${name}`,
  delete: (name: string) => `Delete ${name}`,
  deleted: (name: string) => `Deleted the prompt "${name}".`,
};

/** The field for messages. */
export const composer = {
  message: "Message",
  placeholder: "Write a message",
  send: "Send",
  stop: "Stop",
  attach: "Attach files",
  files: "Files",
  attachments: "Attachments",
  remove: (name: string) => `Remove ${name}`,
  picture: "picture",
  removed: (name: string) => `Removed ${name}.`,
  context: "Context used",
  contextHint: (tokens: string) => `This chat uses about ${tokens} tokens of the model's context.`,
  contextOf: (used: string, size: string) => `${used} of ${size} tokens`,
  contextUsed: (used: string) => `${used} tokens`,
  cannotSee: (model: string) => `${model} cannot see pictures.`,
  cannotChat: (model: string) => `${model} cannot chat: it makes embeddings.`,
  gone: (model: string) => `${model} is no longer on the server.`,
  use: (model: string) => `Use ${model}`,
  getSeeing: "Get a model that can",
  getModel: "Get a model",
  removePictures: "Remove the pictures",
};

/** Files that cannot be attached. */
export const attachments = {
  textTooLarge: (file: string, limit: string) => `${file} is too large. A text file may have up to ${limit}.`,
  pictureTooLarge: (file: string, limit: string) => `${file} is too large. A picture may have up to ${limit}.`,
  unknown: (file: string) => `${file} is neither a picture nor a text file.`,
  documentTooLarge: (file: string, limit: string) => `${file} is too large. A document may have up to ${limit}.`,
  tookTooLong: (file: string) => `Reading ${file} took longer than a minute. Attach a part of it.`,
  faults: {
    protected: (file: string) =>
      `${file} has a password, or is in an old Office format. Save it again without a password, in a current format.`,
    noText: (file: string) => `${file} has no text. It may be scanned: attach its pages as pictures.`,
    damaged: (file: string) => `${file} is damaged and cannot be read.`,
    unpacked: (file: string) => `${file} is too large once it is unpacked.`,
    unknown: (file: string) => `${file} is neither a picture, a text nor a document that this page can read.`,
  },
  reading: (file: string) => `Reading ${file}`,
  readingPage: (file: string, page: string) => `Reading ${file}, page ${page}`,
  stopReading: (file: string) => `Stop reading ${file}`,
  parts: {
    pages: (count: number) => counted("en", count, { one: "# page", other: "# pages" }),
    slides: (count: number) => counted("en", count, { one: "# slide", other: "# slides" }),
    sheets: (count: number) => counted("en", count, { one: "# sheet", other: "# sheets" }),
  },
  about: (tokens: string) => `about ${tokens}`,
  firstPart: "first part",
  tooLong: (tokens: string, model: string, context: string) =>
    `The files take ${tokens} tokens. The context of ${model} has ${context}.`,
  useFirst: "Use the first part",
  shortened: (file: string) => `Shortened ${file}.`,
  unreadable: (file: string) => `This browser cannot read the picture ${file}.`,
};

/** A chat that has not begun. */
export const welcome = {
  title: "What is on your mind?",
  private: "Models run on your own machine. Chats stay in this browser.",
  prompts: [
    { label: "Tell me a story", text: "Tell me a short story about a lighthouse keeper." },
    { label: "Explain a file", text: "Explain this file.", wantsFile: true },
    { label: "Write JSON", text: "Write a JSON object that describes a book. Answer with JSON only." },
  ],
  demo: (size: string) => `This is a demo model of ${size}.`,
  getUseful: "Get one that is useful →",
  noModel: "This server has no model that can chat.",
  getOne: "Get one →",
};

/** The menu of models. */
export const modelMenu = {
  button: (model: string) => `Model: ${model}`,
  title: "Choose a model",
  none: "No model",
  gone: "deleted",
  search: "Search models",
  more: "Get more models…",
  loaded: "in memory",
  sees: "can see pictures",
  calls: "can call tools",
  thinks: "can think before it answers",
  where: (place: string) => `Runs ${place}`,
  places: { server: "on the server", page: "in this page", webllm: "in this page, with WebLLM" },
  whyNot: {
    server: "This model runs only with WebLLM.",
    page: "This model's format does not run in a page.",
    webllm: "Only models compiled by MLC run with WebLLM.",
  },
};

/** Settings of a chat. */
export const options = {
  title: "Settings of this chat",
  systemHint: "Instructions for the model, before the first message",
  think: "Thinking",
  thinking: { auto: "Model's default", on: "On", off: "Off" },
  names: {
    temperature: "Temperature",
    top_p: "Top p",
    top_k: "Top k",
    min_p: "Min p",
    repeat_penalty: "Repeat penalty",
    seed: "Seed",
    num_predict: "Longest answer, tokens",
    num_ctx: "Context, tokens",
  },
  notInside: (min: string, max: string, isDecimal: boolean) =>
    `Not used. Expected a ${isDecimal ? "" : "whole "}number from ${min} to ${max}.`,
  modelsOwn: "default",
  tools: "Tools, as JSON",
  notTools: 'This is not a list of tools. Expected JSON such as [{"type": "function", …}].',
};
