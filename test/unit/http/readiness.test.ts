import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Deps } from '../../../src/deps.ts'
import { readReadiness } from '../../../src/http/readiness.ts'

/** Dependencies whose Redis answers when it is allowed to. */
function heldServices(areToolsAway = false) {
  const asked: string[] = []
  const answer = Promise.withResolvers<string>()
  let now = 0
  let isEnded = false
  const deps = {
    clock: () => {
      if (isEnded) throw new Error('the request was ended')
      return now
    },
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
  /** As a request that the runtime ends: nothing of it runs on. */
  const endRequests = (ended: boolean) => {
    isEnded = ended
  }
  return { asked, answer, deps, pass, endRequests }
}

const ALL = ['content', 'ledger', 'postgres', 'redis', 'tools']

const READY = { failed: [], degraded: [], toolsVersion: 'a-version' }

describe('readiness', () => {
  afterEach(() => void vi.useRealTimers())

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

  it('is asked for once by those that wait for a request that was ended', async () => {
    vi.useFakeTimers()
    const { asked, answer, deps, endRequests } = heldServices()
    const ended = readReadiness(deps).catch(() => 'ended')
    const waiting = Array.from({ length: 5 }, () => readReadiness(deps))
    endRequests(true)
    answer.resolve('PONG')
    expect(await ended).toBe('ended')
    endRequests(false)
    await vi.advanceTimersByTimeAsync(3_500)
    expect(await Promise.all(waiting)).toEqual(Array(5).fill(READY))
    expect(asked.toSorted()).toEqual([...ALL, ...ALL].sort())
  })

  it('gives all of them the same failures', async () => {
    const { answer, deps } = heldServices()
    const probes = Array.from({ length: 5 }, () => readReadiness(deps))
    answer.reject(new Error('away'))
    expect(await Promise.all(probes)).toEqual(Array(5).fill({ ...READY, failed: ['redis'] }))
  })
})
