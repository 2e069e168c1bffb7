import { useSyncExternalStore } from 'react'
import type { Zone } from './format.ts'

const NAME = 'headgate.zone'
const listeners = new Set<() => void>()

const read = (): Zone => (localStorage.getItem(NAME) === 'local' ? 'local' : 'utc')

/** The zone of times that are shown, and a function that changes it everywhere. */
export function useZone(): [zone: Zone, choose: (zone: Zone) => void] {
  const zone = useSyncExternalStore((listener) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }, read)
  return [zone, choose]
}

function choose(zone: Zone): void {
  localStorage.setItem(NAME, zone)
  for (const listener of listeners) listener()
}
