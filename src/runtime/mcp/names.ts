/** Names of tools as models see them. */

/** The model's name of a server's tool: models know no `.` and `/` in names. */
export const mcpName = (server: string, tool: string): string => `${server}__${tool.replace(/[./]/g, "_")}`;
