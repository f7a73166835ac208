/** Keeps a list scrolled to its end while it grows, until the user scrolls up. */
import { useSignal, type Signal } from "@preact/signals";
import { useCallback, useLayoutEffect, useRef } from "preact/hooks";

/** Distance in pixels that counts as the end for a user who scrolls down. */
const END_PX = 60;

type ElementRef = { readonly current: HTMLElement | null };

export interface End {
  readonly isAtEnd: Signal<boolean>;
  readonly toEnd: () => void;
  readonly onScroll: (event: { readonly currentTarget: HTMLElement }) => void;
}

/**
 * @param root the element that scrolls
 * @param content its only child: code and formulas change its height after they were added
 */
export function useEnd(root: ElementRef, content: ElementRef): End {
  const isAtEnd = useSignal(true);
  const lastTop = useRef(0);
  const keep = useCallback(() => {
    const list = root.current;
    if (!list) return;
    if (list.scrollHeight <= list.clientHeight) isAtEnd.value = true; // its messages were deleted
    if (isAtEnd.peek()) list.scrollTop = list.scrollHeight;
  }, []);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(keep);
    for (const { current } of [root, content]) if (current) observer.observe(current);
    return () => observer.disconnect();
  }, []);
  const toEnd = useCallback(() => {
    isAtEnd.value = true;
    keep();
  }, []);
  const onScroll: End["onScroll"] = ({ currentTarget }) => {
    const { scrollTop, scrollHeight, clientHeight } = currentTarget; // the event may arrive after the list is gone
    const distance = scrollHeight - scrollTop - clientHeight;
    if (scrollTop < lastTop.current)
      isAtEnd.value = distance < 2; // else the next word would pull a slow user back
    else if (distance < END_PX) isAtEnd.value = true;
    lastTop.current = scrollTop;
  };
  return { isAtEnd, toEnd, onScroll };
}
