// Words of the page in the reader's language. Texts of the vault never pass here.

import en from "./text-en.js";

const LANGUAGES = { en: () => Promise.resolve({ default: en }), ko: () => import("./text-ko.js") };
const STORED = "hopline.language";

let words = en;
let language = "en";

/** The text of `key`; `{name}` in it is replaced by `values.name`. */
export function t(key, values = {}) {
  const text = words[key] ?? en[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** Of a closed set of the API's words (`kind.mention`); what is new there is shown as it is. */
export function term(set, value) {
  const key = `${set}.${value}`;
  return words[key] ?? en[key] ?? String(value).replaceAll("_", " ");
}

export const current = () => language;
export const languages = () => Object.keys(LANGUAGES);

export function preferred() {
  const stored = localStorage.getItem(STORED);
  if (stored in LANGUAGES) return stored;
  return navigator.languages.map((tag) => tag.split("-")[0]).find((tag) => tag in LANGUAGES) ?? "en";
}

export async function use(tag) {
  words = (await LANGUAGES[tag]()).default;
  language = tag;
  document.documentElement.lang = tag;
}

export const remember = (tag) => localStorage.setItem(STORED, tag);

export const number = (value, digits = 0) =>
  new Intl.NumberFormat(language, { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value);

export function moment(value) {
  if (!value) return "–";
  const date = new Date(value);
  if (Number.isNaN(date.valueOf())) return String(value);
  return new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" }).format(date);
}

/** Seconds as people say them. */
export function duration(seconds) {
  const [value, unit] =
    seconds < 120 ? [seconds, "second"]
    : seconds < 7_200 ? [seconds / 60, "minute"]
    : seconds < 172_800 ? [seconds / 3_600, "hour"]
    : [seconds / 86_400, "day"];
  return new Intl.NumberFormat(language, { style: "unit", unit, unitDisplay: "long", maximumFractionDigits: 1 }).format(value);
}
