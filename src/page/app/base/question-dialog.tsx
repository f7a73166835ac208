/** The dialog that asks a question. */
import { useSignal } from "@preact/signals";
import { useApp, useWords } from "../context.ts";
import { Dialog } from "./dialog.tsx";
import type { Question } from "./questions.ts";
import { Button, Field, typed } from "./controls.tsx";

export function QuestionDialog() {
  const question = useApp().questions.open.value;
  return question ? <QuestionBox key={question.title} question={question} /> : null;
}

function QuestionBox({ question: { title, text, action, isDangerous, field } }: { question: Question }) {
  const { questions } = useApp();
  const { base } = useWords();
  const given = useSignal(field?.first ?? "");
  const submit = (event: Event): void => {
    event.preventDefault();
    if (!field || given.value.trim() !== "") questions.answer(given.value.trim());
  };
  return (
    <Dialog title={title} onClose={() => questions.answer(undefined)}>
      <form class="stack" onSubmit={submit}>
        {text !== undefined && <p>{text}</p>}
        {field && (
          <Field label={field.label}>
            <input required {...typed(given)} />
          </Field>
        )}
        <div class="row end">
          <Button onClick={() => questions.answer(undefined)}>{base.cancel}</Button>
          <Button type="submit" look={isDangerous ? "dangerous" : "primary"}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
