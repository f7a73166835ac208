/** Files as blobs of a server, for `files` of a create request. */
import { digestOf } from "../../src/library/store/digest.ts";
import { bytesOf, type FolderFiles } from "../library/convert/onnx-folder.ts";
import type { Hearth } from "./hearth.ts";

/** Digests by name. @param folder that the names begin with */
export async function uploadedFiles(
  { url }: Pick<Hearth, "url">,
  files: FolderFiles,
  folder = "",
): Promise<Record<string, string>> {
  const digests: Record<string, string> = {};
  for (const [name, content] of Object.entries(files)) {
    const body = bytesOf(content) as Uint8Array<ArrayBuffer>;
    const digest = digestOf(body);
    await fetch(`${url}/api/blobs/${digest}`, { method: "POST", body });
    digests[folder + name] = digest;
  }
  return digests;
}
