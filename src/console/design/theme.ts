export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const NAME = 'headgate.theme'

/** The theme that was chosen in this browser. */
export const readTheme = (): Theme => THEMES.find((theme) => theme === localStorage.getItem(NAME)) ?? 'system'

/** Shows a theme, and keeps it for the next visit. */
export function applyTheme(theme: Theme): void {
  localStorage.setItem(NAME, theme)
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}
