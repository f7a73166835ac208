/**
 * Kills the real server many times under load, and reports the fate of accepted requests.
 *
 *   bun bench/gateway-kill.ts [--kills 100]
 */
import { parseArgs } from "node:util";
import { killGateway } from "../test/hostile/killed-gateway.ts";

const { values } = parseArgs({ options: { kills: { type: "string", default: "100" } } });
console.log(JSON.stringify(await killGateway({ kills: Number(values.kills) }), null, 2));
