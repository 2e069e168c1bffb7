import { useEffect, useRef } from 'react'
import { setting } from './setting.ts'

/** One-letter keys can be switched off, for those who speak to their computer (WCAG 2.1.4). */
const KEYS = setting('headgate.keys', ['on', 'off'])

/** Whether one-letter keys do something, and a function that changes it. */
export const useShortcutsOn = (): [isOn: boolean, change: (isOn: boolean) => void] => [
  KEYS.useValue() === 'on',
  (isOn) => KEYS.write(isOn ? 'on' : 'off'),
]

/** Whether a key is a shortcut: not while somebody types, and not together with a key of the browser. */
export const isShortcut = (event: KeyboardEvent): boolean =>
  KEYS.read() === 'on' &&
  !(event.target instanceof Element && event.target.closest('input, textarea, select, dialog')) &&
  !event.ctrlKey &&
  !event.metaKey &&
  !event.altKey

/** Whether Enter is of what has the focus, such as a link. */
const isOfElement = ({ key, target }: KeyboardEvent): boolean =>
  key === 'Enter' && target instanceof Element && target.closest('a, button, summary') !== null

/** Does something when a key is pressed, while it is on. @param withShift whether Shift has to be held: arrows alone scroll. */
export function useShortcut(key: string, act: () => void, isOn = true, withShift?: boolean): void {
  const latest = useRef(act)
  latest.current = act
  useEffect(() => {
    if (!isOn) return
    const listen = (event: KeyboardEvent) => {
      if (event.key !== key || !isShortcut(event) || isOfElement(event)) return
      if (withShift !== undefined && event.shiftKey !== withShift) return
      event.preventDefault()
      latest.current()
    }
    document.addEventListener('keydown', listen)
    return () => document.removeEventListener('keydown', listen)
  }, [key, isOn, withShift])
}
