/** All details of one model. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useApp, useWords } from "../context.ts";
import { CopyButton } from "../base/copy.tsx";
import { Dialog } from "../base/dialog.tsx";
import { Disclosure } from "../base/disclosure.tsx";
import type { Words } from "../words/index.ts";
import { reasonOf } from "../base/reason.ts";
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
  const words = useWords();
  const shown = useSignal<Shown | undefined>(undefined);
  const problem = useSignal("");
  useEffect(() => {
    api.json<Shown>("/api/show", { body: { model: name } }).then(
      (found) => (shown.value = found),
      (error: unknown) => (problem.value = reasonOf(words, error)),
    );
  }, [name]);
  const found = shown.value;
  return (
    <Dialog title={name} kind="sheet" onClose={onClose}>
      {problem.value !== "" && <p class="problem">{problem.value}</p>}
      {!found && problem.value === "" && <p class="quiet">{words.show.reading}</p>}
      {found && (
        <div class="stack">
          <p class="tags">
            {(found.capabilities ?? []).map((each) => (
              <span class="tag">{each}</span>
            ))}
          </p>
          <Facts found={found} />
          <TextPart title={words.chat.systemPrompt} text={found.system} />
          <TextPart title={words.show.parameters} text={found.parameters} />
          <TextPart title={words.show.template} text={found.template} />
          <TextPart title={words.create.modelfile} text={found.modelfile} />
          <TextPart title={words.show.license} text={found.license} />
        </div>
      )}
    </Dialog>
  );
}

/** Popular keys of a model's file, after its architecture's name. */
const KEYS = [
  "context_length",
  "embedding_length",
  "block_count",
  "attention.head_count",
  "vocab_size",
  "expert_count",
] as const satisfies readonly (keyof Words["show"]["facts"])[];

function Facts({ found: { details = {}, model_info: info = {} } }: { found: Shown }) {
  const { facts: words } = useWords().show;
  const arch = String(info["general.architecture"] ?? "");
  const rows = [
    [words.architecture, arch],
    [words.parameter_size, details["parameter_size"]],
    [words.quantization_level, details["quantization_level"]],
    ...KEYS.map((key) => [words[key], info[`${arch}.${key}`]]),
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
  const { copy } = useWords().show;
  if (!text) return null;
  return (
    <Disclosure icon="file" title={title}>
      <div class="folded-tools">
        <CopyButton text={() => text} label={copy(title)} />
      </div>
      <pre tabIndex={0}>{text}</pre>
    </Disclosure>
  );
}
