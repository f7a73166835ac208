/** Creates a model from a Modelfile. */
import { useSignal } from "@preact/signals";
import { useApp, useWords } from "../context.ts";
import { Dialog } from "../base/dialog.tsx";
import { Field, Submit, chosen, typed } from "../base/controls.tsx";

const TYPES = ["", "q8_0", "q6_K", "q5_K_M", "q4_K_M", "q4_K_S", "q4_0", "q3_K_M", "q2_K"] as const;

export function CreateDialog({ from, onClose }: { from: string; onClose: () => void }) {
  const { jobs } = useApp();
  const { create: words, base } = useWords();
  const name = useSignal("");
  const modelfile = useSignal(`FROM ${from}\n\nSYSTEM """You answer briefly."""\nPARAMETER temperature 0.7\n`);
  const quantize = useSignal("");
  const submit = (event: Event): void => {
    event.preventDefault();
    if (name.value.trim() === "") return;
    void jobs.create(name.value.trim(), modelfile.value, quantize.value);
    onClose();
  };
  return (
    <Dialog title={words.title} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <Field label={base.name}>
          <input required placeholder="my-model" {...typed(name)} />
        </Field>
        <Field label={words.modelfile}>
          <textarea rows={9} class="mono" spellcheck={false} {...typed(modelfile)} />
        </Field>
        <Field label={words.quantize}>
          <select {...chosen(quantize)}>
            {TYPES.map((type) => (
              <option value={type}>{type === "" ? words.asIs : type}</option>
            ))}
          </select>
        </Field>
        <div class="row end">
          <Submit>{base.create}</Submit>
        </div>
      </form>
    </Dialog>
  );
}
