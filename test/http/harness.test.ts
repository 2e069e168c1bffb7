import { describe, expect, it } from 'vitest'
import { gateway, query, upstreamControl } from '../harness/gateway.ts'

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
})
