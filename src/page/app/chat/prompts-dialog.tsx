/** The saved prompts of this browser: texts for messages, and system prompts of chats. */
import { useSignal, type Signal } from "@preact/signals";
import { useApp, useWords } from "../context.ts";
import { Dialog } from "../base/dialog.tsx";
import { Icon } from "../base/icons.tsx";
import { makeId } from "../base/ids.ts";
import type { Prompt } from "./library-types.ts";
import { Button, Field, IconButton, SmallButton, Submit, typed } from "../base/controls.tsx";

const KINDS = ["message", "system"] as const satisfies readonly Prompt["kind"][];

export function PromptsDialog() {
  const { over } = useApp();
  const { prompts: words } = useWords();
  const edited = useSignal<Prompt | undefined>(undefined);
  return (
    <Dialog title={words.title} kind="sheet" onClose={() => (over.value = undefined)}>
      {edited.value ? (
        <PromptForm key={edited.value.id} prompt={edited.value} onDone={() => (edited.value = undefined)} />
      ) : (
        <div class="stack">
          {KINDS.map((kind) => (
            <PromptSection key={kind} kind={kind} edited={edited} />
          ))}
          <UndoLine />
        </div>
      )}
    </Dialog>
  );
}

function PromptSection({ kind, edited }: { kind: Prompt["kind"]; edited: Signal<Prompt | undefined> }) {
  const { library, notices } = useApp();
  const { prompts: words } = useWords();
  const { heading, hint, add } = words.kinds[kind];
  const list = library.lists.value.prompts.filter((each) => each.kind === kind);
  const remove = async (prompt: Prompt): Promise<void> => {
    const undo = await library.remove("prompts", prompt);
    notices.offerUndo({ text: words.deleted(prompt.name), undo });
  };
  return (
    <section aria-label={heading} class="prompts">
      <h3>{heading}</h3>
      <p class="quiet">{hint}</p>
      <ul>
        {list.map((prompt) => (
          <li key={prompt.id}>
            <span>
              <strong>{prompt.name}</strong>
              <span class="quiet">{prompt.text.slice(0, 200)}</span>
            </span>
            <IconButton icon="edit" label={words.edit(prompt.name)} size={16} onClick={() => (edited.value = prompt)} />
            <IconButton icon="trash" label={words.delete(prompt.name)} size={16} onClick={() => void remove(prompt)} />
          </li>
        ))}
      </ul>
      <SmallButton onClick={() => (edited.value = { id: makeId(), kind, name: "", text: "" })}>
        <Icon name="plus" size={15} />
        {add}
      </SmallButton>
    </section>
  );
}

/** Shown here because the page's notices are behind the dialog. */
function UndoLine() {
  const { notices } = useApp();
  const { base } = useWords();
  const last = notices.list.value.findLast(({ undo }) => undo);
  return (
    <div role="status" class="row">
      {last && (
        <>
          <span>{last.text}</span>
          <SmallButton onClick={last.undo}>{base.undo}</SmallButton>
        </>
      )}
    </div>
  );
}

function PromptForm({ prompt, onDone }: { prompt: Prompt; onDone: () => void }) {
  const { library } = useApp();
  const { prompts: words, base } = useWords();
  const name = useSignal(prompt.name);
  const text = useSignal(prompt.text);
  const submit = (event: Event): void => {
    event.preventDefault();
    if (name.value.trim() === "" || text.value.trim() === "") return;
    void library.save("prompts", [{ ...prompt, name: name.value.trim().slice(0, 200), text: text.value }]);
    onDone();
  };
  return (
    <form class="stack" onSubmit={submit}>
      <Field label={base.name}>
        <input required maxLength={200} {...typed(name)} />
      </Field>
      <Field label={words.text}>
        <textarea required rows={8} {...typed(text)} />
      </Field>
      <div class="row end">
        <Button onClick={onDone}>{base.cancel}</Button>
        <Submit>{base.save}</Submit>
      </div>
    </form>
  );
}
