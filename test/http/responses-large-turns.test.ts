import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import { openStream } from '../harness/open-stream.ts'
import { bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { registerAnswers, type UpstreamRequest } from '../harness/upstream.ts'
import { codePolicy, governedTenant, someCode } from './support/dlp.ts'
import { callTool, framesOf, say } from './support/dlp-answers.ts'
import { createResponse, type Json, type ToldResponse } from './support/response-calls.ts'
import {
  bodyOf,
  checkedEvents,
  type ResponseWay,
  respond,
  type SeenBody,
  STREAMED_WAYS,
  turnsScript,
} from './support/response-streams.ts'

// A context of more than 1 MB is not held while a model talks: a further turn loads it again.

let tenant: Tenant
let governed: Tenant
/** Earlier answers of models. */
let earlier: Record<ResponseWay['upstream'], string>

beforeAll(async () => {
  ;[tenant, governed] = await Promise.all([createTenant(gateway()), governedTenant(codePolicy('redact'))])
  const [chat, messages] = await Promise.all([
    turnsScript('chat', [[say('Earlier.')]]),
    turnsScript('messages', [[say('Earlier.')]]),
  ])
  earlier = { chat, messages }
})

/** A model that calls it all the same is answered by the gateway, which makes a further turn. */
const REFUSED_CALL = {
  tools: [{ type: 'function', name: 'f', parameters: { type: 'object', properties: {} } }],
  tool_choice: 'none',
}
const CODE = someCode()

/** Placeholders of the long texts of a context: one that fits into a row, and one that does not. */
interface Texts {
  row: string
  content: string
}

const SHORT: Texts = { row: '<the text in a row>', content: '<the text in the content store>' }
const LONG: Texts = { row: 'r'.repeat(200_000), content: 'c'.repeat(1_100_000) }

interface Case {
  name: string
  /** Whether something was said before. */
  continues: boolean
  members: (first: ToldResponse, second: ToldResponse) => Json
  owner?: () => Tenant
  /** How a context is loaded does not depend on the protocol: the second one runs the case that has most of it. */
  everyProtocol?: true
}

const CASES: Case[] = [
  { name: 'in a new conversation', continues: false, members: () => ({}) },
  { name: 'that is not stored', continues: false, members: () => ({ store: false }) },
  { name: 'under a policy', continues: false, members: () => ({}), owner: () => governed },
  {
    name: 'in a continued conversation under a policy',
    continues: true,
    members: (_, { conversation }) => ({ conversation: conversation?.id }),
    owner: () => governed,
    everyProtocol: true,
  },
  { name: 'after an earlier response', continues: true, members: ({ id }) => ({ previous_response_id: id }) },
  {
    name: 'after a response, not stored',
    continues: true,
    members: (_, { id }) => ({ previous_response_id: id, store: false }),
  },
]

const user = (content: string) => ({ role: 'user', content })
const inputOf = (texts: Texts, last: string) => [
  user(`One ${CODE}.`),
  user(`Two ${texts.row}`),
  user(`Three ${CODE} ${texts.content}`),
  user(last),
]

const nameOf = (script: string) => script.slice('script:'.length)

/** Requests to a script, in order. */
async function askedOf(script: string, after: number): Promise<UpstreamRequest[]> {
  const requests = (await upstreamControl(gateway()).requests(after)) as UpstreamRequest[]
  return requests.filter((request) => request.script === nameOf(script))
}

interface Turns {
  script: string
  asked: UpstreamRequest[]
}

async function makeTurns({ upstream, model }: ResponseWay, of: Case, texts: Texts): Promise<Turns> {
  const { key } = of.owner?.() ?? tenant
  const after = await upstreamControl(gateway()).lastRequest()
  const script = await turnsScript(upstream, [[say('Hm. '), callTool('f', { a: 1 })], [say('Done.')]])
  let members: Json = {}
  if (of.continues) {
    const first = await createResponse(key, { model, input: inputOf(texts, earlier[upstream]) })
    const previous = { previous_response_id: first.id }
    const second = await createResponse(key, { model, input: earlier[upstream], ...previous })
    members = of.members(first, second)
  } else members = of.members({} as ToldResponse, {} as ToldResponse)
  const body = { model, stream: true, input: inputOf(texts, script), ...REFUSED_CALL, ...members }
  const { response } = await respond(key, body)
  expect(response).toMatchObject({ status: 'completed', output_text: 'Hm. Done.' })
  return { script, asked: await askedOf(script, after) }
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const occurrences = (text: string, part: string) => text.split(part).length - 1

/** The messages that the second turn was told after those of the first. */
function addedBySecond([first, second]: SeenBody[]): unknown[] {
  if (!first || !second) throw new Error('two turns were expected')
  expect(second.messages.slice(0, first.messages.length)).toEqual(first.messages)
  return second.messages.slice(first.messages.length)
}

describe.each(STREAMED_WAYS)('a further turn (%s)', (_, way) => {
  const cases = CASES.filter(({ everyProtocol }) => way.upstream === 'chat' || everyProtocol)
  it.each(cases)('$name is told all once more', async (each) => {
    const short = await makeTurns(way, each, SHORT)
    expect(short.asked).toHaveLength(2)
    const added = addedBySecond(short.asked.map(bodyOf))
    expect(added).toHaveLength(2)
    const isChat = way.upstream === 'chat'
    expect(added).toMatchObject(
      isChat
        ? [
            { role: 'assistant', content: 'Hm. ', tool_calls: [{ function: { name: 'f' } }] },
            { role: 'tool' },
          ]
        : [
            {
              role: 'assistant',
              content: [{ text: 'Hm. ' }, { type: 'tool_use', name: 'f', input: { a: 1 } }],
            },
            { role: 'user', content: [{ type: 'tool_result' }] },
          ],
    )
    const [first = '', second = ''] = short.asked.map(({ body }) => body)
    for (const text of [SHORT.row, SHORT.content]) {
      expect(occurrences(first, text)).toBe(each.continues ? 2 : 1)
      expect(occurrences(second, text)).toBe(occurrences(first, text))
    }
    expect(second.includes(CODE)).toBe(each.owner === undefined)

    // Long texts change nothing but themselves.
    const long = await makeTurns(way, each, LONG)
    const expected = short.asked.map(({ body }) =>
      body
        .replaceAll(SHORT.row, LONG.row)
        .replaceAll(SHORT.content, LONG.content)
        .replaceAll(nameOf(short.script), nameOf(long.script)),
    )
    expect(long.asked.map(({ bodyBytes }) => bodyBytes)).toEqual(
      expected.map((text) => Buffer.byteLength(text)),
    )
    expect(long.asked.map(({ bodySha256 }) => bodySha256)).toEqual(expected.map(sha256))
  })

  it.runIf(way.upstream === 'chat')(
    'that is not stored is told what the first was, whatever its conversation became meanwhile',
    async () => {
      const { upstream, model } = way
      const before = await createResponse(tenant.key, { model, input: `Before ${LONG.content}` })
      const conversation = before.conversation?.id
      const signal = uniqueName('turn')
      const after = await upstreamControl(gateway()).lastRequest()
      const parts = [say('Hm. '), callTool('f', {})]
      const beginning = framesOf(upstream, [say('Hm. ')], undefined, false).slice(0, -1)
      const script = await registerAnswers(gateway(), [
        {
          steps: [
            { sse: beginning },
            { waitForSignal: signal },
            { sse: framesOf(upstream, parts).slice(beginning.length) },
          ],
        },
        { steps: [{ sse: framesOf(upstream, [say('Done.')]) }] },
      ])
      const body = { model, stream: true, store: false, conversation, input: script, ...REFUSED_CALL }
      const url = `${gateway().baseUrl}/v1/responses`
      const open = await openStream(url, bearer(tenant.key), JSON.stringify(body))
      await open.until((text) => text.includes('"delta":"'))
      await createResponse(tenant.key, { model, input: `Meanwhile ${'m'.repeat(5_000)}`, conversation })
      await upstreamControl(gateway()).release(signal)
      expect(checkedEvents(await open.end()).at(-1)?.data.response).toMatchObject({
        status: 'completed',
        output_text: 'Hm. Done.',
      })
      const [first, second] = await askedOf(script, after)
      const told = Number(second?.bodyBytes) - Number(first?.bodyBytes)
      expect(told).toBeGreaterThan(0)
      // The output of the turn and its answer, without later items.
      expect(told).toBeLessThan(700)
    },
  )
})
