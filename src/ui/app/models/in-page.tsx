/** What of the models is in this page: in its memory, and in its storage. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Kept } from "../../../browser/kept.ts";
import { useApp } from "../context.ts";
import { bytesText, countText } from "../base/format.ts";

const BACKENDS: readonly (readonly [name: string, label: string])[] = [
  ["auto", "The fastest there is"],
  ["webgpu", "The graphics card (WebGPU)"],
  ["wasm", "The processor (WebAssembly)"],
  ["cpu", "The reference (slow)"],
];

export function InPage() {
  const { engine, prefs, notices } = useApp();
  const isLooking = useSignal(false);
  const room = useSignal("");
  const report = (error: unknown): void => notices.say(error instanceof Error ? error.message : String(error));
  const look = async (): Promise<void> => {
    isLooking.value = true;
    try {
      await engine.lookAtKept();
      const { usage = 0, quota = 0 } = await navigator.storage.estimate();
      room.value = `${bytesText(usage)} of ${bytesText(quota)} used`;
    } catch (error) {
      report(error);
    } finally {
      isLooking.value = false;
    }
  };
  useEffect(() => void (engine.kept.value && look()), []);
  return (
    <section class="section" aria-label="In this page">
      <h2>In this page</h2>
      {!window.isSecureContext && <p class="problem">Models run in this page only over HTTPS, or on localhost.</p>}
      <p class="quiet">
        A chat can run its model here instead of on the server, with Hearth's own engine. The model's file is fetched
        once and kept in this browser. Models that MLC compiled run here only, with WebLLM, which needs WebGPU.
      </p>
      <label class="field inline">
        <span>It runs on</span>
        <select value={prefs.backend.value} onChange={(event) => (prefs.backend.value = event.currentTarget.value)}>
          {BACKENDS.map(([name, label]) => (
            <option value={name}>{label}</option>
          ))}
        </select>
      </label>
      <ul class="cards">
        <HereInMemory />
        <WithWebLlm />
        {engine.kept.value?.map((kept) => (
          <KeptCard
            key={kept.of + kept.digest}
            kept={kept}
            onRemove={() => engine.removeKept(kept).then(look, report)}
          />
        ))}
      </ul>
      <div class="row">
        <button type="button" class="button small" disabled={isLooking.value} onClick={() => void look()}>
          Look at what is kept
        </button>
        <span class="quiet" role="status">
          {engine.kept.value?.length === 0 ? "Nothing is kept." : room.value}
        </span>
      </div>
    </section>
  );
}

function KeptCard({ kept, onRemove }: { kept: Kept; onRemove: () => void }) {
  const { models } = useApp();
  const { of, digest, bytes, isWhole } = kept;
  const what = of === "hearth" ? "a model's weights" : "a model for WebLLM";
  const name = models.list.value?.find((each) => each.digest === digest)?.name.replace(/:latest$/, "");
  return (
    <li class="card">
      <div class="card-line">
        <strong>{name ?? (isWhole ? what.replace("a", "A") : `Part of ${what}`)}</strong>
        <span class="grow" />
        <button type="button" class="button small" onClick={onRemove}>
          Remove
        </button>
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

function WithWebLlm() {
  const { webllm } = useApp();
  const model = webllm.model.value;
  if (!model) return null;
  return (
    <li class="card">
      <div class="card-line">
        <span class="dot still" />
        <strong>{model.name.replace(/:latest$/, "")}</strong>
        <span class="grow" />
        <button type="button" class="button small" onClick={() => webllm.unload()}>
          Unload
        </button>
      </div>
      <p class="quiet">on WebLLM</p>
    </li>
  );
}

function HereInMemory() {
  const { engine } = useApp();
  const model = engine.model.value;
  if (!model) return null;
  return (
    <li class="card">
      <div class="card-line">
        <span class="dot still" />
        <strong>{model.name.replace(/:latest$/, "")}</strong>
        <span class="grow" />
        <button type="button" class="button small" onClick={() => void engine.unload()}>
          Unload
        </button>
      </div>
      <p class="quiet">
        {bytesText(model.bytes)} on {model.backend} · context of {countText(model.contextLength)}
      </p>
    </li>
  );
}
