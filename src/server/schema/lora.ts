/** Adapters that a request chooses, as llama-server's clients name them. */
import { t, type Static } from "elysia";

const Item = t.Object({
  /** Its number in `/lora-adapters`. */
  id: t.Optional(t.Number()),
  /** Or the model that it belongs to. */
  name: t.Optional(t.String()),
  scale: t.Optional(t.Number()),
});

export const LoraList = t.Array(Item, { title: "LoraAdapters" });
export type LoraList = Static<typeof LoraList>;

export const loraFields = { lora: t.Optional(LoraList) };

/** The body of `POST /lora-adapters`, which is the list itself, in an object. */
export const ScaleBody = t.Object({ adapters: t.Optional(LoraList) });
