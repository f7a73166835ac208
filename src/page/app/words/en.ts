/** The page in English, by part. Other languages have the same shape. */
import * as base from "./en/base.ts";
import * as chat from "./en/chat.ts";
import * as models from "./en/models.ts";
import * as views from "./en/views.ts";

export const en = { ...base, ...chat, ...models, ...views };

export type Words = typeof en;
