/** The list of deliveries, newest first, with filters by state and path. */
import { useSignal } from "@preact/signals";
import { useApp, useWords } from "../context.ts";
import { agoText, bytesText } from "../base/format.ts";
import { reasonOf } from "../base/reason.ts";
import { fateOf, type Delivery } from "./admin.ts";
import { DeliveryDialog } from "./delivery.tsx";
import { ReplayAll } from "./replay-all.tsx";
import { Button, chosen, useLooks } from "../base/controls.tsx";

const LOOK_MS = 4000;
const STATES = ["", "queued", "running", "succeeded", "failed", "cancelled", "dead"] as const;

interface Page {
  readonly deliveries: readonly Delivery[];
  readonly next: string | null;
}

export function DeliveryList() {
  const { admin, route, go } = useApp();
  const words = useWords();
  const { deliveries: texts } = words;
  const state = useSignal("");
  const path = useSignal("");
  const page = useSignal<Page | undefined>(undefined);
  const problem = useSignal("");
  const ask = async (before?: string): Promise<void> => {
    const query = new URLSearchParams({ limit: "50" });
    if (state.value !== "") query.set("state", state.value);
    if (path.value.trim() !== "") query.set("path", path.value.trim());
    if (before !== undefined) query.set("before", before);
    try {
      const found = await admin.ask<Page>(`deliveries?${query}`);
      const earlier = before === undefined ? [] : (page.value?.deliveries ?? []);
      page.value = { deliveries: [...earlier, ...found.deliveries], next: found.next };
      problem.value = "";
    } catch (error) {
      problem.value = reasonOf(words, error);
    }
  };
  useLooks(
    () => void ask(),
    LOOK_MS,
    [state.value, path.value],
    () => (page.value?.deliveries.length ?? 0) <= 50,
  );
  const { id } = route.value;
  const { deliveries = [], next = null } = page.value ?? {};
  return (
    <section class="section" aria-label={words.gateway.deliveries}>
      <div class="filters">
        <label class="field inline">
          <span>{texts.state}</span>
          <select {...chosen(state)}>
            {STATES.map((each) => (
              <option value={each}>{each === "" ? texts.any : each}</option>
            ))}
          </select>
        </label>
        <label class="field inline">
          <span>{texts.path}</span>
          <input
            value={path.value}
            placeholder={texts.anyPath}
            onChange={(event) => (path.value = event.currentTarget.value)}
          />
        </label>
        <ReplayAll state={state.value} path={path.value.trim()} onDone={() => void ask()} />
      </div>
      {problem.value !== "" && <p class="problem">{problem.value}</p>}
      {page.value && deliveries.length === 0 && (
        <p class="quiet">{state.value + path.value === "" ? texts.none : words.base.noMatches}</p>
      )}
      <ul class="rows">
        {deliveries.map((delivery) => (
          <DeliveryRow key={delivery.id} delivery={delivery} onOpen={() => go({ view: "gateway", id: delivery.id })} />
        ))}
      </ul>
      {next !== null && <Button onClick={() => void ask(next)}>{texts.earlier}</Button>}
      {id !== undefined && (
        <DeliveryDialog id={id} onClose={() => go({ view: "gateway" })} onChange={() => void ask()} />
      )}
    </section>
  );
}

function DeliveryRow({ delivery, onOpen }: { delivery: Delivery; onOpen: () => void }) {
  const { deliveries: words } = useWords();
  const { path, title, mappingId, receivedAt, bodyBytes, authId, runs, replayOf } = delivery;
  return (
    <li>
      <button type="button" class="row-button" onClick={onOpen}>
        <span class="row-main">
          <strong>{title ?? `/${path}`}</strong>
          <span class="quiet">
            {[
              title === null ? "" : `/${path}`,
              mappingId,
              authId,
              bytesText(bodyBytes),
              agoText(receivedAt),
              replayOf === null ? "" : words.replayed,
            ]
              .filter(Boolean)
              .join(" · ")}
          </span>
        </span>
        <span class="tags">
          {runs.map((run) => (
            <span key={run.id} class={fateOf(run).look}>
              {words.fate(fateOf(run))}
            </span>
          ))}
        </span>
      </button>
    </li>
  );
}
