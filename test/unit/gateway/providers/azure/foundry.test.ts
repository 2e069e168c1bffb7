import { AnthropicFoundry } from '@anthropic-ai/foundry-sdk'
import { afterEach, expect, it, vi } from 'vitest'
import { foundry } from '../../../../../src/gateway/providers/azure/foundry.ts'
import { bodyOf, CONVERSATION, clientFetch, sentByGateway } from '../sent-by-gateway.ts'

afterEach(() => {
  vi.unstubAllGlobals()
})

const BASE = 'https://resource.services.ai.azure.com/anthropic'

it.each([BASE, BASE.replace('/anthropic', '')])(
  'sends Claude in Foundry what the official client sends, below %s',
  async (baseUrl) => {
    const transport = foundry.connect(baseUrl, { api_key: 'FKEY' }, { allowedMembers: [] })
    const headers = { 'anthropic-beta': 'context-1m-2025-08-07' }
    const [own] = await sentByGateway(transport, 'my-deployment', CONVERSATION, { stream: true, headers })
    const { fetch, sent } = clientFetch()
    const client = new AnthropicFoundry({ baseURL: BASE, apiKey: 'FKEY', maxRetries: 0, fetch } as object)
    const request = { ...CONVERSATION, model: 'my-deployment', stream: true }
    await Promise.resolve(client.messages.create(request as never, { headers })).catch(() => {})
    const [official] = sent
    expect(own?.address).toBe(official?.address)
    expect(own && bodyOf(own)).toEqual(official && bodyOf(official))
    for (const name of ['x-api-key', 'content-type', 'anthropic-beta']) {
      expect(own?.headers[name]).toBe(official?.headers[name])
    }
    // The official client sends a later version, which refuses sampling members.
    expect(own?.headers['anthropic-version']).toBe('2023-06-01')
  },
)
