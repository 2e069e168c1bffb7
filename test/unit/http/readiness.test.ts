import { describe, expect, it } from 'vitest'
import type { Deps } from '../../../src/deps.ts'
import { readReadiness } from '../../../src/http/readiness.ts'

/** Dependencies whose Redis answers when it is allowed to. */
function heldServices(areToolsAway = false) {
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
    pingTools: async () => {
      asked.push('tools')
      if (areToolsAway) throw new Error('away')
      return 'a-version'
    },
    waitUntil: () => {},
  } as unknown as Deps
  const pass = (milliseconds: number) => {
    now += milliseconds
  }
  return { asked, answer, deps, pass }
}

const ALL = ['content', 'ledger', 'postgres', 'redis', 'tools']

const READY = { failed: [], degraded: [], toolsVersion: 'a-version' }

describe('readiness', () => {
  it('without the script of tools is degraded, and fails nothing', async () => {
    const { answer, deps } = heldServices(true)
    answer.resolve('PONG')
    expect(await readReadiness(deps)).toEqual({ failed: [], degraded: ['tools'], toolsVersion: null })
  })

  it('asks each service once for requests that arrive together, first and later', async () => {
    const { asked, answer, deps, pass } = heldServices()
    for (const expected of [ALL, [...ALL, ...ALL].sort()]) {
      const probes = Array.from({ length: 5 }, () => readReadiness(deps))
      await new Promise((resolve) => setImmediate(resolve))
      answer.resolve('PONG')
      expect(await Promise.all(probes)).toEqual(Array(5).fill(READY))
      expect(asked.toSorted()).toEqual(expected)
      pass(5_000)
    }
  })

  it('gives all of them the same failures', async () => {
    const { answer, deps } = heldServices()
    const probes = Array.from({ length: 5 }, () => readReadiness(deps))
    answer.reject(new Error('away'))
    expect(await Promise.all(probes)).toEqual(Array(5).fill({ ...READY, failed: ['redis'] }))
  })
})
