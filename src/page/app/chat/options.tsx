/** Settings of a chat: system prompt, sampling, thinking, tools. */
import { useSignal, type Signal } from "@preact/signals";
import { useId } from "preact/hooks";
import { countText } from "../base/format.ts";
import { useWords } from "../context.ts";
import { Dialog } from "../base/dialog.tsx";
import type { Words } from "../words/index.ts";
import { SystemChoice } from "./prompt-choice.tsx";
import { ServerSwitches } from "../tools/switches.tsx";
import { toolsOf, type Chat } from "./tree.ts";
import { Field } from "../base/controls.tsx";

export type ChatSettings = Pick<Chat, "system" | "options" | "tools" | "think" | "servers" | "standing">;

interface NumberOption {
  readonly name: keyof Words["options"]["names"];
  readonly min: number;
  readonly max: number;
  readonly step: number;
}

const OPTIONS: readonly NumberOption[] = [
  { name: "temperature", min: 0, max: 5, step: 0.05 },
  { name: "top_p", min: 0, max: 1, step: 0.01 },
  { name: "top_k", min: 0, max: 1000, step: 1 },
  { name: "min_p", min: 0, max: 1, step: 0.01 },
  { name: "repeat_penalty", min: 0, max: 5, step: 0.05 },
  { name: "seed", min: 0, max: 2 ** 31 - 1, step: 1 },
  { name: "num_predict", min: -1, max: 1_000_000, step: 1 },
  { name: "num_ctx", min: 64, max: 10_000_000, step: 1 },
];

interface OptionsDialogProps {
  readonly settings: ChatSettings;
  readonly onChange: (fields: Partial<ChatSettings>) => void;
  readonly onClose: () => void;
  readonly problem: Signal<string>;
}

export function OptionsDialog({ settings, onChange, onClose, problem }: OptionsDialogProps) {
  const { system, options, think, tools } = settings;
  const { options: words, chat } = useWords();
  const setTools = (text: string): void => {
    try {
      toolsOf(text);
      problem.value = "";
      onChange({ tools: text });
    } catch {
      problem.value = words.notTools;
    }
  };
  return (
    <Dialog title={words.title} kind="sheet" onClose={onClose}>
      <div class="stack">
        <Field label={chat.systemPrompt}>
          <textarea
            rows={5}
            placeholder={words.systemHint}
            value={system}
            onInput={(event) => onChange({ system: event.currentTarget.value })}
          />
        </Field>
        <SystemChoice system={system} onChange={(text) => onChange({ system: text })} />
        <fieldset class="field">
          <legend>{words.think}</legend>
          <div class="choices">
            {THINKING.map(({ name, value }) => (
              <label>
                <input
                  type="radio"
                  name="think"
                  checked={think === value}
                  onChange={() => onChange(thinkField(value))}
                />
                <span>{words.thinking[name]}</span>
              </label>
            ))}
          </div>
        </fieldset>
        <div class="grid-2">
          {OPTIONS.map((option) => (
            <NumberField key={option.name} option={option} options={options} onChange={onChange} />
          ))}
        </div>
        <ServerSwitches settings={settings} onChange={onChange} />
        <Field label={words.tools}>
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
        </Field>
      </div>
    </Dialog>
  );
}

const THINKING: readonly { readonly name: keyof Words["options"]["thinking"]; readonly value: boolean | undefined }[] =
  [
    { name: "auto", value: undefined },
    { name: "on", value: true },
    { name: "off", value: false },
  ];

/** An undefined value removes the setting. */
const thinkField = (think: boolean | undefined): Partial<ChatSettings> => ({ think }) as Partial<ChatSettings>;

interface NumberFieldProps {
  readonly option: NumberOption;
  readonly options: Chat["options"];
  readonly onChange: (fields: Partial<ChatSettings>) => void;
}

function NumberField({ option: { name, min, max, step }, options, onChange }: NumberFieldProps) {
  const { options: words } = useWords();
  const isWrong = useSignal(false);
  const id = useId();
  const set = ({ value: text, validity }: HTMLInputElement): void => {
    const { [name]: _, ...rest } = options;
    const value = Number(text);
    const isInside = value >= min && value <= max && (step < 1 || Number.isInteger(value));
    isWrong.value = validity.badInput || (text !== "" && !isInside);
    onChange({ options: text === "" || isWrong.value ? rest : { ...rest, [name]: value } });
  };
  return (
    <Field label={words.names[name]}>
      <input
        type="number"
        inputMode="decimal"
        {...{ min, max, step }}
        placeholder={words.modelsOwn}
        defaultValue={options[name] === undefined ? "" : String(options[name])}
        aria-invalid={isWrong.value}
        aria-describedby={id}
        onInput={(event) => set(event.currentTarget)}
      />
      <small id={id} class="problem" role="status">
        {isWrong.value && words.notInside(countText(min), countText(max), step < 1)}
      </small>
    </Field>
  );
}
