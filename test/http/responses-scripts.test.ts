import { beforeAll, describe, expect, it } from 'vitest'
import { builtInScripts, wireScripts } from '../../scripts/local/model-upstream/built-in-scripts.ts'
import { gateway } from '../harness/gateway.ts'
import { jsonOf } from '../harness/send.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { expectJson, type Json, type ToldResponse } from './support/response-calls.ts'
import { checkedEvents, postResponse, STREAMED_WAYS } from './support/response-streams.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

/** They take their time, which is tested apart. */
const SLOW = new Set(['silent-stream', 'slow-headers', 'stall', 'ping-only', 'flood'])
const SCRIPTS = [...builtInScripts.keys()].filter((name) => !SLOW.has(name))

const TOOLS = ['get_weather', 'get_time', 'lookup'].map((name) => ({
  type: 'function',
  name,
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
}))

/** Members that differ each time. */
const OWN = new Set(['id', 'call_id', 'item_id', 'created_at', 'completed_at', 'encrypted_content'])

/** A response without what differs each time it is made. */
const comparable = (response: ToldResponse): Json =>
  JSON.parse(
    JSON.stringify(response, (name, value) => (OWN.has(name) || name === 'conversation' ? undefined : value)),
  )

/** The response that was created, or the error with which its first turn was refused. */
async function resultOf(body: Json): Promise<Json> {
  const answer = await postResponse(tenant.key, body)
  if (answer.status !== 200) return { status: answer.status, ...(jsonOf(answer) as Json) }
  const response =
    body.stream === true
      ? (checkedEvents(answer.text).at(-1)?.data.response as unknown as ToldResponse)
      : expectJson<ToldResponse>(answer)
  expect(['completed', 'incomplete', 'failed']).toContain(response.status)
  return comparable(response)
}

// Whatever an upstream says, its stream keeps the rules, and what is told at its end is what is told without a stream.
describe.each(STREAMED_WAYS)('an upstream (%s)', (_, { upstream, model }) => {
  // What is answered is read by protocol. How answers travel and fail is the same for both.
  it.each(SCRIPTS.filter((name) => upstream === 'chat' || !wireScripts.has(name)))(
    'that plays %s',
    async (name) => {
      const body = {
        model,
        input: `script:${name} tokens=40`,
        tools: TOOLS,
        max_output_tokens: 4_000,
        store: false,
      }
      const [streamed, whole] = await Promise.all(
        [true, false].map((stream) => resultOf({ ...body, stream })),
      )
      expect(streamed).toEqual(whole)
    },
  )
})
