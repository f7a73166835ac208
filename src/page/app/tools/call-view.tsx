/** A call of a model: its arguments, the question to the user before it is made, and its result. */
import { useApp, useWords } from "../context.ts";
import { argumentsText } from "../base/format.ts";
import { Icon } from "../base/icons.tsx";
import type { CallResult, Message, ToolCall } from "../chat/tree.ts";
import { isOpen, toolName, type Decision } from "./calls.ts";
import { Button, SmallButton } from "../base/controls.tsx";

const DECISIONS = ["once", "always", "no", "never"] as const satisfies readonly Decision[];

/** @param message absent: its answer is still being written */
export function CallView({ call, place, message }: { call: ToolCall; place: number; message: Message | undefined }) {
  const { calls, chats } = useApp();
  const words = useWords();
  const name = call.tool ? toolName(call.tool) : call.name;
  const isWorking = message !== undefined && calls.working.value.has(message.id);
  const isNext = isOpen(call) && message?.calls?.findIndex(isOpen) === place;
  const isAtEnd = chats.open.value?.chat.value.leaf === message?.id;
  const isAsked = isNext && !isWorking && isAtEnd && message?.state !== "running" && message?.together !== true;
  return (
    <>
      <details class="folded call" open={isAsked}>
        <summary>
          <Icon name="tool" size={16} />
          {words.chat.calls(name)}
          {call.result?.isError && <span class="tag bad">{words.toolCalls.failed}</span>}
          <Icon name="down" size={14} />
        </summary>
        <pre tabIndex={0}>{argumentsText(call.arguments)}</pre>
        {call.result && <ResultText {...call.result} />}
      </details>
      {isWorking && isNext && (
        <p class="live-line">
          <span class="pulse" />
          {words.toolCalls.underWay(name)}
          <SmallButton onClick={() => calls.stop(message.id)}>{words.toolCalls.stop}</SmallButton>
        </p>
      )}
      {isAsked && message && <Question {...{ name, call, place, message }} />}
    </>
  );
}

function ResultText({ text, isCut }: CallResult) {
  const { toolCalls: words } = useWords();
  return (
    <>
      <pre tabIndex={0} class="call-result" aria-label={words.result}>
        {text === "" ? words.noOutput : text}
      </pre>
      {isCut && <p class="quiet">{words.shortened}</p>}
    </>
  );
}

interface QuestionProps {
  readonly name: string;
  readonly call: ToolCall;
  readonly place: number;
  readonly message: Message;
}

function Question({ name, call, place, message }: QuestionProps) {
  const { calls } = useApp();
  const { toolCalls: words } = useWords();
  const decide = (decision: Decision): void =>
    void calls.decide({ chat: message.chat, message: message.id, place }, decision);
  return (
    <div class="call-question" role="group" aria-label={words.asks(name)}>
      <p role="alert">
        {words.asks(name)} {call.isBegun && words.wasBegun}
      </p>
      <div class="row">
        {DECISIONS.map((decision) => (
          <Button look={decision === "once" ? "small primary" : "small"} onClick={() => decide(decision)}>
            {words.decisions[decision]}
          </Button>
        ))}
      </div>
    </div>
  );
}
