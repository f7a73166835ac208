import { describe, expect, test } from "bun:test";
import {
  answerHandshake,
  hearsGet,
  type HandshakeReply,
  type HandshakeRequest,
} from "../../../../src/gateway/hooks/ingress/handshake.ts";

const request = (more: Partial<HandshakeRequest> & { search?: string } = {}): HandshakeRequest => ({
  method: "POST",
  headers: {},
  query: new URLSearchParams(more.search),
  payload: undefined,
  knowsSecret: (text) => text === "mine",
  ...more,
});
const plain = (body: string): HandshakeReply => ({ status: 200, contentType: "text/plain; charset=utf-8", body });

describe("slack", () => {
  test("gets its challenge back", () => {
    const payload = { type: "url_verification", challenge: "c-1", token: "t" };
    expect(answerHandshake("slack", request({ payload }))).toEqual(plain("c-1"));
  });
  test.each([[{ type: "event_callback", challenge: "c" }], [{ type: "url_verification" }], [null], ["x"], [[1]]])(
    "%j is not a handshake",
    (payload) => expect(answerHandshake("slack", request({ payload }))).toBeUndefined(),
  );
});

test("github's ping is answered, and no other event", () => {
  expect(answerHandshake("github", request({ headers: { "x-github-event": "ping" } }))).toMatchObject({ status: 200 });
  expect(answerHandshake("github", request({ headers: { "x-github-event": "push" } }))).toBeUndefined();
});

test("discord's ping is answered 200 for interactions, and 204 for webhook events", () => {
  const answer = (payload: unknown) => answerHandshake("discord", request({ payload }));
  expect(answer({ type: 1, id: "1", token: "t", version: 1 })).toMatchObject({ status: 200, body: '{"type":1}' });
  expect(answer({ type: 0, application_id: "1", version: 1 })).toMatchObject({ status: 204, body: "" });
  const event = { type: "APPLICATION_AUTHORIZED", timestamp: "2026-11-21T00:00:00Z" };
  for (const payload of [{ type: 1, version: 1, event }, { type: 2 }, { type: "1" }, {}, null, [1]]) {
    expect(answer(payload)).toBeUndefined();
  }
});

test("meta gets its challenge only by GET with the right secret", () => {
  const search = "hub.mode=subscribe&hub.challenge=42&hub.verify_token=";
  expect(answerHandshake("meta", request({ method: "GET", search: `${search}mine` }))).toEqual(plain("42"));
  expect(answerHandshake("meta", request({ method: "GET", search: `${search}other` }))).toMatchObject({ status: 403 });
  expect(answerHandshake("meta", request({ search: `${search}mine` }))).toBeUndefined();
  expect([hearsGet("meta"), hearsGet("slack"), hearsGet(undefined)]).toEqual([true, false, false]);
});

test("microsoft gets its token as plain text, up to a limited length", () => {
  const search = "validationToken=%3Cb%3Ex";
  expect(answerHandshake("microsoft", request({ search }))).toEqual(plain("<b>x"));
  expect(answerHandshake("microsoft", request({ search: `validationToken=${"x".repeat(2000)}` }))).toBeUndefined();
  expect(answerHandshake("microsoft", request())).toBeUndefined();
});
