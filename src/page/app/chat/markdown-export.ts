/** A chat, or one of its messages, as Markdown for other programs: author, attachments and text. */
import type { Words } from "../words/index.ts";
import { shortName } from "../models/models.ts";
import { fenced, type Chat, type Message, type ToolCall } from "./tree.ts";

type ChatWords = Words["chat"];

/** @param path the shown messages, first to last */
export function chatMarkdown(chat: Chat, path: readonly Message[], words: ChatWords): string {
  const system = chat.system.trim() === "" ? [] : [`## ${words.systemPrompt}\n\n${closed(chat.system.trim())}`];
  const title = oneLine(chat.title);
  return `${[`# ${title}`, ...system, ...path.map((message) => messageMarkdown(message, words))].join("\n\n")}\n`;
}

export function messageMarkdown(message: Message, words: ChatWords): string {
  const { role, content, calls = [] } = message;
  const attached = attachedOf(message, words);
  const parts = [
    `## ${oneLine(whoOf(message, words))}`,
    ...(attached.length > 0 ? [`${words.attachedNames(attached.join(", "))}`] : []),
    ...(content.trim() === "" ? [] : [role === "tool" ? fenced(content) : closed(content.trim())]),
    ...calls.flatMap(callMarkdown(words)),
  ];
  return parts.join("\n\n");
}

const callMarkdown =
  (words: ChatWords) =>
  ({ name, arguments: args, result }: ToolCall): string[] => [
    `${words.calls(oneLine(name))}:\n\n${fenced(JSON.stringify(args, null, 2))}`,
    ...(result ? [`${words.result(oneLine(name))}:\n\n${fenced(result.text)}`] : []),
  ];

function whoOf({ role, model, toolName }: Message, words: ChatWords): string {
  if (role === "user") return words.you;
  if (role === "tool") return toolName === undefined ? words.tool : words.result(toolName);
  return model ? shortName(model) : words.answer;
}

const attachedOf = ({ files = [], pictures = [] }: Message, words: ChatWords): string[] => [
  ...files.map(({ name }) => oneLine(name)),
  ...(pictures.length > 0 ? [words.pictures(pictures.length)] : []),
];

/** A name in a line of Markdown: without line breaks and markup. */
const oneLine = (text: string): string =>
  text
    .replace(/\s+/g, " ")
    .trim()
    .replace(/[\\`*_[\]<>]/g, "\\$&");

/** Closes an open code block of a stopped text, so that the text after it is not code. */
function closed(text: string): string {
  let open = "";
  for (const line of text.split("\n")) {
    const [, fence = "", info = ""] = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line) ?? [];
    if (fence === "") continue;
    if (open === "") open = fence.startsWith("`") && info.includes("`") ? "" : fence;
    else if (fence[0] === open[0] && fence.length >= open.length && info.trim() === "") open = "";
  }
  return open === "" ? text : `${text}\n${open}`;
}
