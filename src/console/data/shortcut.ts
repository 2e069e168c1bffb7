import { useEffect } from 'react'

/** Whether a key is a shortcut: not while somebody types, and not together with a key of the browser. */
export const isShortcut = (event: KeyboardEvent): boolean =>
  !(event.target instanceof Element && event.target.closest('input, textarea, select, dialog')) &&
  !event.ctrlKey &&
  !event.metaKey &&
  !event.altKey

/** Does something when a key is pressed, while it is on. */
export function useShortcut(key: string, act: () => void, isOn = true): void {
  useEffect(() => {
    if (!isOn) return
    const listen = (event: KeyboardEvent) => {
      if (event.key !== key || !isShortcut(event)) return
      event.preventDefault()
      act()
    }
    document.addEventListener('keydown', listen)
    return () => document.removeEventListener('keydown', listen)
  })
}
