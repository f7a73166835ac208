/** Settings of this page, stored in the browser. */
import { useApp, useWords } from "../context.ts";
import { LANGUAGES } from "../words/index.ts";
import { Field, chosen } from "../base/controls.tsx";

const languages = Object.entries(LANGUAGES);

export function PageSettings() {
  const { prefs } = useApp();
  const { pageSettings: words } = useWords();
  return (
    <section class="section" aria-label={words.title}>
      <h2>{words.title}</h2>
      <div class="panel page-settings">
        {languages.length > 1 && (
          <Field label={words.language}>
            <select {...chosen(prefs.language)}>
              <option value="auto">{words.browserLanguage}</option>
              {languages.map(([code, { name }]) => (
                <option key={code} value={code} lang={code}>
                  {name}
                </option>
              ))}
            </select>
          </Field>
        )}
        <label class="check">
          <input
            type="checkbox"
            checked={prefs.titles.value === "on"}
            onChange={(event) => (prefs.titles.value = event.currentTarget.checked ? "on" : "off")}
          />
          <span>
            {words.titles}
            <small class="quiet">{words.titlesHint}</small>
          </span>
        </label>
      </div>
    </section>
  );
}
