/** Images and recordings: the kinds of their encoders, and the decoding of images. */
export { hasAudioEncoder } from "./hearing/encoders/index.ts";
export {
  cleanJpeg,
  decodeGif,
  decodeImage,
  hasProjector,
  type ImagePart,
  type ImageRows,
  openImageEncoder,
  projectorKind,
  readImageHeader,
  type RgbImage,
  type Size,
  sizeText,
  twoWayRowsOf,
  withoutExtras,
} from "./vision/index.ts";
