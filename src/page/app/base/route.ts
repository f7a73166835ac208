/** The current view: the part of the URL after `#`, so that back, forward and links work. */
import { signal, type ReadonlySignal } from "@preact/signals";

const VIEWS = ["chat", "models", "gateway", "system"] as const;
export type View = (typeof VIEWS)[number];

export interface Route {
  readonly view: View;
  /** Id of a chat, a model or a delivery. */
  readonly id?: string;
}

function parseRoute(hash: string): Route {
  const [, name, id = ""] = /^#\/(\w+)(?:\/(.*))?$/.exec(hash) ?? [];
  const view = VIEWS.find((each) => each === name) ?? "chat";
  return id === "" ? { view } : { view, id: decoded(id) };
}

export const routeText = ({ view, id }: Route): string =>
  `#/${view}${id === undefined ? "" : `/${encodeURIComponent(id)}`}`;

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function makeRoute(): { route: ReadonlySignal<Route>; go: (route: Route) => void } {
  const route = signal(parseRoute(location.hash));
  addEventListener("hashchange", () => (route.value = parseRoute(location.hash)));
  return { route, go: (to) => void (location.hash = routeText(to)) };
}
