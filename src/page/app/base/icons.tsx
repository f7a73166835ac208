/** Icons of a few lines each, drawn for this page on a grid of 24. */

const PATHS = {
  plus: "M12 5v14M5 12h14",
  search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM20 20l-4.9-4.9",
  chat: "M20 12a7.5 7.5 0 0 1-7.5 7.5c-1.3 0-2.6-.3-3.7-.9L4 20l1.4-4.5A7.5 7.5 0 1 1 20 12z",
  box: "M12 3l8 4.5v9L12 21l-8-4.5v-9zM4.2 7.6 12 12l7.8-4.4M12 12v9",
  hook: "M9.5 8.5a3.5 3.5 0 1 1 4.9 3.2L17 17M6.5 13.2A3.5 3.5 0 1 0 9.9 17H17m0 0a3.3 3.3 0 1 0 1.2-4",
  gauge: "M4.5 18a9 9 0 1 1 15 0M12 14l4-4.5",
  send: "M12 19V5.5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  clip: "M20 11.5l-8 8a5 5 0 0 1-7.1-7.1l8.3-8.3a3.3 3.3 0 0 1 4.7 4.7l-8.3 8.3a1.7 1.7 0 0 1-2.4-2.4l7.6-7.5",
  sliders: "M4 7h9M17 7h3M15 5v4M4 17h3M11 17h9M9 15v4M4 12h5M13 12h7M11 10v4",
  copy: "M9 9h10v11H9zM5 15V4h10",
  check: "M5 12.5l4.5 4.5L19 7.5",
  edit: "M4 20l1-4L16.5 4.5l3 3L8 19zM14 7l3 3",
  retry: "M19.5 12a7.5 7.5 0 1 1-2.3-5.4M19.5 4v4.5H15",
  play: "M8 5.5v13l10.5-6.5z",
  trash: "M5 7h14M10 7V4.5h4V7M7 7l.8 12.5h8.4L17 7M10.5 11v5M13.5 11v5",
  more: "M6 12h.01M12 12h.01M18 12h.01",
  left: "M14.5 6l-6 6 6 6",
  right: "M9.5 6l6 6-6 6",
  down: "M6 9.5l6 6 6-6",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6L6 18",
  download: "M12 4v11M7 10.5l5 5 5-5M5 20h14",
  upload: "M12 16V5M7 9.5l5-5 5 5M5 20h14",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 3v1.5M12 19.5V21M3 12h1.5M19.5 12H21M5.6 5.6l1.1 1.1M17.3 17.3l1.1 1.1M18.4 5.6l-1.1 1.1M6.7 17.3l-1.1 1.1",
  moon: "M19.5 14A8 8 0 0 1 10 4.5 8 8 0 1 0 19.5 14z",
  auto: "M12 20a8 8 0 1 0 0-16zM12 4a8 8 0 0 0 0 16",
  warn: "M12 4l9 16H3zM12 10v4.5M12 17.2v.01",
  branch: "M7 5v14M7 14c0-4 10-2 10-7M17 4.5v2.5M7 4.5V5",
  pause: "M8.5 6v12M15.5 6v12",
  server: "M4 5h16v6H4zM4 13h16v6H4zM7.5 8h.01M7.5 16h.01",
  page: "M4 5h16v14H4zM4 9h16M7 7h.01",
  image: "M4 5h16v14H4zM4 16l4.5-4.5 4 4 3-3L20 16M15.5 9.5h.01",
  file: "M7 3.5h6.5L18 8v12.5H7zM13.5 3.5V8H18",
  tool: "M14.5 6.5a4 4 0 0 1 5-1l-2.7 2.7 1 2 2 .5 1.2-1.2a4 4 0 0 1-5.5 4.3L9 20l-4-4 6.3-6.3a4 4 0 0 1 3.2-3.2",
  bulb: "M9.5 17.5h5M10.3 20.5h3.4M9.5 17.5c0-2.5-3-3.7-3-7.5a5.5 5.5 0 0 1 11 0c0 3.8-3 5-3 7.5",
  eye: "M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12zM12 14.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6z",
  help: "M9.2 9.3a2.9 2.9 0 1 1 4.3 2.5c-.9.5-1.5 1.1-1.5 2.2M12 17.2v.01M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z",
  keyboard: "M3.5 6.5h17v11h-17zM7 10h.01M10.3 10h.01M13.7 10h.01M17 10h.01M7.5 14h9",
  speaker: "M4 9.5v5h3.5L12 18.5v-13L7.5 9.5zM15.5 9a4.2 4.2 0 0 1 0 6M18 6.5a8 8 0 0 1 0 11",
  columns: "M4 5h7v14H4zM13.5 5h6.5v14h-6.5z",
  book: "M12 7c-2-1.6-4.6-2-8-2v13c3.4 0 6 .4 8 2 2-1.6 4.6-2 8-2V5c-3.4 0-6 .4-8 2zM12 7v13",
  pin: "M9 4h6l-.7 6 3.2 3.5h-11L9.7 10zM12 13.5V20.5",
  folder: "M3.5 6.5h6l2 2.5h9v10h-17z",
  key: "M14.5 14a4.5 4.5 0 1 0-4.3-3.2L4 17v3h3.5v-2.2h2.2v-2.2l1.2-1.2c.9.4 2.2.6 3.6-.4zM15.5 8.5h.01",
} as const;

export type IconName = keyof typeof PATHS;

/** Hidden from screen readers: the element around it has a label. */
export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  const isSolid = name === "stop" || name === "play";
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path
        d={PATHS[name]}
        fill={isSolid ? "currentColor" : "none"}
        stroke="currentColor"
        stroke-width={name === "more" ? 3.4 : name === "stop" ? 2.5 : 1.7}
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}

/** The logo, a flame. */
export function Mark({ size = 22 }: { size?: number }) {
  return (
    <svg class="mark" width={size} height={size} viewBox="6 4 20 24" aria-hidden="true" focusable="false">
      <path d="M16.6 5.5c.6 3.6-1.3 5.2-3.2 7.3-1.9 2-3.9 4.1-3.9 7.5 0 3.9 3 6.7 6.7 6.7s6.6-2.8 6.6-6.7c0-2.7-1.2-4.6-2.3-5.9-.2 1.5-.9 2.6-2 3.1.7-3.9-.1-9-1.9-12z" />
    </svg>
  );
}
