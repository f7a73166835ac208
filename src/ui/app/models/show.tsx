/** Everything that is known of one model. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useApp } from "../context.ts";
import { CopyButton } from "../base/copy.tsx";
import { Dialog } from "../base/dialog.tsx";
import { Folded } from "../base/folded.tsx";
import { countText } from "../base/format.ts";

interface Shown {
  readonly modelfile?: string;
  readonly parameters?: string;
  readonly template?: string;
  readonly system?: string;
  readonly license?: string;
  readonly capabilities?: readonly string[];
  readonly details?: Readonly<Record<string, unknown>>;
  readonly model_info?: Readonly<Record<string, unknown>>;
}

export function ShowDialog({ name, onClose }: { name: string; onClose: () => void }) {
  const { api } = useApp();
  const shown = useSignal<Shown | undefined>(undefined);
  const problem = useSignal("");
  useEffect(() => {
    api.json<Shown>("/api/show", { body: { model: name } }).then(
      (found) => (shown.value = found),
      (error: Error) => (problem.value = error.message),
    );
  }, [name]);
  const found = shown.value;
  return (
    <Dialog title={name} kind="sheet" onClose={onClose}>
      {problem.value !== "" && <p class="problem">{problem.value}</p>}
      {!found && problem.value === "" && <p class="quiet">Reading the model</p>}
      {found && (
        <div class="stack">
          <p class="tags">
            {(found.capabilities ?? []).map((each) => (
              <span class="tag">{each}</span>
            ))}
          </p>
          <Facts found={found} />
          <TextPart title="System text" text={found.system} />
          <TextPart title="Parameters" text={found.parameters} />
          <TextPart title="Template" text={found.template} />
          <TextPart title="Modelfile" text={found.modelfile} />
          <TextPart title="License" text={found.license} />
        </div>
      )}
    </Dialog>
  );
}

/** Keys of a model's file that people ask for, behind the name of its architecture. */
const KEYS = [
  "context_length",
  "embedding_length",
  "block_count",
  "attention.head_count",
  "vocab_size",
  "expert_count",
];

function Facts({ found: { details = {}, model_info: info = {} } }: { found: Shown }) {
  const arch = String(info["general.architecture"] ?? "");
  const rows = [
    ["Architecture", arch],
    ["Parameters", details["parameter_size"]],
    ["Quantization", details["quantization_level"]],
    ...KEYS.map((key) => [key.replace(/^attention\./, "").replaceAll("_", " "), info[`${arch}.${key}`]]),
  ].filter(([, value]) => value !== undefined && value !== "");
  return (
    <dl class="facts">
      {rows.map(([key, value]) => (
        <div>
          <dt>{String(key)}</dt>
          <dd>{typeof value === "number" ? countText(value) : String(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

function TextPart({ title, text }: { title: string; text: string | undefined }) {
  if (!text) return null;
  return (
    <Folded icon="file" title={title}>
      <div class="folded-tools">
        <CopyButton text={() => text} label={`Copy: ${title}`} />
      </div>
      <pre tabIndex={0}>{text}</pre>
    </Folded>
  );
}
