/** The page in Chinese, simplified, by part. */
import { base } from "./zh/base.ts";
import { catalogue, create, engine, inPage, jobs, modelFiles, models, show } from "./zh/models.ts";
import { deliveries, gateway, help, keyboard, keyDialog, markdown, pageSettings, setup, system } from "./zh/views.ts";
import { attachments, chat, chats, compare, composer, modelMenu, options, prompts, welcome } from "./zh/chat.ts";
import type { Words } from "./en.ts";

export const zh: Words = {
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
