/** Stripe: events of an account. Objects: docs.stripe.com/api/events; amounts are in a currency's smallest unit. */
import { type Fields, fieldsOf } from "./fields.ts";
import { eventSummary, lines, type Preset } from "./preset.ts";

/** docs.stripe.com/currencies: currencies whose smallest unit is not a hundredth. */
const NO_DECIMALS = "bif clp djf gnf jpy kmf krw mga pyg rwf ugx vnd vuv xaf xof xpf".split(" ");
const THREE_DECIMALS = "bhd jod kwd omr tnd".split(" ");

/** By prefix of the event's type. */
const ABOUT: readonly (readonly [type: string, about: string])[] = [
  ["payment_intent.succeeded", "A payment on Stripe succeeded."],
  ["payment_intent.payment_failed", "A payment on Stripe failed."],
  ["charge.dispute.", "A customer disputes a charge on Stripe."],
  ["charge.refund", "A charge on Stripe was refunded."],
  ["charge.failed", "A charge on Stripe failed."],
  ["charge.", "Something happened to a charge on Stripe."],
  ["checkout.session.completed", "A customer completed a checkout on Stripe."],
  ["checkout.session.", "Something happened to a checkout on Stripe."],
  ["customer.subscription.deleted", "A subscription on Stripe ended."],
  ["customer.subscription.", "Something happened to a subscription on Stripe."],
  ["customer.", "Something happened to a customer on Stripe."],
  ["invoice.payment_failed", "The payment of an invoice on Stripe failed."],
  ["invoice.paid", "An invoice on Stripe was paid."],
  ["invoice.", "Something happened to an invoice on Stripe."],
  ["payout.failed", "A payout of Stripe failed."],
  ["payout.", "Something happened to a payout of Stripe."],
  ["payment_intent.", "Something happened to a payment on Stripe."],
];

/** Intermediate events, and events that accompany one of `ABOUT`. A `*` matches the rest of a name. */
const QUIET: readonly string[] = [
  "payment_intent.created",
  "payment_intent.processing",
  "payment_intent.requires_action",
  "charge.updated",
  "charge.pending",
  "charge.refund.updated",
  "charge.dispute.updated",
  "charge.dispute.funds_*",
  "refund.created",
  "refund.updated",
  "customer.updated",
  "customer.source.*",
  "customer.tax_id.*",
  "invoice.created",
  "invoice.updated",
  "invoice.finalized",
  "invoice.sent",
  "invoice.deleted",
  "invoice.payment_succeeded",
  "invoice_payment.*",
  "invoiceitem.*",
  "payment_method.*",
  "setup_intent.created",
  "setup_intent.succeeded",
  "setup_intent.requires_action",
  "setup_intent.canceled",
  "payout.created",
  "payout.updated",
  "payout.reconciliation_completed",
  "balance.available",
  "product.*",
  "price.*",
  "plan.*",
  "tax_rate.*",
  "coupon.*",
  "promotion_code.*",
  "test_helpers.test_clock.created",
  "test_helpers.test_clock.advancing",
  "test_helpers.test_clock.ready",
  "test_helpers.test_clock.deleted",
  "file.created",
];

function isQuiet(event: Fields): boolean {
  const type = event.text("type");
  // a payment intent reports its charge itself
  if (type === "charge.succeeded") return event.text("data.object.payment_intent") !== "";
  return QUIET.some((each) => (each.endsWith("*") ? type.startsWith(each.slice(0, -1)) : type === each));
}

export const stripe: Preset = {
  mapping: { match: { path: "stripe" }, name: "Stripe" },
  scheme: "stripe",
  deliveryIdAt: ["payload.id"],
  leavesOut: ({ payload }) => isQuiet(fieldsOf(payload)),
  describe: ({ payload }) => {
    const event = fieldsOf(payload);
    const type = event.text("type");
    const object = event.within("data.object");
    const about = ABOUT.find(([start]) => type.startsWith(start))?.[1];
    const head = lines(
      ["Event", type],
      ["Mode", event.text("livemode") === "false" ? "test" : ""],
      ["Object", `${object.text("object")} ${object.text("id")}`.trim()],
    );
    return eventSummary(about ? { about, tell } : undefined, { sender: "Stripe", head, fields: object, payload });
  },
};

function tell(object: Fields): string {
  return lines(
    ["Amount", amount(object)],
    ["Status", object.text("status")],
    ["Customer", object.text("customer_details.email", "customer_email", "email", "receipt_email", "customer")],
    ["Name", object.text("customer_details.name", "billing_details.name", "name")],
    ["Number", object.text("number")],
    ["Reason", object.text("last_payment_error.message", "failure_message", "reason", "cancellation_details.reason")],
    ["Attempts", object.text("attempt_count")],
    ["Ends at the period's end", object.text("cancel_at_period_end") === "true" ? "yes" : ""],
    ["Plan", object.text("plan.nickname", "items.data.0.price.nickname", "items.data.0.price.id")],
    object.text("description"),
    object.text("hosted_invoice_url"),
  );
}

function amount(object: Fields): string {
  const units = object.text("amount_total", "amount_due", "amount_refunded", "amount");
  const currency = object.text("currency").toLowerCase();
  if (!/^-?\d{1,15}$/.test(units)) return "";
  const decimals = NO_DECIMALS.includes(currency) ? 0 : THREE_DECIMALS.includes(currency) ? 3 : 2;
  return `${(Number(units) / 10 ** decimals).toFixed(decimals)} ${currency.toUpperCase()}`.trim();
}
