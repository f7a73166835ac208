/**
 * Turns a request into ids and images: renders it by a template, cuts it to the context, and tokenizes it, all where
 * the tokenizer is. No text is tokenized twice for one prompt.
 */
import { AppError, assert } from "../../base/index.ts";
import { answerRoom } from "../batching/context.ts";
import type { LoadedEngine } from "../batching/load.ts";
import { renderWithOutside, type RenderedPart } from "../text/template/outside.ts";
import { renderChat, renderGenerate, type PromptMessage, type PromptTemplate } from "../text/template/prompt.ts";
import { encodeFill } from "../text/tokenizer/fill-in-the-middle.ts";
import type { TextSegment } from "../text/tokenizer/tokenizer.ts";
import { fitMessages } from "./fit.ts";
import type { PromptInput, Ending, GenerateMessage } from "./messages.ts";
import type { Templates } from "./templates.ts";

export type PromptPart =
  | { readonly kind: "ids"; readonly ids: Int32Array }
  /** The rows of an image, or some of them if it has several runs. */
  | {
      readonly kind: "image";
      readonly image: unknown;
      readonly run: number;
      readonly rows: number;
    };

/** The part of a prompt for an image: texts of control tokens, and runs of rows. */
export type ImageLayout = readonly (
  { readonly kind: "marker"; readonly text: string } | { readonly kind: "rows"; readonly rows: number }
)[];

export interface Prompt {
  readonly parts: readonly PromptPart[];
  /** Number of ids and image rows. */
  readonly rows: number;
  /** Empty for a gap to fill. */
  readonly rendered: readonly RenderedPart[];
  /** Ids of an earlier answer, before the rendered parts. */
  readonly context: readonly number[];
  /** True if a part of the input was left out to fit the context. */
  readonly wasCut: boolean;
}

/** Prompts that a later message continues, by the ids of their requests. */
export type HeldPrompts = Map<number, Pick<Prompt, "rendered" | "context" | "wasCut">>;

type Model = Pick<LoadedEngine, "tokenizer" | "info" | "chatTemplate"> & Partial<Pick<LoadedEngine, "reader">>;

interface Parts {
  readonly model: Model;
  readonly templates: Templates;
  readonly held: HeldPrompts;
  /** Undefined for a model without vision. */
  readonly images?: PromptImages | undefined;
}

interface PromptImages {
  layout(image: unknown): ImageLayout;
  /** A prompt may have one image. */
  readonly isSingle?: boolean;
}

/** Options that limit the length of a prompt. */
type Limits = Pick<GenerateMessage, "options" | "truncate" | "shift">;

/** Inputs for rendering a conversation, besides the messages. */
type Given = Omit<Parameters<typeof renderChat>[1], "messages">;

/** Maximum characters of a prompt's end for parsers of its answer. */
const PROMPT_END_CHARS = 64;

/** A displayed text: an image is `[img-0]`, the next one `[img-1]`. */
export function textOf({ rendered }: Prompt): string {
  let count = 0;
  return rendered.map((part) => ("image" in part ? `[img-${count++}]` : part.text)).join("");
}

/** The end of a prompt without trailing blanks; empty if it ends with an image or text from outside. */
export function endOf({ rendered }: Prompt): string {
  const last = rendered.at(-1);
  return isMarkup(last) ? last.text.trimEnd().slice(-PROMPT_END_CHARS) : "";
}

/** The images of a request, which must be registered before its prompt is made. */
export function imagesOf(asked: PromptInput): readonly Uint8Array[] {
  if (asked.kind === "chat") return asked.messages.flatMap(({ images = [] }) => images);
  return asked.kind === "text" || asked.kind === "question" ? (asked.images ?? []) : [];
}

/**
 * The prompt of a request. Throws `bad_request` if its template refuses it or ids are outside the vocabulary.
 * @param limits undefined: the prompt is not cut
 */
