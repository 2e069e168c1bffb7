import { useSyncExternalStore } from 'react'

/** A choice of a person that this browser keeps. */
interface Setting<Value extends string> {
  read: () => Value
  write: (value: Value) => void
  /** The value, as it changes. */
  useValue: () => Value
}

/** @param name under which the browser keeps it. @param values that there are; the first one holds until another is chosen. */
export function setting<const Value extends string>(
  name: string,
  values: readonly [Value, ...Value[]],
): Setting<Value> {
  const listeners = new Set<() => void>()
  const read = () => values.find((value) => value === localStorage.getItem(name)) ?? values[0]
  const listen = (listener: () => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  return {
    read,
    write: (value) => {
      localStorage.setItem(name, value)
      for (const listener of listeners) listener()
    },
    useValue: () => useSyncExternalStore(listen, read),
  }
}
