/**
 * Long work that reports progress, as an async generator. A slow reader gets only the latest report, and a reader that
 * stops ends the work.
 */

/** @param report replaces an unread report; @param signal aborted when the reader stops */
type ReportingWork<Report, Result> = (report: (report: Report) => void, signal: AbortSignal) => Promise<Result>;

/**
 * Runs `work` and yields its reports; returns its result, rethrows its error. Ends only after the work has ended.
 * @param options.signal aborts the work as well
 */
export async function* reports<Report, Result>(
  work: ReportingWork<Report, Result>,
  options: { signal?: AbortSignal | undefined } = {},
): AsyncGenerator<Report, Result, void> {
  const stopped = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, stopped.signal]) : stopped.signal;
  let latest: { report: Report } | undefined;
  let news = Promise.withResolvers<void>();
  const result = work((report) => {
    latest = { report };
    news.resolve();
  }, signal);
  let isDone = false;
  const done = result.then(
    () => void (isDone = true),
    () => void (isDone = true), // `result` is awaited at the end
  );
  try {
    while (!isDone) {
      await Promise.race([done, news.promise]);
      news = Promise.withResolvers();
      if (latest) {
        const { report } = latest;
        latest = undefined;
        yield report;
      }
    }
    return await result;
  } finally {
    stopped.abort();
    await done;
  }
}
