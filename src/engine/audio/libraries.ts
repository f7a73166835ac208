/**
 * The decoders in WebAssembly, each imported when a file needs it. Bun's bundler drops exports of a package that it
 * finds unused, although these packages use all of theirs while they load. It keeps what a call imports.
 */
export const importMp3 = () => import("mpg123-decoder");
export const importFlac = () => import("@wasm-audio-decoders/flac");
export const importVorbis = () => import("@wasm-audio-decoders/ogg-vorbis");
export const importOpus = () => import("opus-decoder");
