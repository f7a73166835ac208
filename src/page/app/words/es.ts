/** The page in Spanish, by part. */
import { base } from "./es/base.ts";
import { catalogue, create, engine, inPage, jobs, modelFiles, models, show } from "./es/models.ts";
import { deliveries, gateway, help, keyboard, keyDialog, markdown, pageSettings, setup, system } from "./es/views.ts";
import { attachments, chat, chats, compare, composer, modelMenu, options, prompts, welcome } from "./es/chat.ts";
import type { Words } from "./en.ts";

export const es: Words = {
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
