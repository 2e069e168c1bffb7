import { useEffect, useRef, useSyncExternalStore } from 'react'

const NAME = 'headgate.keys'
const listeners = new Set<() => void>()

/** One-letter keys can be switched off, for those who speak to their computer (WCAG 2.1.4). */
const areOn = (): boolean => localStorage.getItem(NAME) !== 'off'

/** Whether one-letter keys do something, and a function that changes it. */
export function useShortcutsOn(): [isOn: boolean, change: (isOn: boolean) => void] {
  const isOn = useSyncExternalStore((listener) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }, areOn)
  return [
    isOn,
    (wanted) => {
      localStorage.setItem(NAME, wanted ? 'on' : 'off')
      for (const listener of listeners) listener()
    },
  ]
}

/** Whether a key is a shortcut: not while somebody types, and not together with a key of the browser. */
export const isShortcut = (event: KeyboardEvent): boolean =>
  areOn() &&
  !(event.target instanceof Element && event.target.closest('input, textarea, select, dialog')) &&
  !event.ctrlKey &&
  !event.metaKey &&
  !event.altKey

/** Does something when a key is pressed, while it is on. @param withShift whether Shift has to be held: arrows alone scroll. */
export function useShortcut(key: string, act: () => void, isOn = true, withShift?: boolean): void {
  const latest = useRef(act)
  latest.current = act
  useEffect(() => {
    if (!isOn) return
    const listen = (event: KeyboardEvent) => {
      if (
        event.key !== key ||
        !isShortcut(event) ||
        (withShift !== undefined && event.shiftKey !== withShift)
      )
        return
      event.preventDefault()
      latest.current()
    }
    document.addEventListener('keydown', listen)
    return () => document.removeEventListener('keydown', listen)
  }, [key, isOn, withShift])
}
