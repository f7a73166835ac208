/** Asks for the gateway token. */
import { useSignal } from "@preact/signals";
import { useApp, useWords } from "../context.ts";
import { Field, Submit, typed } from "../base/controls.tsx";

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
      <Field label={words.token}>
        <input type="password" autocomplete="off" {...typed(token)} />
      </Field>
      <div class="row">
        <Submit>{words.open}</Submit>
      </div>
    </form>
  );
}
