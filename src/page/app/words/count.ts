/** A number in a sentence: the language's plural form, and its digits. */

export type Forms = Readonly<Partial<Record<Intl.LDMLPluralRule, string>>> & { readonly other: string };

/** `#` stands for the number: `counted("en", 2, { one: "# chat", other: "# chats" })` is `2 chats`. */
export function counted(locale: string, count: number, forms: Forms): string {
  const form = forms[new Intl.PluralRules(locale).select(count)] ?? forms.other;
  return form.replace("#", () => new Intl.NumberFormat(locale).format(count));
}
