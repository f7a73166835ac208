/**
 * What a request asks about becomes ids: rendered by a template, cut to the context, and encoded, in one place beside
 * the tokenizer. No text is encoded twice for one prompt.
 */
import { AppError, assert } from "../base/errors.ts";
import { answerRoom } from "../engine/context.ts";
import type { LoadedEngine } from "../engine/load.ts";
import { renderChat, renderGenerate, type PromptMessage } from "../template/prompt.ts";
import { encodeFill } from "../tokenizer/fill-in-the-middle.ts";
import { fitMessages } from "./fit.ts";
import type { Asked, Ending, GenerateMessage } from "./messages.ts";
import type { Templates } from "./templates.ts";

export interface Prompt {
  readonly ids: Int32Array;
  /** Empty for a gap to fill. */
  readonly text: string;
  /** Part of what was asked about was left out to fit the context. */
  readonly wasCut: boolean;
}

/** Texts of prompts that a later message continues, by the ids of their requests. */
export type HeldTexts = Map<number, string>;

type Model = Pick<LoadedEngine, "tokenizer" | "info" | "chatTemplate">;

interface Parts {
  readonly model: Model;
  readonly templates: Templates;
  readonly held: HeldTexts;
}

/** How much of a prompt may stay. */
type Limits = Pick<GenerateMessage, "options" | "truncate" | "shift">;

/** Most characters of the end of a prompt that those who read its answer may want to see. */
export const PROMPT_END_CHARS = 64;

/**
 * The prompt of a request. Throws `bad_request` where its template refuses or ids are none of the vocabulary.
 * @param limits undefined: nothing is cut
 */
export function promptOf(parts: Parts, asked: Asked, limits?: Limits): Prompt {
  const { model, templates, held } = parts;
  switch (asked.kind) {
    case "gap":
      return fillGap(model, asked, limits);
    case "text":
      return encode(model, endedBy(asked.text, asked.ending), asked.context);
    case "after": {
      const before = held.get(asked.id);
      assert(before !== undefined, `the prompt of request ${asked.id} is continued, and was not held`);
      return encode(model, before + asked.text);
    }
    case "question": {
      const { context, history = [], nowMs, ending, template, ...question } = asked;
      const text = renderGenerate(templates.get(template), { ...question, history, now: new Date(nowMs) });
      return encode(model, endedBy(text, ending), context);
    }
    case "chat": {
      const { nowMs, ending, template, messages: all, ...given } = asked;
      const prompt = templates.get(template);
      const render = (messages: readonly PromptMessage[]): Prompt =>
        encode(model, endedBy(renderChat(prompt, { ...given, messages, now: new Date(nowMs) }), ending));
      return limits && (limits.truncate ?? true) ? fitted(model, all, { render, limits }) : render(all);
    }
    default:
      return asked satisfies never;
  }
}

/** The prompt of as many messages as the context has room for. */
function fitted(
  { info: { ctxLen } }: Model,
  messages: readonly PromptMessage[],
  { render, limits: { options } }: { render: (messages: readonly PromptMessage[]) => Prompt; limits: Limits },
): Prompt {
  const room = answerRoom({ ctxLen, numPredict: options.num_predict });
  const { prompt, wasCut } = fitMessages(messages, {
    render,
    fits: ({ ids }, { isWhole }) => (isWhole ? ids.length < ctxLen : ids.length <= ctxLen - room),
  });
  return { ...prompt, wasCut };
}

function endedBy(text: string, ending: Ending | undefined): string {
  if (!ending) return text;
  const { inside, text: last } = ending;
  const isInside = inside !== undefined && text.trimEnd().endsWith(inside.open);
  return text + (isInside ? inside.close : "") + last;
}

/** The ids of a rendered text, after those of an earlier answer. A BOS that the text brings itself is not put twice. */
function encode({ tokenizer, chatTemplate }: Model, text: string, context: readonly number[] = []): Prompt {
  const { bos } = chatTemplate;
  const addSpecial = context.length === 0 && !(bos !== "" && text.startsWith(bos));
  const ids = tokenizer.encode(text, { addSpecial, parseSpecial: true });
  if (context.length === 0) return { ids, text, wasCut: false };
  for (const id of context) checkId(id); // an Int32Array would make another id of it
  return { ids: Int32Array.from([...context, ...ids]), text, wasCut: false };
}

/** Where the texts around a gap are longer than the context, half of it stays for the answer. */
function fillGap(
  { tokenizer, info }: Model,
  { before, after }: Extract<Asked, { kind: "gap" }>,
  limits?: Limits,
): Prompt {
  const fill = tokenizer.fill;
  assert(fill, "a gap to fill for a model without markers");
  const whole = encodeFill(tokenizer, fill, { before, after, room: undefined });
  const mayCut = limits !== undefined && (limits.truncate ?? true) && limits.shift;
  if (whole.ids.length < info.ctxLen || !mayCut) return { ids: whole.ids, text: "", wasCut: false };
  const cut = encodeFill(tokenizer, fill, { before, after, room: Math.floor(info.ctxLen / 2) });
  return { ids: cut.ids, text: "", wasCut: cut.truncated };
}

function checkId(id: number): void {
  if (id !== (id | 0)) throw new AppError("bad_request", `context: expected ids of the vocabulary, got ${id}`);
}
