import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { gateway, query } from '../harness/gateway.ts'
import { jsonOf } from '../harness/send.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest, seenRequests } from '../harness/upstream.ts'
import { say } from './support/dlp-answers.ts'
import { ask, expectJson, type Json, type ToldList, type ToldResponse } from './support/response-calls.ts'
import { CORNER_WAYS, postResponse, respond, turnsScript } from './support/response-streams.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const TABLES = ['conversations', 'responses', 'response_items', 'response_item_uses', 'conversation_items']

/** Rows of an organization, by table, as text. */
async function rowsOf({ organizationId }: Tenant): Promise<string[]> {
  const texts = await Promise.all(
    TABLES.map(async (table) => {
      const found = `select t::text as text from ${table} as t where position($1 in t::text) > 0`
      return (await query(gateway(), found, [organizationId])).map(({ text }) => String(text))
    }),
  )
  return texts.flat()
}

describe.each(CORNER_WAYS)('store: false (%s)', (_, { upstream, model, stream }) => {
  it('leaves no row, of a response that fails or not', async () => {
    const owner = await createTenant(gateway())
    const call = (body: Json) => respond(owner.key, { model, stream, ...body })
    const { response } = await call({ input: 'Hello', store: false })
    expect(response).toMatchObject({ status: 'completed', store: false, conversation: null })
    await call({ input: 'script:mid-stream-cut', store: false })
    const refused = { model, stream, input: 'script:error-500', store: false }
    expect((await postResponse(owner.key, refused)).status).toBe(500)
    expect(await rowsOf(owner)).toEqual([])
    // Within its window it can be read all the same.
    expect(expectJson(await ask(owner.key, 'GET', `/v1/responses/${response.id}`))).toEqual(response)
    await call({ input: 'Hello' })
    expect((await rowsOf(owner)).length).toBeGreaterThanOrEqual(4)
  })

  it.runIf(upstream === 'messages')('reads a conversation, and adds nothing to it', async () => {
    const text = marker()
    const first = (await respond(tenant.key, { model, stream, input: text })).response
    const path = `/v1/conversations/${first.conversation?.id}/items`
    const before = await ask(tenant.key, 'GET', path)
    const input = await turnsScript(upstream, [[say('Nobody will know.')]])
    for (const by of [{ conversation: first.conversation?.id }, { previous_response_id: first.id }]) {
      const { response } = await respond(tenant.key, { model, stream, input, store: false, ...by })
      expect(response).toMatchObject({ conversation: null, output_text: 'Nobody will know.' })
      expect((await seenRequests(gateway(), input)).at(-1)?.body).toContain(text)
      expect((await ask(tenant.key, 'GET', path)).text).toBe(before.text)
      const next = await postResponse(tenant.key, { previous_response_id: response.id })
      expect(next.status).toBe(404)
    }
  })
})

/** An image of about so many bytes of base64. */
const imageOf = (bytes: number) =>
  `data:image/png;base64,${randomBytes(Math.floor((bytes * 3) / 4 / 3) * 3).toString('base64')}`

const userImage = (text: string, image: string) => ({
  role: 'user',
  content: [
    { type: 'input_text', text },
    { type: 'input_image', image_url: image },
  ],
})

describe.each(CORNER_WAYS)('large input (%s)', (_, { upstream, model, stream }) => {
  it.each(upstream === 'chat' ? [1.2e6, 8e6] : [1.2e6])(
    'an image of %d bytes reaches the model, and comes back',
    async (bytes) => {
      const text = marker()
      const image = imageOf(bytes)
      const body = { model, stream, instructions: text, input: [userImage('Look.', image)] }
      const { response } = await respond(tenant.key, body)
      expect(response.status, JSON.stringify(response.error)).toBe('completed')
      const seen = await seenRequest(gateway(), text)
      expect(seen.bodyBytes).toBeGreaterThan(image.length - 100)
      expect(seen.path).toContain(upstream === 'chat' ? 'chat/completions' : 'messages')
      const list = expectJson<ToldList>(
        await ask(tenant.key, 'GET', `/v1/responses/${response.id}/input_items`),
      )
      const [, part] = (list.data[0]?.content ?? []) as Array<{ image_url: string }>
      // Not `toBe`: a difference would be printed.
      expect(part?.image_url === image).toBe(true)
      const [row] = await query(
        gateway(),
        'select octet_length(body) as bytes, content_key from response_items where id = $1',
        [list.data[0]?.id],
      )
      expect(row).toMatchObject({ bytes: null, content_key: expect.any(String) })
      if (bytes > 6e6) return
      // The next turn is told it again.
      const again = marker()
      const next = await respond(tenant.key, {
        model,
        stream,
        instructions: again,
        input: 'And?',
        previous_response_id: response.id,
      })
      expect(next.response.status).toBe('completed')
      expect((await seenRequest(gateway(), again)).bodyBytes).toBeGreaterThan(image.length)
    },
    60_000,
  )

  it.runIf(upstream === 'messages')(
    'an output of a tool above 1 MB is stored and sent to the model',
    async () => {
      const text = marker()
      const output = randomBytes(600_000).toString('hex')
      const input = [
        { role: 'user', content: text },
        { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output },
      ]
      const { response } = await respond(tenant.key, { model, stream, input })
      expect(response.status).toBe('completed')
      const path = `/v1/conversations/${response.conversation?.id}/items?order=asc`
      const list = expectJson<ToldList>(await ask(tenant.key, 'GET', path))
      expect(list.data[2]?.output === output).toBe(true)
    },
  )
})

it('deleted items are erased from the content store', async () => {
  const { response } = await respond(tenant.key, { input: [userImage('Look.', imageOf(2e6))] })
  const list = expectJson<ToldList>(await ask(tenant.key, 'GET', `/v1/responses/${response.id}/input_items`))
  const id = list.data[0]?.id ?? ''
  await ask(tenant.key, 'DELETE', `/v1/responses/${response.id}`)
  await vi.waitFor(async () => {
    const items = await ask(tenant.key, 'GET', `/v1/conversations/${response.conversation?.id}/items`)
    expect(items.text).not.toContain(id)
  })
  const rows = await query(gateway(), 'select id from response_items where id = $1', [id])
  expect(rows).toEqual([])
})

it('a conversation that is too long for a model is refused as such', async () => {
  const image = imageOf(30e6)
  const first = (await respond(tenant.key, { input: [userImage('Look.', image)] })).response as ToldResponse
  const answer = await postResponse(tenant.key, {
    conversation: first.conversation?.id,
    input: [userImage('And this.', image)],
  })
  expect(jsonOf(answer)).toMatchObject({ error: { code: 'context_length_exceeded' } })
  expect(answer.status).toBe(400)
}, 60_000)
