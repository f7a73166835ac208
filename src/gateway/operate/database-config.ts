/** The section `database` of the configuration: the store of everything that the gateway must not lose. */
import { Type } from "@sinclair/typebox";
import { addressProblem } from "../database/database-address.ts";
import { reader, refined, strictObject } from "../../base/schema.ts";

/** One writes, two check the server at the start, the rest reads. */
const CONNECTIONS = { minimum: 3, maximum: 100, default: 8 };

const url = () => refined(Type.String(), addressProblem);

const section = {
  /** PostgreSQL; absent: a file of SQLite in HEARTH_HOME. */
  url: Type.Optional(url()),
  /** Schema of the tables; created if missing. */
  schema: Type.String({ minLength: 1, maxLength: 63, default: "hearth" }),
  connections: Type.Integer(CONNECTIONS),
};

export const databaseSchema = reader(strictObject(section, { default: {} }));
