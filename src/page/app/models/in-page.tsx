/** Models in this page: in its memory, and in its storage. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Kept } from "../../engine/kept.ts";
import { useApp, useWords } from "../context.ts";
import { Icon } from "../base/icons.tsx";
import { bytesText } from "../base/format.ts";
import { reasonOf } from "../base/reason.ts";
import { shortName } from "./models.ts";
import { SmallButton, chosen } from "../base/controls.tsx";

const BACKENDS = ["auto", "webgpu", "wasm", "cpu"] as const;

export function InPage() {
  const { engine, webllm, notices } = useApp();
  const words = useWords();
  const { inPage: texts } = words;
  const isLooking = useSignal(false);
  const room = useSignal("");
  const report = (error: unknown): void => notices.say(reasonOf(words, error));
  const look = async (): Promise<void> => {
    isLooking.value = true;
    try {
      await engine.lookAtKept();
      const { usage = 0, quota = 0 } = await navigator.storage.estimate();
      room.value = texts.used(bytesText(usage), bytesText(quota));
    } catch (error) {
      report(error);
    } finally {
      isLooking.value = false;
    }
  };
  useEffect(() => void (engine.kept.value && look()), []);
  const kept = engine.kept.value;
  const [here, withWebLlm] = [engine.model.value, webllm.model.value];
  return (
    <details class="section in-page" aria-label={texts.title}>
      <summary>
        <h2>{texts.title}</h2>
        <Icon name="down" size={14} />
      </summary>
      <About />
      <ul class="cards">
        {here && (
          <InMemory
            name={here.name}
            about={`${texts.on(bytesText(here.bytes), here.backend)} · ${texts.context(here.contextLength)}`}
            onUnload={() => void engine.unload()}
          />
        )}
        {withWebLlm && <InMemory name={withWebLlm.name} about={texts.onWebLlm} onUnload={() => webllm.unload()} />}
        {kept?.map((each) => (
          <KeptCard
            key={each.of + each.digest}
            kept={each}
            onRemove={() => engine.removeKept(each).then(look, report)}
          />
        ))}
      </ul>
      <div class="row">
        <SmallButton disabled={isLooking.value} onClick={() => void look()}>
          {texts.look}
        </SmallButton>
        <span class="quiet" role="status">
          {kept?.length === 0 ? texts.nothing : room.value}
        </span>
      </div>
    </details>
  );
}

function About() {
  const { prefs } = useApp();
  const { inPage: words } = useWords();
  return (
    <>
      {!window.isSecureContext && <p class="problem">{words.insecure}</p>}
      <p class="quiet">{words.about}</p>
      <label class="field inline">
        <span>{words.runsOn}</span>
        <select {...chosen(prefs.backend)}>
          {BACKENDS.map((name) => (
            <option value={name}>{words.backends[name]}</option>
          ))}
        </select>
      </label>
    </>
  );
}

function KeptCard({ kept, onRemove }: { kept: Kept; onRemove: () => void }) {
  const { models } = useApp();
  const { inPage: words, jobs } = useWords();
  const { of, digest, bytes, isWhole } = kept;
  const what = of === "hearth" ? words.weights : words.webllm;
  const name = models.list.value?.find((each) => each.digest === digest)?.name;
  const title = name === undefined ? (isWhole ? what : words.partOf(what)) : shortName(name);
  return (
    <li class="card">
      <div class="card-line">
        <strong>{title}</strong>
        <span class="grow" />
        <SmallButton onClick={onRemove}>{jobs.forget}</SmallButton>
      </div>
      <p class="quiet">
        {bytesText(bytes)}
        {digest !== "" && (
          <>
            {" · "}
            <span class="mono">{digest.slice(0, 12)}…</span>
          </>
        )}
      </p>
    </li>
  );
}

interface InMemoryProps {
  name: string;
  about: string;
  onUnload: () => void;
}

function InMemory({ name, about, onUnload }: InMemoryProps) {
  const { models } = useWords();
  return (
    <li class="card">
      <div class="card-line">
        <span class="dot still" />
        <strong>{shortName(name)}</strong>
        <span class="grow" />
        <SmallButton onClick={onUnload}>{models.unload}</SmallButton>
      </div>
      <p class="quiet">{about}</p>
    </li>
  );
}
