import { setting } from '../data/setting.ts'

export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const THEME = setting<Theme>('headgate.theme', THEMES)

/** The theme that was chosen in this browser. */
export const readTheme = THEME.read

/** Shows a theme, and keeps it for the next visit. */
export function applyTheme(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
  THEME.write(theme)
}

/** Whether what is shown is dark. */
export function isDark(): boolean {
  const theme = readTheme()
  return theme === 'system' ? matchMedia('(prefers-color-scheme: dark)').matches : theme === 'dark'
}

/** The theme that was chosen, as it changes. */
export const useTheme = THEME.useValue
