/** The page in English, by part. Other languages have the same shape. */
import { base } from "./en/base.ts";
import { catalogue, create, engine, inPage, jobs, modelFiles, models, show } from "./en/models.ts";
import { deliveries, gateway, help, keyboard, keyDialog, markdown, pageSettings, setup, system } from "./en/views.ts";
import { attachments, chat, chats, compare, composer, modelMenu, options, prompts, welcome } from "./en/chat.ts";

export const en = {
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

export type Words = typeof en;
