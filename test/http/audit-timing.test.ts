import { describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf } from '../harness/records.ts'
import { send } from '../harness/send.ts'
import { bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { CHAT_WAY, codePolicy, governedTenant, MESSAGES_WAY, someCode } from './support/dlp.ts'

interface CallRecord {
  durationMilliseconds: number
  timing?: { admitted: number; firstEvent: number | null; lastEvent: number | null; events: number | null }
  dlp: { policyVersion: string; findings: object; breakdown?: object[] } | null
  attempts: Array<{ durationMilliseconds: number }>
  responseId?: string
}

async function post(tenant: Tenant, path: string, body: object) {
  const answer = await send(`${gateway().baseUrl}${path}`, {
    method: 'POST',
    headers: bearer(tenant.key),
    body: JSON.stringify(body),
  })
  const entry = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
  return { answer, record: entry.record as unknown as CallRecord }
}

const chat = (content: string, more: object = {}) => ({
  model: CHAT_WAY.model,
  messages: [{ role: 'user', content }],
  ...more,
})

describe('the timing in a record', () => {
  const ways = [CHAT_WAY, MESSAGES_WAY]

  it.each(ways)(
    'of a stream has its first and last event, and their number: $name',
    async ({ route, model }) => {
      const tenant = await createTenant(gateway())
      const body = { ...(route.request('Count to ten.', { max_tokens: 50 }) as object), model, stream: true }
      const { answer, record } = await post(tenant, route.path, body)
      const frames = answer.text.split('\n\n').filter((frame) => frame.includes('data:')).length
      const { admitted, firstEvent, lastEvent, events } = record.timing ?? expect.fail('no timing')
      expect(events).toBeGreaterThan(2)
      expect(events).toBeLessThanOrEqual(frames + 1)
      const inOrder = [0, admitted, Number(firstEvent), Number(lastEvent), record.durationMilliseconds]
      expect(inOrder.toSorted((left, right) => left - right)).toEqual(inOrder)
    },
  )

  it('of a whole answer has its admission alone', async () => {
    const { record } = await post(await createTenant(gateway()), '/v1/chat/completions', chat('Hello'))
    expect(record.timing).toEqual({
      admitted: expect.any(Number),
      firstEvent: null,
      lastEvent: null,
      events: null,
    })
  })

  it('of a call that was not sent is absent', async () => {
    const body = { ...chat('Hello'), model: 'unknown' }
    const { record } = await post(await createTenant(gateway()), '/v1/chat/completions', body)
    expect(record.timing).toBeUndefined()
  })
})

describe('the findings in a record', () => {
  it('are counted by direction and action', async () => {
    const tenant = await governedTenant(codePolicy('redact'))
    const messages = [
      { role: 'user', content: `${someCode()} and ${someCode()}` },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'c', type: 'function', function: { name: 'f', arguments: `{"a":"${someCode()}"}` } },
        ],
      },
      { role: 'tool', tool_call_id: 'c', content: `got ${someCode()}` },
    ]
    const { record } = await post(tenant, '/v1/chat/completions', { model: CHAT_WAY.model, messages })
    const { findings, policyVersion, breakdown } = record.dlp ?? expect.fail('no policy')
    expect(findings).toEqual({ code: 4 })
    const of = (direction: string, count: number) => ({
      direction,
      action: 'redact',
      policy: policyVersion,
      findings: { code: count },
    })
    expect(breakdown).toEqual(
      expect.arrayContaining([of('request', 2), of('tool_arguments', 1), of('tool_result', 1)]),
    )
    expect(breakdown).toHaveLength(3)
  })

  it('count what blocked the call', async () => {
    const tenant = await governedTenant(codePolicy('block'))
    const { answer, record } = await post(tenant, '/v1/chat/completions', chat(someCode()))
    expect(answer.status).toBe(400)
    expect(record.dlp?.breakdown).toMatchObject([
      { direction: 'request', action: 'block', findings: { code: 1 } },
    ])
  })

  it('have no breakdown where nothing was found', async () => {
    const tenant = await governedTenant(codePolicy('redact'))
    const { record } = await post(tenant, '/v1/chat/completions', chat('Hello'))
    expect(record.dlp).toEqual({ policyVersion: expect.any(String), findings: {} })
  })
})

describe('the response in a record', () => {
  it('is named by the call of each of its turns', async () => {
    const tenant = await createTenant(gateway())
    const { answer, record } = await post(tenant, '/v1/responses', {
      model: MESSAGES_WAY.model,
      input: 'Hello',
    })
    expect(record.responseId).toBe((JSON.parse(answer.text) as { id: string }).id)
    expect(record.timing?.events).toBeGreaterThan(2)
  })
})
