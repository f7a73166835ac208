/** Any sender that signs with an HMAC: the header, its form and what is signed stand in the settings. */
import type { SignatureConfig } from "../config.ts";
import { hmacScheme } from "./hmac.ts";
import { fromBase64, fromHex, type SecretSettings } from "./scheme.ts";

export type GenericSettings = Omit<Extract<SignatureConfig, { scheme: "hmac" }>, "secrets"> & SecretSettings;

export const generic = hmacScheme<GenericSettings>({
  headers: [], // see index.ts: the settings name them
  read({ headers }, settings) {
    const value = headers[settings.header.toLowerCase()];
    if (!value?.startsWith(settings.prefix)) return undefined;
    const decode = settings.encoding === "hex" ? fromHex : fromBase64;
    return {
      signatures: [decode(value.slice(settings.prefix.length).trim())],
      timestamp: named(headers, settings.timestampHeader),
      id: named(headers, settings.idHeader),
    };
  },
  content({ rawBody, url, method }, { timestamp, id }, settings) {
    const values: Readonly<Record<string, string | Uint8Array>> = { body: rawBody, id, timestamp, url, method };
    return settings.signedContent
      .split(/(\{(?:id|timestamp|body|url|method)\})/)
      .map((piece) => (/^\{\w+\}$/.test(piece) ? (values[piece.slice(1, -1)] ?? piece) : piece));
  },
  write(signature, { timestamp, id }, settings) {
    const { header, prefix, encoding, timestampHeader, idHeader } = settings;
    return {
      [header.toLowerCase()]: prefix + signature.toString(encoding),
      ...(timestampHeader ? { [timestampHeader.toLowerCase()]: timestamp } : {}),
      ...(idHeader ? { [idHeader.toLowerCase()]: id } : {}),
    };
  },
  algorithm: ({ algorithm }) => algorithm,
  timestampUnitMs: ({ timestampHeader, timestampUnit }) =>
    timestampHeader === undefined ? undefined : timestampUnit === "ms" ? 1 : 1000,
  deliveryId: ({ headers }, { idHeader }) => named(headers, idHeader),
});

const named = (headers: Readonly<Record<string, string>>, name: string | undefined): string | undefined =>
  name === undefined ? undefined : headers[name.toLowerCase()];
