/** All tables of a gateway in PostgreSQL. */
import { callMigrations } from "../agent/calls/postgres-tables.ts";
import { agentMigrations } from "../agent/postgres-tables.ts";
import type { Migration } from "../database/database.ts";
import { clusterMigrations } from "../database/postgres/cluster-tables.ts";
import { outboxMigrations } from "../channels/outbox/postgres-tables.ts";
import { deliveryMigrations } from "../hooks/queue/deliveries/postgres-tables.ts";
import { mailMigrations } from "../hooks/mail/postgres-tables.ts";

export const postgresMigrations: readonly Migration[] = [
  ...agentMigrations,
  ...outboxMigrations,
  ...deliveryMigrations,
  ...callMigrations,
  ...mailMigrations,
  ...clusterMigrations,
];
