/** The server and the requests of all client checks. */

export interface Target {
  /** `http://host:port`. */
  readonly url: string;
  /** A model of that server, with its tag. */
  readonly model: string;
}

/** A recursive object: no finite text fits, so that a real model cannot stop by itself. */
const NODE = { type: "object", properties: { next: { $ref: "#/$defs/node" } }, required: ["next"] };
export const NEVER_ENDING = { $ref: "#/$defs/node", $defs: { node: { ...NODE, additionalProperties: false } } };

/** A tool for the question "What is the weather in Paris?". */
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

/** The tool's answer. */
export const weatherIn = (city: string): string => JSON.stringify({ city, weather: "sunny", temperature: 21 });
