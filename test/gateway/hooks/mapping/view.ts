/** Requests for tests of mappings. */
import type { SignatureConfig } from "../../../../src/gateway/hooks/config.ts";
import { type MappingRequest, type View, viewOf } from "../../../../src/gateway/hooks/mapping/request.ts";

export const makeRequest = (more: Partial<MappingRequest> = {}): MappingRequest => ({
  path: "ingest",
  query: {},
  headers: {},
  payload: {},
  now: Date.UTC(2026, 0, 2, 3, 4, 5),
  ...more,
});

export const makeView = (more: Partial<MappingRequest> = {}, auth?: SignatureConfig): View =>
  viewOf(makeRequest(more), auth);
