// The button by which the reader chooses dark, light, or what the system says.
import { useStore } from "./store";
import { chooseTheme, theme, type Theme } from "./theme";

export function ThemeButton() {
  const chosen = useStore(theme);
  const next: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };
  const names: Record<Theme, string> = { auto: "◐ auto", light: "○ light", dark: "● dark" };
  return (
    <button type="button" class="small theme" aria-label={`Theme: ${chosen}`} onClick={() => chooseTheme(next[chosen])}>
      {names[chosen]}
    </button>
  );
}
