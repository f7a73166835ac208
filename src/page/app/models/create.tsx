/** Creates a model from a Modelfile. */
import { useSignal } from "@preact/signals";
import { useApp, useWords } from "../context.ts";
import { Dialog } from "../base/dialog.tsx";

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
        <label class="field">
          <span>{base.name}</span>
          <input
            required
            placeholder="my-model"
            value={name.value}
            onInput={(event) => (name.value = event.currentTarget.value)}
          />
        </label>
        <label class="field">
          <span>{words.modelfile}</span>
          <textarea
            rows={9}
            class="mono"
            spellcheck={false}
            value={modelfile.value}
            onInput={(event) => (modelfile.value = event.currentTarget.value)}
          />
        </label>
        <label class="field">
          <span>{words.quantize}</span>
          <select value={quantize.value} onChange={(event) => (quantize.value = event.currentTarget.value)}>
            {TYPES.map((type) => (
              <option value={type}>{type === "" ? words.asIs : type}</option>
            ))}
          </select>
        </label>
        <div class="row end">
          <button type="submit" class="button primary">
            {base.create}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
