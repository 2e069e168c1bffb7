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

/** Fails every call of the ledger until it is released. `failed` counts them. */
export function failLedger(): { failed: () => number; release: () => void } {
  let failed = 0
  const fail = () => {
    failed++
    return Promise.reject(new Error('the ledger is away'))
  }
  const stub = new Proxy({}, { get: () => fail }) as never
  const spy = vi.spyOn(env.LEDGER, 'getByName').mockReturnValue(stub)
  return { failed: () => failed, release: () => spy.mockRestore() }
}
