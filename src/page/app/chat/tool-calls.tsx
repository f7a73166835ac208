/** Fields for the results of calls that the user runs by hand. */
import { useSignal } from "@preact/signals";
import { useApp, useWords } from "../context.ts";
import type { Message } from "./tree.ts";
import { Field, Submit } from "../base/controls.tsx";

export function ResultFields({ message }: { message: Message }) {
  const { chats } = useApp();
  const { chat: words } = useWords();
  const calls = message.calls?.filter(({ tool }) => !tool) ?? [];
  const results = useSignal<readonly string[]>(calls.map(() => ""));
  const submit = (event: Event): void => {
    event.preventDefault();
    const given = calls.map(({ name, id }, i) => ({
      name,
      content: results.value[i] ?? "",
      ...(id === undefined ? {} : { id }),
    }));
    void chats.giveResults(message.chat, message.id, given);
  };
  return (
    <form class="results" onSubmit={submit}>
      {calls.map(({ name }, i) => (
        <Field label={words.result(name)}>
          <textarea
            rows={2}
            value={results.value[i]}
            onInput={(event) => (results.value = results.value.with(i, event.currentTarget.value))}
          />
        </Field>
      ))}
      <div class="row end">
        <Submit>{words.giveResults}</Submit>
      </div>
    </form>
  );
}
