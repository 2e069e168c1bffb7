import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { gateway, query, upstreamControl } from '../harness/gateway.ts'
import {
  ANSWER_COST,
  answered,
  callRouted,
  createRoutedModel,
  inTurn,
  recordedCall,
  routedRequest,
} from '../harness/routed-model.ts'
import { jsonOf } from '../harness/send.ts'
import { createTenant } from '../harness/tenant.ts'

it('builds the world of the example in CONTRIBUTING.md', async () => {
  const tenant = await createTenant(gateway())
  const model = await createRoutedModel(gateway(), ['anthropic'])
  const script = await inTurn(gateway(), answered('messages', 'Hello.', false))

  const answer = await callRouted(gateway(), tenant, routedRequest('chat', model, script))

  expect(jsonOf(answer)).toMatchObject({ choices: [{ message: { content: 'Hello.' } }] })
  const { attempts, record } = await recordedCall(gateway(), tenant, model, answer)
  expect(attempts).toEqual(['0 200'])
  expect(record.cost).toBe(ANSWER_COST)
})

describe('the shared gateway', () => {
  it('answers under both hosts', async () => {
    const { baseUrl, llmUrl } = gateway()
    for (const url of [baseUrl, llmUrl]) {
      const response = await fetch(`${url}/nowhere`)
      expect(response.status).toBe(404)
      expect(await response.json()).toBeTypeOf('object')
    }
  })

  it('has a seeded database and a controllable upstream', async () => {
    const rows = await query(gateway(), 'select slug from organizations order by slug')
    expect(rows.map(({ slug }) => slug)).toEqual(expect.arrayContaining(['acme', 'broke', 'other']))
    expect(await upstreamControl(gateway()).stats()).toHaveProperty('totalRequests')
    expect(gateway().deniedModels.length).toBeGreaterThan(0)
  })

  // A system without /proc has no such files.
  it.runIf(process.platform === 'linux')('tells no secret on a command line', () => {
    const { pids, variables } = gateway()
    const secrets = Object.entries(variables).filter(([name]) => /TOKEN|KEY|SECRET/.test(name))
    expect(secrets.length).toBeGreaterThan(3)
    for (const pid of Object.values(pids)) {
      const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      expect(line).not.toBe('')
      for (const [name, value] of secrets)
        expect(line.includes(value), `${name} in ${line.split('\0')[1]}`).toBe(false)
    }
  })
})
