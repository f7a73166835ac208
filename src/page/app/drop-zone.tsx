/** Files dropped anywhere on the page: model files become a model, others are attached to a message. */
import { useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { useApp, useWords } from "./context.ts";
import { hasMagic, isModelFile } from "./models/model-files.ts";

export function DropZone() {
  const { modelFiles, toAttach, route, go } = useApp();
  const { modelFiles: words } = useWords();
  const isOver = useSignal(false);
  useLayoutEffect(() => {
    const take = async (files: readonly File[]): Promise<void> => {
      const isModel = await Promise.all(files.map((file) => isModelFile(file) || hasMagic(file).catch(() => false)));
      const weights = files.filter((_, i) => isModel[i]);
      const others = files.filter((_, i) => !isModel[i]);
      if (weights.length > 0) modelFiles.value = weights;
      if (others.length === 0) return;
      if (route.peek().view !== "chat") go({ view: "chat" });
      toAttach.value = others;
    };
    const onOver = (event: DragEvent): void => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      isOver.value = true;
    };
    const onLeave = (event: DragEvent): void => {
      if (event.relatedTarget === null) isOver.value = false; // the pointer left the window
    };
    const onDrop = (event: DragEvent): void => {
      isOver.value = false;
      if (!hasFiles(event)) return;
      event.preventDefault(); // the browser would open the file instead of the page
      void take([...(event.dataTransfer?.files ?? [])]);
    };
    addEventListener("dragover", onOver);
    addEventListener("dragleave", onLeave);
    addEventListener("drop", onDrop);
    return () => {
      removeEventListener("dragover", onOver);
      removeEventListener("dragleave", onLeave);
      removeEventListener("drop", onDrop);
    };
  }, []);
  return isOver.value ? <p class="drop-zone">{words.drop}</p> : null;
}

/** False for text, which a field handles by itself. */
const hasFiles = ({ dataTransfer }: DragEvent): boolean => dataTransfer?.types.includes("Files") ?? false;
