/** A server of files, for pages in tests. */

/** A file, or its requested range. */
export function ranged(request: Request, path: string): Response {
  const file = Bun.file(path);
  const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get("range") ?? "");
  if (!range) return new Response(file);
  return new Response(file.slice(Number(range[1]), Number(range[2]) + 1), { status: 206 });
}
