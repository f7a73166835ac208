/** The dialog that creates a model from files of this device, and the button that chooses them. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { useApp, useWords } from "../context.ts";
import { Dialog } from "../base/dialog.tsx";
import { bytesText } from "../base/format.ts";
import { Icon } from "../base/icons.tsx";
import { planOf, type ModelPlan } from "./model-files.ts";
import { Button, Field, Submit, typed } from "../base/controls.tsx";

export function ModelFilesDialog() {
  const { modelFiles } = useApp();
  const files = modelFiles.value;
  return files.length > 0 ? <Chosen key={files.map(({ name }) => name).join("\n")} files={files} /> : null;
}

function Chosen({ files }: { files: readonly File[] }) {
  const { modelFiles } = useApp();
  const { modelFiles: words, base } = useWords();
  const plan = useSignal<ModelPlan | undefined>(undefined);
  const problem = useSignal("");
  const close = (): void => {
    // A dialog reports late that it closed: other files may be chosen by then
    if (modelFiles.value === files) modelFiles.value = [];
  };
  useEffect(() => {
    planOf(files, words).then(
      (found) => (plan.value = found),
      (error: unknown) => (problem.value = error instanceof Error ? error.message : String(error)),
    );
  }, [files]);
  return (
    <Dialog title={words.title} onClose={close}>
      {plan.value && <PlanForm plan={plan.value} onClose={close} />}
      {problem.value !== "" && (
        <div class="stack">
          <p class="problem" role="alert">
            {problem.value}
          </p>
          <div class="row end">
            <Button onClick={close}>{base.close}</Button>
          </div>
        </div>
      )}
    </Dialog>
  );
}

function PlanForm({ plan, onClose }: { plan: ModelPlan; onClose: () => void }) {
  const { jobs, models, go } = useApp();
  const { modelFiles: words, composer, base } = useWords();
  const name = useSignal(plan.name);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const wanted = name.value.trim();
  const isBusy = jobs.list.value.some((job) => job.name === wanted && job.state === "running");
  const submit = (event: Event): void => {
    event.preventDefault();
    if (wanted === "" || isBusy) return;
    void jobs.add({ name: wanted, files: plan.files });
    onClose();
    go({ view: "models" });
  };
  return (
    <form class="stack" onSubmit={submit}>
      <ul class="file-list" aria-label={composer.files}>
        {plan.files.map((file) => (
          <li>
            <Icon name="file" size={16} />
            <span>{file.name}</span>
            <span class="quiet">
              {bytesText(file.size)}
              {file === plan.projector && ` · ${words.imagePart}`}
            </span>
          </li>
        ))}
      </ul>
      <Field label={base.name}>
        <input ref={field} required autocapitalize="none" spellcheck={false} {...typed(name)} />
      </Field>
      {isBusy && <p class="problem">{words.busy(wanted)}</p>}
      {!isBusy && wanted !== "" && models.find(wanted) && <p>{words.replaces(wanted)}</p>}
      <div class="row end">
        <Button onClick={onClose}>{base.cancel}</Button>
        <Submit disabled={isBusy}>{words.action}</Submit>
      </div>
    </form>
  );
}

export function AddFilesButton() {
  const { modelFiles } = useApp();
  const { modelFiles: words } = useWords();
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button onClick={() => input.current?.click()}>
        <Icon name="upload" size={16} />
        {words.add}
      </Button>
      <input
        ref={input}
        type="file"
        accept=".gguf"
        multiple
        hidden
        aria-label={words.choose}
        onChange={(event) => {
          modelFiles.value = [...(event.currentTarget.files ?? [])];
          event.currentTarget.value = "";
        }}
      />
    </>
  );
}
