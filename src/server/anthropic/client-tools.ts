/**
 * Tools that the client runs and the API knows by their type: a request names them without a schema. Their schemas for
 * the model are here. https://docs.claude.com/en/docs/agents-and-tools/tool-use/overview
 */
import type { Tool } from "../../runtime/portable.ts";

type Definition = Pick<Tool["function"], "description" | "parameters">;

const text = (description: string) => ({ type: "string", description });

const PATH = text("Absolute path of the file or folder");
const EDITING = {
  path: PATH,
  file_text: text("create: the content of the new file"),
  old_str: text("str_replace: the text to replace, which must stand in the file exactly once"),
  new_str: text("str_replace: the text to put in its place"),
  insert_line: { type: "integer", description: "insert: the line after which to insert; 0 is the beginning" },
  view_range: { type: "array", items: { type: "integer" }, description: "view: the first and the last line" },
};
const INSERTED = text("insert: the text to insert");

const commands = (names: readonly string[]) => ({ type: "string", enum: names });

function editor(names: readonly string[], inserted: object): Definition {
  const properties = { command: commands(names), ...EDITING, ...inserted };
  const description = "View, create and edit text files";
  return { description, parameters: { type: "object", properties, required: ["command", "path"] } };
}

const EDITS = ["view", "create", "str_replace", "insert"];
const OLD_INSERT = { new_str: text("str_replace: the text to put in its place; insert: the text to insert") };

/** By type; the types not listed run on the provider's servers, or need a screen. */
const DEFINITIONS: Readonly<Record<string, Definition>> = {
  bash_20250124: {
    description: "Run a command in a bash shell, which keeps its state from call to call",
    parameters: {
      type: "object",
      properties: {
        command: text("The command to run; left out with restart"),
        restart: { type: "boolean", description: "Start the shell anew" },
      },
    },
  },
  text_editor_20250124: editor([...EDITS, "undo_edit"], OLD_INSERT),
  text_editor_20250429: editor(EDITS, OLD_INSERT),
  text_editor_20250728: editor(EDITS, { insert_text: INSERTED }),
  memory_20250818: {
    description: "Keep notes from one conversation to the next, as files in the folder /memories",
    parameters: {
      type: "object",
      properties: {
        command: commands([...EDITS, "delete", "rename"]),
        ...EDITING,
        insert_text: INSERTED,
        old_path: text("rename: the path until now"),
        new_path: text("rename: the path from now on"),
      },
      required: ["command"],
    },
  },
};

export const clientTool = (type: string): Definition | undefined =>
  Object.hasOwn(DEFINITIONS, type) ? DEFINITIONS[type] : undefined;
