/** The page in Japanese, by part. */
import * as base from "./ja/base.ts";
import * as chat from "./ja/chat.ts";
import * as models from "./ja/models.ts";
import * as views from "./ja/views.ts";
import type { Words } from "./en.ts";

export const ja: Words = { ...base, ...chat, ...models, ...views };
