/** `multipart/form-data`, sent by mail services and forms; the runtime parses it. */
import { Refusal } from "./problems.ts";

/** A file of a form. Payloads omit its content. */
interface FormFile {
  readonly filename: string;
  readonly type: string;
  /** Bytes. */
  readonly size: number;
}

export const isMultipart = (contentType: string | null): contentType is string =>
  /^\s*multipart\/form-data\s*(;|$)/i.test(contentType ?? "");

/** Names and values in order. Throws a `Refusal`. */
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
