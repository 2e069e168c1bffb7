import { env } from 'cloudflare:workers'
import { vi } from 'vitest'

/** Keeps every commit from the ledger until it is released: an admission waits there. */
export function holdLedger(): { release: () => void } {
  let held = true
  const real = env.LEDGER.getByName.bind(env.LEDGER)
  const spy = vi.spyOn(env.LEDGER, 'getByName').mockImplementation((name) => {
    const stub = real(name)
    return new Proxy(stub, {
      get:
        (_, method) =>
        async (...parameters: unknown[]) => {
          while (held) await new Promise((resolve) => setTimeout(resolve, 1))
          return (stub as unknown as Record<PropertyKey, (...all: unknown[]) => unknown>)[method]?.(
            ...parameters,
          )
        },
    })
  })
  return {
    release: () => {
      held = false
      spy.mockRestore()
    },
  }
}
