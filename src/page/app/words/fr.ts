/** The page in French, by part. */
import * as base from "./fr/base.ts";
import * as chat from "./fr/chat.ts";
import * as models from "./fr/models.ts";
import * as views from "./fr/views.ts";
import type { Words } from "./en.ts";

export const fr: Words = { ...base, ...chat, ...models, ...views };
