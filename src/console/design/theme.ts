import { useSyncExternalStore } from 'react'

export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const NAME = 'headgate.theme'
const listeners = new Set<() => void>()

/** The theme that was chosen in this browser. */
export const readTheme = (): Theme => THEMES.find((theme) => theme === localStorage.getItem(NAME)) ?? 'system'

/** Shows a theme, and keeps it for the next visit. */
export function applyTheme(theme: Theme): void {
  localStorage.setItem(NAME, theme)
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
  for (const listener of listeners) listener()
}

/** Whether what is shown is dark. */
export function isDark(): boolean {
  const theme = readTheme()
  return theme === 'system' ? matchMedia('(prefers-color-scheme: dark)').matches : theme === 'dark'
}

/** The theme that was chosen, as it changes. */
export const useTheme = (): Theme =>
  useSyncExternalStore((listener) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }, readTheme)
