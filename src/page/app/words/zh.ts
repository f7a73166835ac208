/** The page in Chinese, simplified, by part. */
import * as base from "./zh/base.ts";
import * as chat from "./zh/chat.ts";
import * as models from "./zh/models.ts";
import * as views from "./zh/views.ts";
import type { Words } from "./en.ts";

export const zh: Words = { ...base, ...chat, ...models, ...views };
