/** A number in a sentence: the form that a language has for it, and the digits as they are written there. */

export type Forms = Readonly<Partial<Record<Intl.LDMLPluralRule, string>>> & { readonly other: string };

/** `#` in a form stands for the number: `counted("en", 2, { one: "# chat", other: "# chats" })` is `2 chats`. */
export function counted(locale: string, count: number, forms: Forms): string {
  const form = forms[new Intl.PluralRules(locale).select(count)] ?? forms.other;
  return form.replace("#", () => new Intl.NumberFormat(locale).format(count));
}
