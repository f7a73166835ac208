/** Uploads a file to the server. Uses XMLHttpRequest, because `fetch` reports no upload progress. */

export interface UploadOptions {
  readonly signal: AbortSignal;
  readonly onProgress: (sent: number) => void;
}

interface Upload extends UploadOptions {
  readonly address: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly file: Blob;
}

/** The answer; undefined if the connection failed. Throws the signal's reason. */
export function sendFile({ address, headers, file, signal, onProgress }: Upload): Promise<Response | undefined> {
  signal.throwIfAborted();
  const request = new XMLHttpRequest();
  const sent = new Promise<Response | undefined>((resolve, reject) => {
    request.upload.addEventListener("progress", ({ loaded }) => onProgress(loaded));
    request.addEventListener("load", () => {
      const { status, responseText } = request;
      resolve(status === 0 ? undefined : new Response(responseText, { status }));
    });
    request.addEventListener("error", () => resolve(undefined));
    request.addEventListener("abort", () => reject(signal.reason as Error));
  });
  signal.addEventListener("abort", () => request.abort(), { once: true });
  request.open("POST", address);
  for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
  request.setRequestHeader("content-type", "application/octet-stream");
  request.send(file);
  return sent;
}
