/** Which model answers, and where it runs. */
import { useApp } from "../context.ts";
import { Icon } from "../base/icons.tsx";
import { PLACES, type Place } from "./tree.ts";

const LABELS: Readonly<Record<Place, string>> = {
  server: "On the server",
  page: "In this page",
  webllm: "In this page, with WebLLM",
};

interface ModelChoiceProps {
  readonly model: string;
  readonly place: Place;
  readonly onChoose: (model: string, place: Place) => void;
}

export function ModelChoice({ model, place, onChoose }: ModelChoiceProps) {
  const { models } = useApp();
  const names = models.list.value?.map(({ name }) => name) ?? [];
  const isUnlisted = model !== "" && !names.includes(model);
  return (
    <div class="model-choice">
      <label class="select" title="Model">
        <span class="off-screen">Model</span>
        <select
          value={model}
          onChange={({ currentTarget: { value } }) => onChoose(value, models.placeOf(value, place))}
        >
          {model === "" && <option value="">No model</option>}
          {isUnlisted && (
            <option value={model}>
              {model.replace(/:latest$/, "")}
              {models.list.value && " (gone)"}
            </option>
          )}
          {names.map((name) => (
            <option value={name}>{name.replace(/:latest$/, "")}</option>
          ))}
        </select>
        <Icon name="down" size={14} />
      </label>
      <label class="select place" title="Where the model runs">
        <Icon name={place === "server" ? "server" : "page"} size={15} />
        <span class="off-screen">Where it runs</span>
        <select value={place} onChange={(event) => onChoose(model, event.currentTarget.value as Place)}>
          {PLACES.map((each) => (
            <option value={each} disabled={each !== place && !models.placesOf(model).includes(each)}>
              {LABELS[each]}
            </option>
          ))}
        </select>
        <Icon name="down" size={14} />
      </label>
    </div>
  );
}
