/** The page in German, by part. */
import { base } from "./de/base.ts";
import { catalogue, create, engine, inPage, jobs, modelFiles, models, show } from "./de/models.ts";
import { deliveries, gateway, help, keyboard, keyDialog, markdown, pageSettings, setup, system } from "./de/views.ts";
import { attachments, chat, chats, compare, composer, modelMenu, options, prompts, welcome } from "./de/chat.ts";
import type { Words } from "./en.ts";

export const de: Words = {
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
