import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { jsonOf } from '../harness/send.ts'
import { addKey, addMember, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest } from '../harness/upstream.ts'
import {
  CHAT_TO_MESSAGES,
  CHAT_WAY,
  callWay,
  codePolicy,
  expectBalance,
  governedTenant,
  MESSAGES_TO_CHAT,
  MESSAGES_WAY,
  namedWays,
  recordOf,
  someCode,
  WAYS,
  type Way,
} from './support/dlp.ts'
import {
  answerScript,
  bytesScript,
  callTool,
  framesOf,
  say,
  think,
  toldBy,
  toldIn,
} from './support/dlp-answers.ts'

let tenant: Tenant
const TOKENS = /\[\[CODE_[0-9a-f]{12}\]\]/g

beforeAll(async () => {
  tenant = await governedTenant(codePolicy('tokenise', { directions: ['request'] }))
})

/** The tokens that the upstream gets for a text. */
async function tokensFor(way: Way, by: Pick<Tenant, 'key'>, text: string): Promise<string[]> {
  const mark = marker()
  expect((await callWay(way, by, `${mark} ${text}`)).status).toBe(200)
  return (await seenRequest(gateway(), mark)).body.match(TOKENS) ?? []
}

describe('a token', () => {
  it('is the same for the same value of a user, in every call and protocol', async () => {
    const [code, other] = [someCode(), someCode()]
    const [first, second, third] = await tokensFor(CHAT_WAY, tenant, `${code} ${other} ${code}`)
    expect(first).toBe(third)
    expect(first).not.toBe(second)
    for (const way of WAYS) expect(await tokensFor(way, tenant, code)).toEqual([first])
  })

  it('is another one for another user, and for another organization', async () => {
    const code = someCode()
    const { key } = await addKey(gateway(), tenant.base, await addMember(gateway(), tenant.base))
    const elsewhere = await governedTenant(codePolicy('tokenise', { directions: ['request'] }))
    const [mine, theirs, foreign] = await Promise.all(
      [tenant, { key }, elsewhere].map((by) => tokensFor(MESSAGES_WAY, by, code)),
    )
    expect(new Set([mine?.[0], theirs?.[0], foreign?.[0]]).size).toBe(3)
  })
})

const withCalls = ({ route, upstream }: Way) => route.name !== 'completions' && upstream !== 'completions'
const LENGTHS = Array.from({ length: 40 }, (_, index) => index + 1)

describe.each(namedWays(WAYS))('an answer of %s', (_, way) => {
  it('restores the value where the model repeats its token, and leaves other tokens', async () => {
    const code = someCode()
    const [token = ''] = await tokensFor(way, tenant, code)
    const unknown = '[[CODE_000000000000]]'
    const text = (value: string) => `For ${value}: [[${value}]] [${value}], ${unknown} ${value}`
    const input = (value: string) => ({ code: value, why: `"${value}"` })
    const parts = withCalls(way) ? [say(text(token)), callTool('find', input(token))] : [say(text(token))]
    for (const stream of [true, false]) {
      const script = await answerScript(way.upstream, parts, [5])
      const answer = await callWay(way, tenant, `${script} ${code}`, { stream })
      const told = stream ? toldBy(answer.text) : toldIn(jsonOf(answer))
      expect(told.text).toBe(text(code))
      expect(told.calls.map(({ json }) => JSON.parse(json))).toEqual(withCalls(way) ? [input(code)] : [])
      const recorded = await recordOf(tenant, answer)
      // A value that returns to its own user is no finding.
      expect(recorded.dlp?.findings).toEqual({ code: 1 })
      expectBalance(recorded)
    }
  })

  it('restores it wherever the stream is cut', async () => {
    const code = someCode()
    const [token = ''] = await tokensFor(way, tenant, code)
    const text = (value: string) => LENGTHS.map((length) => `${'y'.repeat(length % 11)} ${value}`).join(' ')
    for (const script of [
      await answerScript(way.upstream, [say(text(token))], LENGTHS),
      await answerScript(way.upstream, [say(text(token))], [1]),
      await bytesScript(framesOf(way.upstream, [say(text(token))], [4]).join(''), [1_000, 333, 77, 1]),
    ]) {
      const answer = await callWay(way, tenant, `${script} ${code}`, { stream: true })
      expect(toldBy(answer.text).text).toBe(text(code))
    }
  })
})

it('a token of another user stays a token', async () => {
  const code = someCode()
  const [token = ''] = await tokensFor(CHAT_WAY, tenant, code)
  const { key } = await addKey(gateway(), tenant.base, await addMember(gateway(), tenant.base))
  const script = await answerScript('chat', [say(`it is ${token}`)])
  // Others do not learn it, not even with a value of their own in the call.
  for (const text of [script, `${script} ${someCode()}`, `${script} ${token}`]) {
    const answer = await callWay(CHAT_WAY, { key }, text, { stream: true })
    expect(toldBy(answer.text).text).toBe(`it is ${token}`)
  }
})

it('a conversation goes on with the same tokens, in its arguments and results of tools as well', async () => {
  const both = await governedTenant(codePolicy('tokenise'))
  const code = someCode()
  const [token = ''] = await tokensFor(CHAT_WAY, both, code)
  const mark = marker()
  const called = {
    id: 'c',
    type: 'function',
    function: { name: 'f', arguments: JSON.stringify({ a: code }) },
  }
  const messages = [
    { role: 'user', content: `${mark} ${code}` },
    { role: 'assistant', content: `so ${code}`, tool_calls: [called] },
    { role: 'tool', tool_call_id: 'c', content: `{"of":"${code}"}` },
  ]
  expect((await callWay(CHAT_WAY, both, 'x', { messages })).status).toBe(200)
  const { body } = await seenRequest(gateway(), mark)
  expect(body.match(TOKENS)).toEqual([token, token, token, token])
  expect(body).not.toContain(code)
})

it('signed thinking keeps its tokens and its signature; reasoning without one tells the value', async () => {
  const code = someCode()
  const [token = ''] = await tokensFor(MESSAGES_WAY, tenant, code)
  const outcomes = await Promise.all(
    [MESSAGES_WAY, CHAT_TO_MESSAGES, CHAT_WAY, MESSAGES_TO_CHAT].map(async (way) => {
      const script = await answerScript(way.upstream, [think(`of ${token}`), say(token)])
      const [streamed, whole] = await Promise.all(
        [true, false].map((stream) => callWay(way, tenant, `${script} ${code}`, { stream })),
      )
      const told = [toldBy(streamed?.text ?? ''), toldIn(JSON.parse(whole?.text ?? ''))]
      expect(told[0]).toEqual(told[1])
      return told[0]
    }),
  )
  expect(outcomes[0]).toMatchObject({ reasoning: `of ${token}`, signature: 'c2ln', text: code })
  for (const told of outcomes.slice(1)) expect(told).toMatchObject({ reasoning: `of ${code}`, text: code })
})
