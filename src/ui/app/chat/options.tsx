/** What a chat tells its model besides messages: a system text, sampling, thinking, tools. */
import type { Signal } from "@preact/signals";
import { Dialog } from "../base/dialog.tsx";
import { toolsOf, type Chat } from "./tree.ts";

/** Of a chat, or of the next one. */
export type ChatSettings = Pick<Chat, "system" | "options" | "tools" | "think">;

interface NumberOption {
  readonly name: string;
  readonly label: string;
  readonly min: number;
  readonly max: number;
  readonly step: number;
}

const OPTIONS: readonly NumberOption[] = [
  { name: "temperature", label: "Temperature", min: 0, max: 5, step: 0.05 },
  { name: "top_p", label: "Top p", min: 0, max: 1, step: 0.01 },
  { name: "top_k", label: "Top k", min: 0, max: 1000, step: 1 },
  { name: "min_p", label: "Min p", min: 0, max: 1, step: 0.01 },
  { name: "repeat_penalty", label: "Repeat penalty", min: 0, max: 5, step: 0.05 },
  { name: "seed", label: "Seed", min: 0, max: 2 ** 31 - 1, step: 1 },
  { name: "num_predict", label: "Longest answer, tokens", min: -1, max: 1_000_000, step: 1 },
  { name: "num_ctx", label: "Context, tokens", min: 64, max: 10_000_000, step: 1 },
];

interface OptionsDialogProps {
  readonly settings: ChatSettings;
  readonly onChange: (fields: Partial<ChatSettings>) => void;
  readonly onClose: () => void;
  readonly problem: Signal<string>;
}

export function OptionsDialog({ settings, onChange, onClose, problem }: OptionsDialogProps) {
  const { system, options, think, tools } = settings;
  const setTools = (text: string): void => {
    try {
      toolsOf(text);
      problem.value = "";
      onChange({ tools: text });
    } catch (error) {
      problem.value = error instanceof Error ? error.message : String(error);
    }
  };
  return (
    <Dialog title="Settings of this chat" kind="sheet" onClose={onClose}>
      <div class="stack">
        <label class="field">
          <span>System text</span>
          <textarea
            rows={5}
            placeholder="What the model is told before the first message"
            value={system}
            onInput={(event) => onChange({ system: event.currentTarget.value })}
          />
        </label>
        <fieldset class="field">
          <legend>Thinking</legend>
          <div class="choices">
            {THINKING.map(({ label, value }) => (
              <label>
                <input
                  type="radio"
                  name="think"
                  checked={think === value}
                  onChange={() => onChange(thinkField(value))}
                />
                <span>{label}</span>
              </label>
            ))}
          </div>
        </fieldset>
        <div class="grid-2">
          {OPTIONS.map((option) => (
            <NumberField key={option.name} option={option} options={options} onChange={onChange} />
          ))}
        </div>
        <label class="field">
          <span>Tools, as JSON</span>
          <textarea
            rows={5}
            class="mono"
            spellcheck={false}
            aria-invalid={problem.value !== ""}
            aria-describedby="tools-problem"
            placeholder='[{"type": "function", "function": {"name": "…", "parameters": {}}}]'
            defaultValue={tools}
            onInput={(event) => setTools(event.currentTarget.value)}
          />
          <small id="tools-problem" class="problem">
            {problem.value}
          </small>
        </label>
      </div>
    </Dialog>
  );
}

const THINKING: readonly { readonly label: string; readonly value: boolean | undefined }[] = [
  { label: "As the model does", value: undefined },
  { label: "On", value: true },
  { label: "Off", value: false },
];

/** An undefined value takes the setting away. */
const thinkField = (think: boolean | undefined): Partial<ChatSettings> => ({ think }) as Partial<ChatSettings>;

interface NumberFieldProps {
  readonly option: NumberOption;
  readonly options: Chat["options"];
  readonly onChange: (fields: Partial<ChatSettings>) => void;
}

function NumberField({ option: { name, label, min, max, step }, options, onChange }: NumberFieldProps) {
  const set = (text: string): void => {
    const { [name]: _, ...rest } = options;
    const value = Number(text);
    if (text.trim() === "") onChange({ options: rest });
    else if (Number.isFinite(value) && value >= min && value <= max) onChange({ options: { ...rest, [name]: value } });
  };
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type="number"
        inputMode="decimal"
        {...{ min, max, step }}
        placeholder="model's own"
        defaultValue={options[name] === undefined ? "" : String(options[name])}
        onInput={(event) => set(event.currentTarget.value)}
      />
    </label>
  );
}
