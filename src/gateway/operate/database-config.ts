/** The section `database` of the configuration: where the gateway keeps what it must not lose. */
import { Type } from "@sinclair/typebox";
import { addressProblem } from "../database/database-address.ts";
import { reader, refined, strictObject } from "../../base/schema.ts";

/** One writes, two are for the check of the server at the start, and reads share what is left. */
const CONNECTIONS = { minimum: 3, maximum: 100, default: 8 };

const url = () => refined(Type.String(), addressProblem);

const section = {
  /** PostgreSQL; absent: a file of SQLite in HEARTH_HOME. */
  url: Type.Optional(url()),
  /** Where the tables are; made where it is not there. */
  schema: Type.String({ minLength: 1, maxLength: 63, default: "hearth" }),
  connections: Type.Integer(CONNECTIONS),
};

export const databaseSchema = reader(strictObject(section, { default: {} }));
