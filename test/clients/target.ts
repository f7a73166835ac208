/** What the checks of all clients are put against, and what they ask for. */

export interface Target {
  /** `http://host:port`. */
  readonly url: string;
  /** A model of that server, with its tag. */
  readonly model: string;
}

/** An object that holds itself: no finite text fits, so that a real model cannot stop by itself. */
const NODE = { type: "object", properties: { next: { $ref: "#/$defs/node" } }, required: ["next"] };
export const NEVER_ENDING = { $ref: "#/$defs/node", $defs: { node: { ...NODE, additionalProperties: false } } };

/** A tool that the question "What is the weather in Paris?" is made for. */
export const TOOL = {
  type: "function" as const,
  function: {
    name: "get_weather",
    description: "Get the current weather in a city",
    parameters: {
      type: "object" as const,
      properties: { city: { type: "string" as const, description: "The name of the city" } },
      required: ["city"],
    },
  },
};

/** What the tool answers. */
export const weatherIn = (city: string): string => JSON.stringify({ city, weather: "sunny", temperature: 21 });
