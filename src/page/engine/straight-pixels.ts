/** Reads the colours of transparent pixels by WebGL: a canvas multiplies them by alpha, and loses them. */
import { AppError } from "../../base/index.ts";

/** A decoded image of the browser, which the library of types lacks here. */
export interface Bitmap {
  readonly width: number;
  readonly height: number;
  close(): void;
}

/** The used part of WebGL 2, whose types are missing here too. */
interface WebGl {
  readonly TEXTURE_2D: number;
  readonly RGBA: number;
  readonly UNSIGNED_BYTE: number;
  readonly FRAMEBUFFER: number;
  readonly COLOR_ATTACHMENT0: number;
  readonly NO_ERROR: number;
  createTexture(): object;
  createFramebuffer(): object;
  bindTexture(target: number, texture: object): void;
  bindFramebuffer(target: number, buffer: object): void;
  framebufferTexture2D(target: number, place: number, kind: number, texture: object, level: number): void;
  texImage2D(...image: [target: number, level: number, stored: number, format: number, type: number, of: Bitmap]): void;
  readPixels(...part: [x: number, y: number, w: number, h: number, format: number, type: number, to: Uint8Array]): void;
  getError(): number;
  getExtension(name: "WEBGL_lose_context"): { loseContext(): void } | null;
}

declare const OffscreenCanvas: new (width: number, height: number) => { getContext(kind: "webgl2"): WebGl | null };

/**
 * (height, width, 4) of a bitmap that is not premultiplied. Throws `unsupported` without WebGL.
 * @param bitmap of at most 2048 to a side, which every device takes
 */
export function straightPixels(bitmap: Bitmap): Uint8Array {
  const gl = new OffscreenCanvas(1, 1).getContext("webgl2");
  if (!gl) throw unread();
  try {
    const texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, bitmap);
    gl.bindFramebuffer(gl.FRAMEBUFFER, gl.createFramebuffer());
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, texture, 0);
    const { width, height } = bitmap;
    const pixels = new Uint8Array(width * height * 4);
    gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
    if (gl.getError() !== gl.NO_ERROR) throw unread();
    return pixels;
  } finally {
    gl.getExtension("WEBGL_lose_context")?.loseContext(); // browsers keep few contexts
  }
}

const unread = (): AppError =>
  new AppError("unsupported", "this browser reads no transparent images, because it lacks WebGL: save it without");
