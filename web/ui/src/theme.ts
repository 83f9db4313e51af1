// Dark or light: as the system says, or as the reader chose.
import { storeOf } from "./store";

export type Theme = "auto" | "light" | "dark";

const key = "mycc-tune-theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");

const saved = localStorage.getItem(key);
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
  if (choice === "auto") localStorage.removeItem(key);
  else localStorage.setItem(key, choice);
  apply();
}

system.addEventListener("change", apply);
apply();

// The value of a colour of the style sheet.
export const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
