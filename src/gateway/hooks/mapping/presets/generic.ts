/** Any sender: passes the body unchanged to the model. */
import { jsonText } from "./fields.ts";
import { BODY_CHARS_MAX, type Preset, summary } from "./preset.ts";

export const generic: Preset = {
  mapping: { match: { path: "generic" }, name: "Webhook" },
  deliveryIdAt: ["headers.webhook-id"],
  describe: ({ payload }) => {
    const text = typeof payload === "string" ? payload.slice(0, BODY_CHARS_MAX) : jsonText(payload, BODY_CHARS_MAX);
    return summary("A webhook came in. Tell what it is about, and what matters in it.", text);
  },
};
