/** Notices elements that come near the visible part of a list, so that long lists are rendered while scrolling. */
import { createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";

const MARGIN = "1200px 0px";

export type Watch = (element: Element, onNear: () => void) => () => void;

/** Watches inside a scrolling list. */
export function makeWatch(root: Element): { watch: Watch; end: () => void } {
  const waiting = new Map<Element, () => void>();
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) if (isIntersecting) waiting.get(target)?.();
    },
    { root, rootMargin: MARGIN },
  );
  const watch: Watch = (element, onNear) => {
    waiting.set(element, onNear);
    observer.observe(element);
    return () => {
      waiting.delete(element);
      observer.unobserve(element);
    };
  };
  const renderAll = (): void => waiting.forEach((onNear) => onNear()); // a printed list has no distant part
  addEventListener("beforeprint", renderAll);
  const end = (): void => {
    observer.disconnect();
    removeEventListener("beforeprint", renderAll);
  };
  return { watch, end };
}

export const WatchContext = createContext<Watch | undefined>(undefined);

/**
 * True once an element was near.
 * @param isAtOnce true renders it immediately
 */
export function useNear<E extends Element>(isAtOnce: boolean): { ref: { current: E | null }; isNear: boolean } {
  const ref = useRef<E>(null);
  const watch = useContext(WatchContext);
  const [isNear, setNear] = useState(isAtOnce);
  useEffect(() => {
    if (isNear || !ref.current || !watch) return undefined;
    return watch(ref.current, () => setNear(true));
  }, [isNear, watch]);
  return { ref, isNear };
}
