/** Asks for an API key where the server wants one. */
import { useSignal } from "@preact/signals";
import { useApp } from "../context.ts";
import { Dialog } from "./dialog.tsx";

export function KeyDialog() {
  const { api } = useApp();
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
    <Dialog title="This server asks for a key" onClose={() => question.answer(undefined)}>
      <form class="stack" onSubmit={submit}>
        <p>
          {question.wasRefused
            ? "The key was refused. Ask whoever runs this server for one that is right."
            : "Whoever runs this server has set API keys (HEARTH_API_KEYS). The key is kept for this tab only."}
        </p>
        <label class="field">
          <span>API key</span>
          <input
            type="password"
            autocomplete="off"
            value={key.value}
            onInput={(event) => (key.value = event.currentTarget.value)}
          />
        </label>
        <div class="row end">
          <button type="submit" class="button primary">
            Use this key
          </button>
        </div>
      </form>
    </Dialog>
  );
}
