/** The page in French, by part. */
import { base } from "./fr/base.ts";
import { catalogue, create, engine, inPage, jobs, modelFiles, models, show } from "./fr/models.ts";
import { deliveries, gateway, help, keyboard, keyDialog, markdown, pageSettings, setup, system } from "./fr/views.ts";
import { attachments, chat, chats, compare, composer, modelMenu, options, prompts, welcome } from "./fr/chat.ts";
import type { Words } from "./en.ts";

export const fr: Words = {
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
