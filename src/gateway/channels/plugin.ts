/**
 * A plugin: a module whose default export is a function that gets these tools and makes a `ChannelKind`. The tools are
 * passed in, so that a module anywhere on the disk needs only type imports.
 */
import { Type } from "@sinclair/typebox";
import { httpUrl } from "../../base/schema.ts";
import { field, makeApi, secondsField, textField } from "./api.ts";
import type { ChannelKind } from "./channel.ts";
import { channelSchema, readSecret, secret, secretFile } from "./config.ts";
import { openedBy, rememberConversations } from "./conversation.ts";
import { findFences } from "./fences.ts";
import { badRecipient, phoneDigits, withoutPrefix } from "./recipient.ts";

export const pluginTools = {
  Type,
  channelSchema,
  httpUrl,
  readSecret,
  secret,
  secretFile,
  makeApi,
  field,
  secondsField,
  textField,
  openedBy,
  rememberConversations,
  findFences,
  badRecipient,
  phoneDigits,
  withoutPrefix,
} as const;

export type PluginTools = typeof pluginTools;
export type ChannelPlugin = (tools: PluginTools) => ChannelKind;
