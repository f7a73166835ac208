/** The answers of `POST /api/chat` and `POST /api/generate`: one object per event, or all events in one object. */
import { formatTime } from "../../base/index.ts";
import type { ToolCall } from "../../runtime/portable.ts";
import { collect, doneFields, type AnswerEvent } from "../answers/answer.ts";
import { logprobsField } from "../answers/logprobs.ts";
import type { Reply } from "../http/exchange.ts";

/** The part of an answer in one object. */
interface Said {
  readonly text: string;
  readonly thinking?: string;
  readonly tool_calls?: readonly ToolCall[];
}

interface Form {
  readonly model: string;
  readonly now: () => Date;
  /** The fields of such a part, which differ between the two routes. */
  readonly fieldsOf: (said: Said) => object;
}

/** @param isStream whether the client reads one object per event */
export async function answerReply(
  events: AsyncIterable<AnswerEvent>,
  { isStream, ...form }: Form & { readonly isStream: boolean },
): Promise<Reply> {
  return isStream
    ? { kind: "stream", values: chunks(events, form) }
    : { kind: "json", body: await whole(events, form) };
}

async function* chunks(
  events: AsyncIterable<AnswerEvent>,
  { model, now, fieldsOf }: Form,
): AsyncGenerator<object, void, void> {
  for await (const event of events) {
    const head = { model, created_at: formatTime(now().getTime()) };
    if (event.kind === "done") yield { ...head, ...fieldsOf({ text: "" }), ...doneFields(event) };
    else {
      const logprobs = "logprobs" in event ? logprobsField(event.logprobs) : {};
      yield { ...head, ...fieldsOf(saidBy(event)), done: false, ...logprobs };
    }
  }
}

function saidBy(event: Exclude<AnswerEvent, { kind: "done" }>): Said {
  switch (event.kind) {
    case "text":
      return { text: event.text };
    case "thinking":
      return { text: "", thinking: event.text };
    case "toolCall":
      return { text: "", tool_calls: [event.call] };
    case "cutCall":
      return { text: event.call.text }; // this API has no partial arguments
    default:
      return event satisfies never;
  }
}

async function whole(events: AsyncIterable<AnswerEvent>, { model, now, fieldsOf }: Form): Promise<object> {
  const { text, thinking, calls, cutCall, logprobs, done } = await collect(events);
  const said = text + (cutCall?.text ?? "");
  const fields = fieldsOf({
    text: calls.length > 0 ? said.trim() : said, // blanks around a call are layout
    ...(thinking === "" ? {} : { thinking }),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  });
  const created_at = formatTime(now().getTime());
  return { model, created_at, ...fields, ...doneFields(done), ...logprobsField(logprobs) };
}