export function promptOf(parts: Parts, asked: PromptInput, limits?: Limits): Prompt {
  const { model, templates, held } = parts;
  const shown = (prompt: PromptTemplate, messages: readonly PromptMessage[], given: Given): RenderedPart[] =>
    renderWithOutside({
      messages,
      findControl: (text) => model.tokenizer.findControl(text),
      render: (guarded) => renderChat(prompt, { ...given, messages: guarded }),
    });
  switch (asked.kind) {
    case "gap":
      return fillGap(model, asked, limits);
    case "text": {
      const { text, images = [], ending, context } = asked;
      return encode(parts, endedBy([...images.map((image) => ({ image })), plain(text)], ending), context);
    }
    case "after": {
      const before = held.get(asked.id);
      assert(before !== undefined, `the prompt of request ${asked.id} is continued, and was not held`);
      const { rendered, context, wasCut } = before;
      return { ...encode(parts, [...rendered, plain(asked.text)], context), wasCut };
    }
    case "question": {
      const { context, history = [], nowMs, ending, template, images = [], ...question } = asked;
      const prompt = templates.get(template);
      const now = new Date(nowMs);
      if (images.length === 0) {
        const text = renderGenerate(prompt, { ...question, history, now });
        return encode(parts, endedBy([plain(text)], ending), context);
      }
      const messages = withNewestImage(questionMessages({ ...question, history }, images), parts);
      return encode(parts, endedBy(shown(prompt, messages, { ...question, now }), ending), context);
    }
    case "chat": {
      const { nowMs, ending, template, messages: all, ...given } = asked;
      const prompt = templates.get(template);
      const now = new Date(nowMs);
      const render = (messages: readonly PromptMessage[]): Prompt =>
        encode(parts, endedBy(shown(prompt, messages, { ...given, now }), ending));
      const kept = model.reader && !takesTurns(prompt) ? newestOf(all) : withNewestImage(all, parts);
      return limits && (limits.truncate ?? true) ? fitted(model, kept, { render, limits }) : render(kept);
    }
    default:
      return asked satisfies never;
  }
}

const takesTurns = (prompt: PromptTemplate): boolean =>
  prompt.kind === "jinja" || prompt.vars.has("messages") || prompt.vars.has("response");

/** For an encoder of prompts without a template for turns: the last question, and what the system says. */
function newestOf(messages: readonly PromptMessage[]): readonly PromptMessage[] {
  const last = messages.findLastIndex(({ role }) => role === "user");
  return messages.filter(({ role }, i) => role === "system" || i === last);
}

/** For a model that takes one image: the last message with images replaces those before it, as in Ollama. */
function withNewestImage(messages: readonly PromptMessage[], { images }: Parts): readonly PromptMessage[] {
  if (!images?.isSingle) return messages;
  const last = messages.findLastIndex((message) => message.images?.length);
  return messages.map((message, i) => {
    const { images: _images, imagesAt: _places, ...text } = message;
    return i < last ? text : message;
  });
}

/** The prompt with as many messages as fit into the context. */
function fitted(
  { info: { ctxLen }, reader }: Model,
  messages: readonly PromptMessage[],
  { render, limits: { options } }: { render: (messages: readonly PromptMessage[]) => Prompt; limits: Limits },
): Prompt {
  const room = reader ? 0 : answerRoom({ ctxLen, numPredict: options.num_predict });
  const { prompt, wasCut } = fitMessages(messages, {
    render,
    fits: ({ rows }, { isWhole }) => (isWhole && !reader ? rows < ctxLen : rows <= ctxLen - room),
  });
  return { ...prompt, wasCut };
}

const plain = (text: string): TextSegment => ({ text, control: true });

const isMarkup = (part: RenderedPart | undefined): part is TextSegment =>
  part !== undefined && "text" in part && part.control;

function endedBy(parts: readonly RenderedPart[], ending: Ending | undefined): readonly RenderedPart[] {
  if (!ending) return parts;
  const { inside, text } = ending;
  const last = parts.at(-1);
  const isInside = inside !== undefined && isMarkup(last) && last.text.trimEnd().endsWith(inside.open);
  if (!isInside && text !== "" && isMarkup(last) && last.text.endsWith(text)) return parts;
  return [...parts, plain((isInside ? inside.close : "") + text)];
}

/** The ids of a prompt, after the ids of an earlier answer. A BOS that the text includes is not repeated. */
function encode(
  { model: { tokenizer, chatTemplate, reader }, images }: Parts,
  parts: readonly RenderedPart[],
  context: readonly number[] = [],
): Prompt {
  const rendered = joined(parts);
  const { bos } = chatTemplate;
  const [first] = rendered;
  const bringsBos = bos !== "" && isMarkup(first) && first.text.startsWith(bos);
  const addSpecial = context.length === 0 && !bringsBos;
  for (const id of context) checkId(id); // an Int32Array would wrap it to another id
  const before = context.length === 0 ? [] : [idsPart(context)];
  const texts = rendered.filter((part) => "text" in part);
  if (texts.length === rendered.length) {
    const ids = tokenizer.encode(texts, { addSpecial, parseSpecial: true });
    const end = reader && !addSpecial && tokenizer.after !== undefined ? [idsPart([tokenizer.after])] : [];
    return promptOfParts([...before, { kind: "ids", ids }, ...end], { rendered, context });
  }
  assert(images, "an image is in the prompt of a model that takes none");
  const around = encodeAround(tokenizer, rendered, {
    addSpecial,
    layout: (image) => images.layout(image),
  });
  const count = rendered.length - texts.length;
  if (images.isSingle && count > 1) throw new AppError("bad_request", `images: the model takes one, got ${count}`);
  return promptOfParts([...before, ...around], { rendered, context });
}

