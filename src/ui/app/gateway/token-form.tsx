/** Asks for the gateway token. */
import { useSignal } from "@preact/signals";
import { useApp } from "../context.ts";

export function TokenForm({ wasRefused }: { wasRefused: boolean }) {
  const { admin } = useApp();
  const token = useSignal("");
  const submit = (event: Event): void => {
    event.preventDefault();
    if (token.value.trim() !== "") admin.useToken(token.value.trim());
  };
  return (
    <form class="stack token-form" onSubmit={submit}>
      <p>
        {wasRefused
          ? "That was not the gateway token."
          : "The gateway has a token of its own: gateway.token in hearth.json5. It is kept for this tab only."}
      </p>
      <label class="field">
        <span>Gateway token</span>
        <input
          type="password"
          autocomplete="off"
          value={token.value}
          onInput={(event) => (token.value = event.currentTarget.value)}
        />
      </label>
      <div class="row">
        <button type="submit" class="button primary">
          Open
        </button>
      </div>
    </form>
  );
}
