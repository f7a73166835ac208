/** Activity by model name: loaded models, models being loaded, and models for which requests wait. */
import type { ModelActivity } from "../requests/runtime.ts";
import { slotsOf, type Entry } from "./entry.ts";
import type { PoolModel } from "./load-message.ts";

const NO_ROOM = { used: 0, room: 0 };

export function modelActivity(entries: readonly Entry[], queued: readonly PoolModel[]): ModelActivity[] {
  const found = new Map<string, ModelActivity>();
  const add = (model: PoolModel, more: Omit<ModelActivity, "name" | "hasAdapters">): void => {
    const { running = 0, waiting = 0, isLoaded = false, kv = NO_ROOM } = found.get(model.name) ?? {};
    found.set(model.name, {
      name: model.name,
      hasAdapters: model.adapters.length > 0,
      running: running + more.running,
      waiting: waiting + more.waiting,
      isLoaded: isLoaded || more.isLoaded,
      kv: { used: kv.used + more.kv.used, room: kv.room + more.kv.room },
    });
  };
  for (const entry of entries) {
    const { model, runner, users, beside } = entry;
    const slots = slotsOf(entry);
    const kv = runner ? { used: runner.kvTokens, room: runner.info.ctxLen * slots } : NO_ROOM;
    const others = [...beside.values()];
    const own = { model, users: others.reduce((left, other) => left - other.users, users) };
    let free = runner ? slots : 0;
    for (const each of [own, ...others]) {
      const running = Math.min(each.users, free);
      free -= running;
      const used = each === own ? kv.used : 0;
      const waiting = each.users - running;
      add(each.model, { running, waiting, isLoaded: runner !== undefined, kv: { ...kv, used } });
    }
  }
  for (const model of queued) add(model, { running: 0, waiting: 1, isLoaded: false, kv: NO_ROOM });
  return [...found.values()];
}
