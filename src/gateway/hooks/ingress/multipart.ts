/** `multipart/form-data`, which senders of mails and forms write: the platform reads it. */
import { Refusal } from "./problems.ts";

/** A file of a form. What is in it stays out of payloads. */
interface FormFile {
  readonly filename: string;
  readonly type: string;
  /** Bytes. */
  readonly size: number;
}

export const isMultipart = (contentType: string | null): contentType is string =>
  /^\s*multipart\/form-data\s*(;|$)/i.test(contentType ?? "");

/** Names and values in their order. Throws a `Refusal`. */
export async function parseMultipart(
  bytes: Uint8Array,
  contentType: string,
): Promise<[name: string, value: string | FormFile][]> {
  try {
    const form = await new Response(bytes as Uint8Array<ArrayBuffer>, {
      headers: { "content-type": contentType },
    }).formData();
    return [...form].map(([name, value]) => [name, typeof value === "string" ? value : fileOf(value)]);
  } catch (cause) {
    throw new Refusal("invalid_form", { cause });
  }
}

const fileOf = ({ name, type, size }: File): FormFile => ({ filename: name, type, size });
