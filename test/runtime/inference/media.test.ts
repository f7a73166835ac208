/** Files that a model takes: images, recordings, both or neither. */
import { describe, expect, test } from "bun:test";
import type { EngineInfo } from "../../../src/engine/index.ts";
import { refuseMedia, withoutUnreadable } from "../../../src/runtime/inference/media.ts";

const picture = Uint8Array.from(Buffer.from("GIF89a"));
const recording = Uint8Array.from(Buffer.from("RIFF    WAVE"));
const about = (media: EngineInfo["media"], more: Partial<EngineInfo> = {}) => ({
  model: "m",
  info: { media, ...more },
});

describe("a new message", () => {
  test("may have every kind of file that the model takes", () => {
    refuseMedia([picture, recording], about(["image", "audio"]));
    refuseMedia([recording], about(["audio"]));
    refuseMedia(undefined, about([]));
  });

  test("with another kind of file is refused, with the reason if there is one", () => {
    expect(() => refuseMedia([picture, recording], about(["image"]))).toThrow('"m" does not support audio');
    expect(() => refuseMedia([recording, picture], about(["audio"]))).toThrow('"m" does not support images');
    const missing = about(["image"], { hearingMissing: "its encoder is odd" });
    expect(() => refuseMedia([recording], missing)).toThrow('"m" does not support audio: its encoder is odd');
    const user = { role: "user", content: "x", images: [recording] };
    expect(() => withoutUnreadable([user], about(["image"]))).toThrow('"m" does not support audio');
  });
});

test("an earlier message loses files that the model cannot take, and keeps the others in place", () => {
  const messages = [
    { role: "user", content: "see hear", images: [picture, recording], imagesAt: [0, 4] },
    { role: "assistant", content: "yes" },
    { role: "user", content: "and?" },
  ];
  const heardOnly = withoutUnreadable(messages, about(["audio"]));
  expect(heardOnly[0]).toEqual({
    role: "user",
    content: "[image left out: m cannot see images]\nsee hear",
    images: [recording],
    imagesAt: [42],
  });
  const seenOnly = withoutUnreadable(messages, about(["image"]));
  expect(seenOnly[0]).toEqual({
    role: "user",
    content: "see \n[recording left out: m cannot hear recordings]\nhear",
    images: [picture],
    imagesAt: [0],
  });
  expect(withoutUnreadable(messages, about(["image", "audio"]))).toEqual(messages);
});
