/** Asks for the gateway token. */
import { useSignal } from "@preact/signals";
import { useApp, useWords } from "../context.ts";

export function TokenForm({ wasRefused }: { wasRefused: boolean }) {
  const { admin } = useApp();
  const { gateway: words } = useWords();
  const token = useSignal("");
  const submit = (event: Event): void => {
    event.preventDefault();
    if (token.value.trim() !== "") admin.useToken(token.value.trim());
  };
  return (
    <form class="stack token-form" onSubmit={submit}>
      <p>{wasRefused ? words.tokenRefused : words.tokenHint} </p>
      <label class="field">
        <span>{words.token}</span>
        <input
          type="password"
          autocomplete="off"
          value={token.value}
          onInput={(event) => (token.value = event.currentTarget.value)}
        />
      </label>
      <div class="row">
        <button type="submit" class="button primary">
          {words.open}
        </button>
      </div>
    </form>
  );
}
