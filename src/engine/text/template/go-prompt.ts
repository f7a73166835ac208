/**
 * Prompts from a Go template, in three forms: with `.Messages`, rendered once; with `.Prompt` and
 * `.Suffix` for filling in the middle, rendered once; with `.System`, `.Prompt`, `.Response` (the older form), rendered
 * once per turn.
 */
import { type Branch, type Node, pipeIdentifiers } from "./go/ast.ts";
import { type GoTemplate, parseGoTemplate } from "./go/go-template.ts";
import { goMap, type GoValue } from "./go/value.ts";
import { goMessages, goTools } from "./go-values.ts";
import { mergeNeighbours, type PromptMessage, type PromptTool, systemText, type Think } from "./messages.ts";

/** A Go template for prompts. If it uses neither messages nor response, a response is appended. */
export interface GoPrompt {
  readonly kind: "go";
  readonly source: string;
  readonly vars: ReadonlySet<string>;
  readonly template: GoTemplate;
  /** The template for the last turn of the older form; its text ends at the beginning of the answer. */
  readonly open: GoTemplate;
}

/** @throws AppError `bad_request` with line and column */
export function parseGoPrompt(source: string): GoPrompt {
  const parsed = parseGoTemplate(source);
  const vars = parsed.vars();
  const isComplete = vars.has("messages") || vars.has("response");
  const template = isComplete ? parsed : parsed.withResponseAppended();
  return { kind: "go", source, vars, template, open: template.withoutAfterResponse() };
}

interface GoRequest {
  readonly messages: readonly PromptMessage[];
  readonly tools?: readonly PromptTool[];
  /** Undefined: not set. */
  readonly think?: Think;
  readonly now: Date;
}

/** @throws AppError as GoTemplate.render */
export function renderGoChat(prompt: GoPrompt, request: GoRequest): string {
  const messages = mergeNeighbours(request.messages);
  if (!prompt.vars.has("messages")) return renderTurns(prompt, messages, request);
  return render(prompt.template, request, {
    System: systemText(messages),
    Messages: goMessages(messages),
    Tools: goTools(request.tools ?? []),
    Response: "",
  });
}

/** @throws AppError as GoTemplate.render */
export const renderGoInsert = (
  prompt: GoPrompt,
  text: { prompt: string; suffix: string },
  request: GoRequest,
): string => render(prompt.template, request, { Prompt: text.prompt, Suffix: text.suffix, Response: "" });

/** Renders the template once per finished turn, and finally up to the beginning of the answer. */
function renderTurns(prompt: GoPrompt, messages: readonly PromptMessage[], request: GoRequest): string {
  let text = "";
  let turn = { System: "", Prompt: "", Response: "" };
  const finish = (): void => {
    text += render(prompt.template, request, turn);
    turn = { System: "", Prompt: "", Response: "" };
  };
  for (const { role, content } of messages) {
    if (role === "system") {
      if (turn.Prompt !== "" || turn.Response !== "") finish();
      turn.System = content;
    } else if (role === "user") {
      if (turn.Response !== "") finish();
      turn.Prompt = content;
    } else if (role === "assistant") {
      turn.Response = content;
    }
  }
  return text + render(prompt.open, request, turn);
}

function render(template: GoTemplate, { think, now }: GoRequest, values: Record<string, GoValue>): string {
  const level = think === true ? "medium" : think || "";
  const thinking = { Think: Boolean(think), ThinkLevel: level, IsThinkSet: think !== undefined };
  return template.render(goMap(Object.entries({ ...values, ...thinking })), { now });
}

/**
 * The texts around the reasoning of past messages, and so of new reasoning too: the first and last text of the branch
 * that prints `.Thinking` inside a range over the messages. Undefined if the template has no such branch.
 */
export function thinkingTags(prompt: GoPrompt): { readonly open: string; readonly close: string } | undefined {
  const list = findThinkingList(prompt.template.nodes, false);
  const texts = list?.flatMap((node) => (node.kind === "text" ? [node.text.trim()] : [])) ?? [];
  const open = texts[0];
  const close = texts.at(-1);
  return open && close ? { open, close } : undefined;
}

function findThinkingList(nodes: readonly Node[], insideMessages: boolean): readonly Node[] | undefined {
  for (const node of nodes) {
    if (node.kind === "action" && insideMessages && pipeIdentifiers(node.pipe).has("thinking")) return nodes;
    if (!isBranch(node)) continue;
    const inside = insideMessages || (node.kind === "range" && pipeIdentifiers(node.pipe).has("messages"));
    const found = findThinkingList(node.body, inside) ?? findThinkingList(node.otherwise ?? [], inside);
    if (found) return found;
  }
  return undefined;
}

/**
 * The text that begins a tool call: the first text inside the first `if` on `.ToolCalls`, up to a brace; or a brace.
 */
export function toolCallTag(prompt: GoPrompt): string {
  const branch = findToolBranch(prompt.template.nodes);
  const text = branch ? (firstText(branch.body) ?? "") : "";
  const brace = text.indexOf("{");
  return (brace < 0 ? text : text.slice(0, brace)).trim() || "{";
}

function findToolBranch(nodes: readonly Node[]): Branch | undefined {
  for (const node of nodes) {
    if (!isBranch(node)) continue;
    if (node.kind === "if" && pipeIdentifiers(node.pipe).has("toolcalls")) return node;
    const found = findToolBranch(node.body) ?? findToolBranch(node.otherwise ?? []);
    if (found) return found;
  }
  return undefined;
}

function firstText(nodes: readonly Node[]): string | undefined {
  for (const node of nodes) {
    if (node.kind === "text" && node.text.trim() !== "") return node.text;
    const found = isBranch(node) ? firstText(node.body) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

const isBranch = (node: Node): node is Branch => node.kind === "if" || node.kind === "with" || node.kind === "range";
