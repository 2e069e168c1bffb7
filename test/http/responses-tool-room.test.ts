import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { administrator, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker } from '../harness/upstream.ts'
import { assistant, kindsOf, modelWithWindow, sentWith, user } from './support/compactions.ts'
import { callTool, say } from './support/dlp-answers.ts'
import { type Json, listItems } from './support/response-calls.ts'
import { RESPONSE_WAYS, respond, turnsScript } from './support/response-streams.ts'

// The definitions of hosted tools take room in the window of a model, as those of the caller do.

const WINDOW = 16_000
/** The answer of `modelWithWindow`. */
const MOST_OUTPUT = 1_000

let withTools: Tenant
let without: Tenant
beforeAll(async () => {
  ;[withTools, without] = await Promise.all([createTenant(gateway()), createTenant(gateway())])
  await administrator(gateway()).ask('PUT', `${without.base}/tools`, {
    off: [{ subject_type: 'organization', tools: ['shell', 'files', 'web_search', 'browser'] }],
  })
})

/** Exchanges of about 130 estimated tokens each. */
const exchanges = (count: number) =>
  Array.from({ length: count }, (_, index) => [
    user(`Question ${index}: ${'and '.repeat(50)}`),
    assistant(`Answer ${index}: ${'and '.repeat(50)}`),
  ]).flat()

const WAYS = RESPONSE_WAYS.filter(([, { stream }]) => !stream)

describe.each(WAYS)('the room of a context (%s)', (_, { upstream }) => {
  /** The number of questions that the model got, in each of its turns. */
  async function questionsFor({ key }: Tenant, more: Json, turns: Parameters<typeof turnsScript>[1]) {
    const model = await modelWithWindow(upstream, WINDOW)
    const text = marker()
    const instructions = await turnsScript(upstream, turns)
    const input = [...exchanges(200), user(text)]
    const { response } = await respond(key, { model, instructions, input, ...more })
    expect(response.status).toBe('completed')
    const bodies = await sentWith(text)
    return bodies.map((body) => body.match(/Question \d+:/g)?.length ?? 0)
  }

  it('is smaller by the hosted tools for truncation, in every turn', async () => {
    const turns = [[callTool('list_files', { path: null, recursive: null })], [say('Done.')]]
    const truncated = { truncation: 'auto' }
    const [plain] = await questionsFor(without, truncated, [[say('Done.')]])
    const [first, second] = await questionsFor(withTools, truncated, turns)
    expect(plain).toBeGreaterThan(70)
    // The definitions have some thousands of tokens, and an exchange has 130.
    expect(first).toBeLessThan((plain ?? 0) - 8)
    expect(second).toBeLessThanOrEqual(first ?? 0)
  })

  it('is smaller by the hosted tools for compaction', async () => {
    const model = await modelWithWindow(upstream, WINDOW)
    const kindsFor = async ({ key }: Tenant) => {
      const instructions = await turnsScript(upstream, [[say('Summary.')], [say('Done.')]])
      // Almost all of the room that there is without tools.
      const input = [...exchanges(Math.floor((WINDOW - MOST_OUTPUT) / 135)), user(marker())]
      const managed = { context_management: [{ type: 'compaction', compact_threshold: WINDOW }] }
      const { response } = await respond(key, { model, instructions, input, ...managed })
      const items = await listItems(key, `/v1/conversations/${response.conversation?.id}/items?limit=1`)
      expect(items.data).toHaveLength(1)
      return kindsOf(response.output)
    }
    expect(await kindsFor(without)).toEqual(['assistant'])
    expect(await kindsFor(withTools)).toEqual(['compaction', 'assistant'])
  })
})
