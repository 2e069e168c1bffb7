import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePorts } from '../../scripts/node/ports.ts'
import { gateway } from '../harness/gateway.ts'
import { send } from '../harness/send.ts'
import { type StartedWorker, startWorker } from '../harness/start-worker.ts'

const readiness = async (baseUrl: string) => {
  const { status, text, headers } = await send(`${baseUrl}/health/ready`, { method: 'GET' })
  return { status, body: JSON.parse(text) as unknown, retry: headers['retry-after'] }
}

describe('GET /health/ready', () => {
  let worker: StartedWorker
  beforeAll(async () => {
    const [port] = await freePorts(1)
    const nothing = `http://127.0.0.1:${port}`
    worker = await startWorker({ UPSTASH_REDIS_REST_URL: nothing, DATABASE_FETCH_ENDPOINT: `${nothing}/sql` })
  })
  afterAll(() => worker.stop())

  it('answers 200 without a key when every service answers', async () => {
    expect(await readiness(gateway().baseUrl)).toEqual({
      status: 200,
      body: { status: 'ok' },
      retry: undefined,
    })
  })

  it('answers 503 with the names of those that do not', async () => {
    const body = { status: 'unavailable', failed: ['postgres', 'redis'] }
    const probes = Array.from({ length: 10 }, () => readiness(worker.baseUrl))
    expect(await Promise.all(probes)).toEqual(Array(10).fill({ status: 503, body, retry: '5' }))
    expect((await send(`${worker.baseUrl}/health`, { method: 'GET' })).status).toBe(200)
  })
})
