import { describe, expect, it, vi } from 'vitest'
import { createApiKey } from '../../src/identity/api-key.ts'
import { gateway, query } from '../harness/gateway.ts'
import { send } from '../harness/send.ts'
import { startWorker } from '../harness/start-worker.ts'

/** An address of a network for benchmarks (RFC 2544), so that no other calls are counted with these. */
const NETWORK = `198.18.${1 + Math.floor(Math.random() * 250)}`
const IP = `${NETWORK}.7`

const attempt = (path: string, headers: Record<string, string>) =>
  send(gateway().baseUrl + path, {
    method: /models|^.api/.test(path) ? 'GET' : 'POST',
    headers: { ...headers, 'cf-connecting-ip': IP },
  })

describe('calls without a key', () => {
  it('are counted by network, minute and surface', async () => {
    const wrong = { authorization: `Bearer ${createApiKey().key}` }
    const attempts: Array<[path: string, headers: Record<string, string>]> = [
      ['/v1/chat/completions', {}],
      ['/v1/chat/completions', wrong],
      ['/v1/chat/completions', { authorization: 'Basic x' }],
      ['/v1/messages', { 'x-api-key': 'hg_x' }],
      ['/v1/models', {}],
      ['/v1/models', wrong],
      ['/api/organizations', {}],
      ['/api/organizations', wrong],
    ]
    for (const [path, headers] of attempts) expect((await attempt(path, headers)).status).toBe(401)
    await vi.waitFor(
      async () => {
        const rows = await query(
          gateway(),
          'select surface, sum(count)::int as count from rejected_calls where ip = $1 group by surface order by surface',
          [`${NETWORK}.0`],
        )
        expect(rows).toEqual([
          { surface: 'chat_completions', count: 3 },
          { surface: 'management', count: 2 },
          { surface: 'messages', count: 1 },
          { surface: 'models', count: 2 },
        ])
      },
      { timeout: 8_000, interval: 100 },
    )
  })

  it('are counted by address where the deployment stores addresses whole', async () => {
    const worker = await startWorker({ STORE_FULL_ADDRESSES: 'true' })
    const whole = `${NETWORK}.99`
    try {
      const headers = { 'cf-connecting-ip': whole }
      expect((await send(`${worker.baseUrl}/v1/models`, { headers })).status).toBe(401)
      await vi.waitFor(
        async () => {
          const rows = await query(gateway(), 'select count from rejected_calls where ip = $1', [whole])
          expect(rows).toEqual([{ count: 1 }])
        },
        { timeout: 8_000, interval: 100 },
      )
    } finally {
      await worker.stop()
    }
  })
})
