/** The page in English, by part. Other languages have the same shape. */
import { base } from "./en/base.ts";

export const en = { base };
