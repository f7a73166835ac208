/** Saves a file on the user's device. */

export function saveFile(name: string, text: string, type = "application/json"): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A file name that every system accepts, in the script of the title. */
export function fileNameOf(title: string, ending: string): string {
  const name = title
    .normalize("NFC")
    .replace(/[^\p{L}\p{M}\p{N}_-]+/gu, "-")
    .replace(/^-+|-+$/g, "");
  return `${[...name].slice(0, 60).join("") || "chat"}.${ending}`;
}