/** As in llama.cpp's mtmd: each text between images is tokenized separately, and so is each marker of an image. */
function encodeAround(
  tokenizer: Model["tokenizer"],
  rendered: readonly RenderedPart[],
  { addSpecial, layout }: { addSpecial: boolean; layout: (image: unknown) => ImageLayout },
): PromptPart[] {
  const special = (id: number | undefined): PromptPart[] => (addSpecial && id !== undefined ? [idsPart([id])] : []);
  const encodeText = (texts: readonly TextSegment[]): PromptPart =>
    idsPart(tokenizer.encode(texts, { addSpecial: false, parseSpecial: true }));
  const parts: PromptPart[] = special(tokenizer.before);
  let texts: TextSegment[] = [];
  for (const part of rendered) {
    if ("text" in part) {
      texts.push(part);
      continue;
    }
    parts.push(encodeText(texts));
    texts = [];
    let run = 0;
    for (const piece of layout(part.image)) {
      if (piece.kind === "marker") parts.push(encodeText([plain(piece.text)]));
      else parts.push({ kind: "image", image: part.image, run: run++, rows: piece.rows });
    }
  }
  return [...parts, encodeText(texts), ...special(tokenizer.after)];
}

const idsPart = (ids: Iterable<number>): PromptPart => ({ kind: "ids", ids: Int32Array.from(ids) });

function promptOfParts(all: readonly PromptPart[], of: Pick<Prompt, "rendered" | "context">): Prompt {
  const rowsOf = (part: PromptPart): number => (part.kind === "ids" ? part.ids.length : part.rows);
  const parts = all.filter((part) => rowsOf(part) > 0);
  return {
    parts,
    rows: parts.reduce((sum, part) => sum + rowsOf(part), 0),
    ...of,
    wasCut: false,
  };
}

/** The request as a conversation of one turn. */
function questionMessages(
  { prompt, system, history }: { prompt: string; system?: string; history: readonly PromptMessage[] },
  images: readonly unknown[],
): PromptMessage[] {
  const messages: PromptMessage[] = [...history, { role: "user", content: prompt, images }];
  return system ? [{ role: "system", content: system }, ...messages] : messages;
}

/** Joins neighbours of the same kind: a token's text may span the boundary between them. */
function joined(parts: readonly RenderedPart[]): RenderedPart[] {
  const joint: RenderedPart[] = [];
  for (const part of parts) {
    const last = joint.at(-1);
    const areAlike = last && "text" in last && "text" in part && last.control === part.control;
    if (areAlike) joint[joint.length - 1] = { ...last, text: last.text + part.text };
    else joint.push(part);
  }
  return joint;
}

/** Cuts texts around a gap that are longer than the context, so that half of the context stays free for the answer. */
function fillGap(
  { tokenizer, info }: Model,
  { before, after, files }: Extract<PromptInput, { kind: "gap" }>,
  limits?: Limits,
): Prompt {
  const fill = tokenizer.fill;
  assert(fill, "a gap to fill for a model without markers");
  const whole = encodeFill(tokenizer, fill, { before, after, files, room: undefined });
  const mayCut = limits !== undefined && (limits.truncate ?? true) && limits.shift;
  const prompt = (ids: Int32Array): Prompt => promptOfParts([idsPart(ids)], { rendered: [], context: [] });
  if (whole.ids.length < info.ctxLen || !mayCut) return prompt(whole.ids);
  const cut = encodeFill(tokenizer, fill, { before, after, files, room: Math.floor(info.ctxLen / 2) });
  return { ...prompt(cut.ids), wasCut: cut.truncated };
}

function checkId(id: number): void {
  if (id !== (id | 0)) throw new AppError("bad_request", `context: expected ids of the vocabulary, got ${id}`);
}
