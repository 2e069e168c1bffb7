import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runLoad } from '../../scripts/bench/load.ts'
import { createBusyTenant } from '../harness/contention.ts'
import { type StartedWorker, startWorker } from '../harness/start-worker.ts'

/** Each load; a long campaign sets it. */
const SECONDS = Number(process.env.FULL_LOAD_SECONDS ?? 1)
const CREDITS = 1_000_000_000_000
const MODEL = 'scripted-chat'

let gateway: StartedWorker
beforeAll(async () => {
  gateway = await startWorker({ ORGANIZATION_RATE_LIMIT: '1000000000', USER_RATE_LIMIT: '1000000000' })
})
afterAll(() => gateway?.stop())

describe('a gateway with as many calls as it can take', () => {
  it.each([
    { stream: false, connections: 16, ending: '}' },
    { stream: true, connections: 32, ending: 'data: [DONE]' },
  ])('answers every one (streamed: $stream)', { timeout: SECONDS * 1_000 + 60_000 }, async (load) => {
    const { stream, connections, ending } = load
    const { key } = await createBusyTenant(gateway, CREDITS)
    const result = await runLoad({
      port: Number(new URL(gateway.baseUrl).port),
      call: {
        path: '/v1/chat/completions',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: MODEL, stream, messages: [{ role: 'user', content: 'Hello' }] }),
        ending,
      },
      connections,
      milliseconds: SECONDS * 1_000,
    })
    expect(result).toMatchObject({ failures: 0, firstFailure: null })
    // On a starved machine no connection makes a second call within a second.
    expect(result.calls).toBeGreaterThanOrEqual(connections)
    const log = readFileSync(join(gateway.logFolder, 'workerd.log'), 'utf8')
    expect(log).not.toMatch(/different request|had hung/)
  })
})
