/** Asks for an API key if the server requires one. */
import { useSignal } from "@preact/signals";
import { useApp, useWords } from "../context.ts";
import { Dialog } from "./dialog.tsx";
import { Field, Submit, typed } from "./controls.tsx";

export function KeyDialog() {
  const { api } = useApp();
  const { keyDialog: words } = useWords();
  const question = api.question.value;
  const key = useSignal("");
  if (!question) return null;
  const submit = (event: Event): void => {
    event.preventDefault();
    const given = key.value.trim();
    key.value = "";
    if (given !== "") question.answer(given);
  };
  return (
    <Dialog title={words.title} onClose={() => question.answer(undefined)}>
      <form class="stack" onSubmit={submit}>
        <p>{question.wasRefused ? words.refused : words.about}</p>
        <Field label={words.key}>
          <input type="password" autocomplete="off" {...typed(key)} />
        </Field>
        <div class="row end">
          <Submit>{words.use}</Submit>
        </div>
      </form>
    </Dialog>
  );
}
