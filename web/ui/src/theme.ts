// Dark or light: as the system says, or as the reader chose.
import { storeOf } from "./store";

export type Theme = "auto" | "light" | "dark";

const key = "mycc-tune-theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");

// A page in a sandboxed frame has none: there the reader's choice lasts as long as the page.
function openStorage(): Storage | null {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}
const storage = openStorage();
const saved = storage?.getItem(key);
export const theme = storeOf<Theme>(saved === "light" || saved === "dark" ? saved : "auto");

export const isDark = () => theme.value === "dark" || (theme.value === "auto" && system.matches);

// Charts draw on a canvas: they ask for colours anew when this changes.
export const shade = storeOf(isDark());

function apply() {
  document.documentElement.dataset["theme"] = isDark() ? "dark" : "light";
  shade.set(isDark());
}

export function chooseTheme(choice: Theme) {
  theme.set(choice);
  if (choice === "auto") storage?.removeItem(key);
  else storage?.setItem(key, choice);
  apply();
}

system.addEventListener("change", apply);
apply();

// The value of a colour of the style sheet.
export const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
