/** The page in Japanese, by part. */
import { base } from "./ja/base.ts";
import { catalogue, create, engine, inPage, jobs, modelFiles, models, show } from "./ja/models.ts";
import { deliveries, gateway, help, keyboard, keyDialog, markdown, pageSettings, setup, system } from "./ja/views.ts";
import { attachments, chat, chats, compare, composer, modelMenu, options, prompts, welcome } from "./ja/chat.ts";
import type { Words } from "./en.ts";

export const ja: Words = {
  attachments,
  base,
  catalogue,
  chat,
  chats,
  compare,
  composer,
  create,
  deliveries,
  engine,
  gateway,
  help,
  inPage,
  jobs,
  keyboard,
  keyDialog,
  markdown,
  modelFiles,
  modelMenu,
  models,
  options,
  pageSettings,
  prompts,
  setup,
  show,
  system,
  welcome,
};
