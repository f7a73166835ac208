/** `current_time`: the date and the time of day, here or elsewhere. */
import { Type } from "@sinclair/typebox";
import { AppError } from "../../../base/index.ts";
import { defineTool } from "./tool.ts";

export const currentTime = defineTool({
  name: "current_time",
  description: "Tells the current date, time of day and day of the week.",
  schema: Type.Object({
    timezone: Type.Optional(
      Type.String({ maxLength: 64, description: 'IANA time zone such as "Europe/Paris"; UTC where absent' }),
    ),
  }),
  run: ({ timezone = "UTC" }, { now }) => {
    try {
      const format = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium", timeZone: timezone });
      const weekday = new Intl.DateTimeFormat("en", { weekday: "long", timeZone: timezone });
      return `${weekday.format(now)} ${format.format(now)} ${timezone}`;
    } catch {
      throw new AppError("bad_request", `timezone: expected an IANA name such as "Europe/Paris", got '${timezone}'`);
    }
  },
});
