/** The page in Spanish, by part. */
import * as base from "./es/base.ts";
import * as chat from "./es/chat.ts";
import * as models from "./es/models.ts";
import * as views from "./es/views.ts";
import type { Words } from "./en.ts";

export const es: Words = { ...base, ...chat, ...models, ...views };
