import { describe, expect, it } from 'vitest'
import { bedrock } from '../../../src/gateway/providers/bedrock/bedrock.ts'
import { vertex } from '../../../src/gateway/providers/vertex/vertex.ts'
import { counterRequest } from '../../../src/gateway/token-count/counters.ts'

const MESSAGES = [{ role: 'user', content: 'Hi' }]
/** With members that are no part of the count, and that these platforms refuse. */
const REQUEST = {
  model: 'm',
  max_tokens: 5,
  stream: false,
  messages: MESSAGES,
  thinking: { type: 'enabled', budget_tokens: 2_000 },
  metadata: { user_id: 'someone' },
  litellm_metadata: {},
  cache_control: { type: 'ephemeral' },
  service_tier: 'auto',
}
const TARGET = { operation: 'messages', upstreamModel: 'claude', stream: false, callerHeaders: null } as const
const sent = (form: 'bedrock' | 'vertex', members: Parameters<typeof counterRequest>[3]) =>
  JSON.parse(
    new TextDecoder().decode(
      counterRequest(form, new TextEncoder().encode(JSON.stringify(REQUEST)), 'claude', members),
    ),
  )

describe('the request of a token counter has only what the call would send', () => {
  it('on Bedrock, with room for the thinking', () => {
    const parts = { region: 'us-east-1', api_key: 'k' }
    const transport = bedrock.connect('https://bedrock.example', parts, { allowedMembers: [] })
    const { input } = sent('bedrock', transport.bodyMembers?.(TARGET) ?? null)
    expect(JSON.parse(Buffer.from(input.invokeModel.body, 'base64').toString())).toEqual({
      anthropic_version: 'bedrock-2023-05-31',
      max_tokens: 2_001,
      messages: MESSAGES,
      thinking: REQUEST.thinking,
    })
  })

  it('on Vertex, with the model', () => {
    const transport = vertex.connect('https://vertex.example', { project_id: 'p' }, { allowedMembers: [] })
    expect(sent('vertex', transport.bodyMembers?.(TARGET) ?? null)).toEqual({
      anthropic_version: 'vertex-2023-10-16',
      model: 'claude',
      messages: MESSAGES,
      thinking: REQUEST.thinking,
    })
  })
})
