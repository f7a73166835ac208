/**
 * What a request asks about becomes ids: rendered by a template, cut to the context, and encoded, in one place beside
 * the tokenizer. No text is encoded twice for one prompt.
 */
import { AppError, assert } from "../base/errors.ts";
import { answerRoom } from "../engine/context.ts";
import type { LoadedEngine } from "../engine/load.ts";
import { renderWithOutside } from "../template/outside.ts";
import { renderChat, renderGenerate, type PromptMessage } from "../template/prompt.ts";
import { encodeFill } from "../tokenizer/fill-in-the-middle.ts";
import type { TextSegment } from "../tokenizer/tokenizer.ts";
import { fitMessages } from "./fit.ts";
import type { Asked, Ending, GenerateMessage } from "./messages.ts";
import type { Templates } from "./templates.ts";

export interface Prompt {
  readonly ids: Int32Array;
  /** Empty for a gap to fill. */
  readonly segments: readonly TextSegment[];
  /** Part of what was asked about was left out to fit the context. */
  readonly wasCut: boolean;
}

/** Prompts that a later message continues, by the ids of their requests. */
export type HeldPrompts = Map<number, readonly TextSegment[]>;

type Model = Pick<LoadedEngine, "tokenizer" | "info" | "chatTemplate">;

interface Parts {
  readonly model: Model;
  readonly templates: Templates;
  readonly held: HeldPrompts;
}

/** How much of a prompt may stay. */
type Limits = Pick<GenerateMessage, "options" | "truncate" | "shift">;

/** Most characters of the end of a prompt that those who read its answer may want to see. */
const PROMPT_END_CHARS = 64;

export const textOf = ({ segments }: Prompt): string => segments.map(({ text }) => text).join("");

/** The end of a prompt without the blanks behind it; nothing where text from outside ends it. */
export function endOf({ segments }: Prompt): string {
  const last = segments.at(-1);
  return last?.control ? last.text.trimEnd().slice(-PROMPT_END_CHARS) : "";
}

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
      return encode(model, endedBy([plain(asked.text)], asked.ending), asked.context);
    case "after": {
      const before = held.get(asked.id);
      assert(before !== undefined, `the prompt of request ${asked.id} is continued, and was not held`);
      return encode(model, [...before, plain(asked.text)]);
    }
    case "question": {
      const { context, history = [], nowMs, ending, template, ...question } = asked;
      const text = renderGenerate(templates.get(template), { ...question, history, now: new Date(nowMs) });
      return encode(model, endedBy([plain(text)], ending), context);
    }
    case "chat": {
      const { nowMs, ending, template, messages: all, ...given } = asked;
      const prompt = templates.get(template);
      const findControl = (text: string) => model.tokenizer.findControl(text);
      const now = new Date(nowMs);
      const render = (messages: readonly PromptMessage[]): Prompt => {
        const rendered = (shown: typeof messages): string => renderChat(prompt, { ...given, messages: shown, now });
        return encode(model, endedBy(renderWithOutside({ messages, findControl, render: rendered }), ending));
      };
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

const plain = (text: string): TextSegment => ({ text, control: true });

function endedBy(segments: readonly TextSegment[], ending: Ending | undefined): readonly TextSegment[] {
  if (!ending) return segments;
  const { inside, text } = ending;
  const last = segments.at(-1);
  const isInside = inside !== undefined && last?.control === true && last.text.trimEnd().endsWith(inside.open);
  return [...segments, plain((isInside ? inside.close : "") + text)];
}

/** The ids of a prompt, after those of an earlier answer. A BOS that the text brings itself is not put twice. */
function encode(
  { tokenizer, chatTemplate: { bos } }: Model,
  parts: readonly TextSegment[],
  context: readonly number[] = [],
): Prompt {
  const segments = joined(parts);
  const bringsBos = bos !== "" && segments[0]?.control === true && segments[0].text.startsWith(bos);
  const ids = tokenizer.encode(segments, { addSpecial: context.length === 0 && !bringsBos, parseSpecial: true });
  if (context.length === 0) return { ids, segments, wasCut: false };
  for (const id of context) checkId(id); // an Int32Array would make another id of it
  return { ids: Int32Array.from([...context, ...ids]), segments, wasCut: false };
}

/** Neighbours that are read alike are one: a token's text may stand across the border between them. */
function joined(segments: readonly TextSegment[]): TextSegment[] {
  const joint: TextSegment[] = [];
  for (const segment of segments) {
    const last = joint.at(-1);
    if (last?.control === segment.control) joint[joint.length - 1] = { ...last, text: last.text + segment.text };
    else joint.push(segment);
  }
  return joint;
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
  if (whole.ids.length < info.ctxLen || !mayCut) return { ids: whole.ids, segments: [], wasCut: false };
  const cut = encodeFill(tokenizer, fill, { before, after, room: Math.floor(info.ctxLen / 2) });
  return { ids: cut.ids, segments: [], wasCut: cut.truncated };
}

function checkId(id: number): void {
  if (id !== (id | 0)) throw new AppError("bad_request", `context: expected ids of the vocabulary, got ${id}`);
}
