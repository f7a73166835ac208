/** A picture of a message. */
import { useWords } from "../context.ts";
import type { Picture } from "./tree.ts";

export const PictureView = ({ picture: { type, base64 } }: { picture: Picture }) => (
  <img class="picture" src={`data:${type};base64,${base64}`} alt={useWords().chat.attached} />
);
