import { describe, expect, it } from 'vitest'
import type { Deps } from '../../../src/deps.ts'
import { failedParts } from '../../../src/http/readiness.ts'

/** Dependencies whose Redis answers when it is allowed to. */
function heldServices() {
  const asked: string[] = []
  const answer = Promise.withResolvers<string>()
  let now = 0
  const deps = {
    clock: () => now,
    database: { execute: async () => void asked.push('postgres') },
    redis: {
      ping: () => {
        asked.push('redis')
        return answer.promise
      },
    },
    ledgerOf: () => ({ chains: async () => void asked.push('ledger') }),
    contentStore: { ping: async () => void asked.push('content') },
    waitUntil: () => {},
  } as unknown as Deps
  const pass = (milliseconds: number) => {
    now += milliseconds
  }
  return { asked, answer, deps, pass }
}

const ALL = ['content', 'ledger', 'postgres', 'redis']

describe('readiness', () => {
  it('asks each service once for requests that arrive together, first and later', async () => {
    const { asked, answer, deps, pass } = heldServices()
    for (const expected of [ALL, [...ALL, ...ALL].sort()]) {
      const probes = Array.from({ length: 5 }, () => failedParts(deps))
      await new Promise((resolve) => setImmediate(resolve))
      answer.resolve('PONG')
      expect(await Promise.all(probes)).toEqual(Array(5).fill([]))
      expect(asked.toSorted()).toEqual(expected)
      pass(5_000)
    }
  })

  it('gives all of them the same failures', async () => {
    const { answer, deps } = heldServices()
    const probes = Array.from({ length: 5 }, () => failedParts(deps))
    answer.reject(new Error('away'))
    expect(await Promise.all(probes)).toEqual(Array(5).fill(['redis']))
  })
})
