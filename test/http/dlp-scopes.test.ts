import { describe, expect, it } from 'vitest'
import { gateway, query } from '../harness/gateway.ts'
import { callEntries, settledCredits } from '../harness/records.ts'
import { addKey, addMember, administrator, createTenant } from '../harness/tenant.ts'
import { marker, seenRequest, seenRequests } from '../harness/upstream.ts'
import {
  addPolicy,
  CHAT,
  CHAT_WAY,
  callWay,
  codePolicy,
  governedTenant,
  MESSAGES_WAY,
  recordOf,
  someCode,
  type Way,
} from './support/dlp.ts'

describe('scopes', () => {
  const code = someCode()
  const isBlocked = async (way: Pick<Way, 'route' | 'model'>, key: string) =>
    (await callWay(way, { key }, code)).status === 400

  it('narrow a policy to models, users and groups', async () => {
    const tenant = await createTenant(gateway())
    const { ask } = administrator(gateway())
    const [other, group] = await Promise.all([
      addMember(gateway(), tenant.base),
      ask<{ id: string }>('POST', `${tenant.base}/groups`, { name: 'clerks' }),
    ])
    const { key } = await addKey(gateway(), tenant.base, other)
    const policy = await addPolicy(tenant, codePolicy('block', { scope: { model_ids: [CHAT.model] } }))
    expect(await isBlocked(CHAT_WAY, tenant.key)).toBe(true)
    expect(await isBlocked(MESSAGES_WAY, tenant.key)).toBe(false)
    const path = `${tenant.base}/dlp/policies/${policy.id}`
    await ask('PUT', path, { version: 1, scope: { user_ids: [other] } })
    expect(await isBlocked(CHAT_WAY, tenant.key)).toBe(false)
    expect(await isBlocked(CHAT_WAY, key)).toBe(true)
    await ask('PUT', path, { version: 2, scope: { group_ids: [group.id] } })
    expect(await isBlocked(CHAT_WAY, key)).toBe(false)
    await ask('PUT', `${tenant.base}/groups/${group.id}/members/${other}`)
    expect(await isBlocked(CHAT_WAY, key)).toBe(true)
    expect(await isBlocked(CHAT_WAY, tenant.key)).toBe(false)
  })

  it('a direction without a policy is not inspected', async () => {
    const tenant = await governedTenant(codePolicy('redact', { directions: ['tool_result'] }))
    const mark = marker()
    const messages = [
      { role: 'user', content: `${mark} ${code}` },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: `{"a":"${code}"}` } }],
      },
      { role: 'tool', tool_call_id: 'c', content: `got ${code}` },
    ]
    expect((await callWay(CHAT_WAY, tenant, 'x', { messages })).status).toBe(200)
    const sent = JSON.parse((await seenRequest(gateway(), mark)).body)
    expect(sent.messages).toEqual([
      messages[0],
      messages[1],
      { role: 'tool', tool_call_id: 'c', content: 'got [REDACTED:CODE]' },
    ])
  })

  it('the most severe of several policies counts', async () => {
    const tenant = await governedTenant(codePolicy('redact'))
    expect(await isBlocked(CHAT_WAY, tenant.key)).toBe(false)
    await addPolicy(tenant, codePolicy('block'))
    expect(await isBlocked(CHAT_WAY, tenant.key)).toBe(true)
  })
})

describe('a policy', () => {
  it('counts on the next call after it changes', async () => {
    const tenant = await createTenant(gateway())
    const { ask } = administrator(gateway())
    const code = someCode()
    const outcome = async () => {
      const mark = marker()
      const { status } = await callWay(CHAT_WAY, tenant, `${mark} ${code}`)
      if (status !== 200) return 'blocked'
      return (await seenRequest(gateway(), mark)).body.includes(code) ? 'passed' : 'edited'
    }
    expect(await outcome()).toBe('passed')
    const { id } = await addPolicy(tenant, codePolicy('block'))
    expect(await outcome()).toBe('blocked')
    const path = `${tenant.base}/dlp/policies/${id}`
    await ask('PUT', path, { version: 1, rules: [{ custom: 'code', action: 'mask' }] })
    expect(await outcome()).toBe('edited')
    await ask('PUT', path, { version: 2, enabled: false })
    expect(await outcome()).toBe('passed')
    await ask('PUT', path, { version: 3, enabled: true })
    expect(await outcome()).toBe('edited')
    await ask('DELETE', path)
    expect(await outcome()).toBe('passed')
    const calls = await callEntries(gateway(), tenant, 6)
    const versions = calls.map(({ record }) => (record.dlp as { policyVersion: string }).policyVersion)
    expect(versions.map((version) => version.replace(id, 'id')).reverse()).toEqual([
      'none',
      'id@1',
      'id@2',
      'none',
      'id@4',
      'none',
    ])
  })

  const BROKEN: Array<[name: string, change: string]> = [
    [
      'asks for a detector that is not known',
      `jsonb_set(body, '{rules}', '[{"detector":"no-such","action":"block"}]')`,
    ],
    ['has a pattern that does not compile', `jsonb_set(body, '{patterns,0,pattern}', '"(?=x)"')`],
    ['has a shape that is not known', `jsonb_set(body, '{rules,0,action}', '"vanish"')`],
  ]
  it.each(BROKEN)('that %s stops every call', async (_name, change) => {
    // Every direction by itself: what cannot be read on the way back must not be sent on the way there.
    for (const direction of ['request', 'response']) {
      const tenant = await createTenant(gateway())
      const { id } = await addPolicy(tenant, codePolicy('redact', { directions: [direction] }))
      await query(gateway(), `update dlp_policy_versions set body = ${change} where policy_id = $1`, [id])
      for (const way of [CHAT_WAY, MESSAGES_WAY]) {
        const mark = marker()
        const answer = await callWay(way, tenant, mark)
        expect(answer.status).toBe(500)
        expect(answer.text).toContain('The data-loss prevention policy could not be applied.')
        expect(answer.text).not.toMatch(/no-such|\(\?=|vanish|pattern/)
        expect(await seenRequests(gateway(), mark)).toEqual([])
        expect((await recordOf(tenant, answer)).record).toMatchObject({
          status: 500,
          errorCode: 'dlp_unavailable',
        })
      }
      const { balance, available } = await settledCredits(gateway(), tenant)
      expect([balance, available]).toEqual([1_000_000_000, 1_000_000_000])
    }
  })
})
