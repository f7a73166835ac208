/** The page in German, by part. */
import * as base from "./de/base.ts";
import * as chat from "./de/chat.ts";
import * as models from "./de/models.ts";
import * as views from "./de/views.ts";
import type { Words } from "./en.ts";

export const de: Words = { ...base, ...chat, ...models, ...views };
