import { describe, expect, test } from "bun:test";
import { deliveryIdOf } from "../../../../../src/gateway/hooks/mapping/index.ts";
import { makeRequest } from "../view.ts";
import { mappingOf, promptOf } from "./run.ts";

describe("stripe", () => {
  const event = (type: string, object: object) => ({
    id: "evt_1",
    object: "event",
    type,
    livemode: true,
    data: { object },
  });
  test.each<[unknown, readonly string[]]>([
    [
      event("payment_intent.succeeded", {
        id: "pi_1",
        object: "payment_intent",
        amount: 2000,
        currency: "usd",
        receipt_email: "a@example.com",
      }),
      ["A payment on Stripe succeeded.", "Amount: 20.00 USD", "Object: payment_intent pi_1", "Customer: a@example.com"],
    ],
    [
      event("charge.refunded", { object: "charge", amount: 500, amount_refunded: 500, currency: "jpy" }),
      ["was refunded", "Amount: 500 JPY"],
    ],
    [
      event("charge.failed", { object: "charge", amount: 1234, currency: "kwd", failure_message: "card declined" }),
      ["Amount: 1.234 KWD", "Reason: card declined"],
    ],
    [
      event("invoice.payment_failed", { object: "invoice", amount_due: 999, currency: "eur", attempt_count: 2 }),
      ["The payment of an invoice", "Amount: 9.99 EUR", "Attempts: 2"],
    ],
    [
      event("customer.subscription.deleted", {
        object: "subscription",
        items: { data: [{ price: { nickname: "Gold" } }] },
      }),
      ["A subscription on Stripe ended.", "Plan: Gold"],
    ],
    [
      event("radar.early_fraud_warning.created", { object: "radar.early_fraud_warning", actionable: true }),
      ["Event: radar.early_fraud_warning.created", '"actionable": true'],
    ],
    [{ ...event("charge.failed", {}), livemode: false }, ["Mode: test"]],
  ])("describes event %#", async (payload, parts) => {
    const text = await promptOf("stripe", payload);
    for (const each of parts) expect(text).toContain(each);
  });
  test("takes the delivery id from the event's id", () =>
    expect(deliveryIdOf(mappingOf("stripe"), makeRequest({ payload: { id: "evt_1" } }))).toBe("evt_1"));
});
