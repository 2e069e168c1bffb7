import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { jsonOf } from '../harness/send.ts'
import type { Tenant } from '../harness/tenant.ts'
import { registerScript } from '../harness/upstream.ts'
import {
  CHAT_TO_MESSAGES,
  CHAT_WAY,
  callWay,
  codePolicy,
  expectBalance,
  governedTenant,
  MESSAGES_TO_CHAT,
  namedWays,
  recordOf,
  someCode,
  tracesOf,
  WAYS,
  type Way,
} from './support/dlp.ts'
import {
  answerScript,
  bytesScript,
  callTool,
  cut,
  framesOf,
  type Part,
  say,
  think,
  toldBy,
  toldIn,
} from './support/dlp-answers.ts'
import { endOf, payloadsOf } from './support/translated-pairs.ts'

let redacting: Tenant
/** Under a policy that is not about answers. */
let free: Tenant
const HIDDEN = '[REDACTED:CODE]'
const SIZES = Array.from({ length: 64 }, (_, index) => index + 1)

beforeAll(async () => {
  redacting = await governedTenant(codePolicy('redact'))
  free = await governedTenant(codePolicy('redact', { directions: ['tool_result'] }))
})

const hasParts = ({ route, upstream }: Way) => route.name !== 'completions' && upstream !== 'completions'

/** An answer of a model with the value in every part. */
function spoken(way: Way, code: string): { parts: Part[]; expected: ReturnType<typeof toldBy> } {
  const text = (hidden: string) => `Über "${hidden}"\n😀 and KX-1234, ${hidden}`
  const input = (hidden: string) => ({
    code: hidden,
    list: [`<${hidden}>`, 7],
    [hidden]: { a: 'b\\"\u00e9' },
  })
  if (!hasParts(way)) {
    return {
      parts: [say(text(code))],
      expected: { text: text(HIDDEN), reasoning: '', signature: '', calls: [] },
    }
  }
  return {
    parts: [think(text(code)), say(text(code)), callTool('find', input(code)), callTool('tell', { code })],
    expected: {
      reasoning: text(HIDDEN),
      text: text(HIDDEN),
      signature: '',
      calls: [
        { name: 'find', json: JSON.stringify(input(HIDDEN)) },
        { name: 'tell', json: JSON.stringify({ code: HIDDEN }) },
      ],
    },
  }
}

const sorted = (told: ReturnType<typeof toldBy>) => ({
  ...told,
  calls: told.calls.map(({ name, json }) => ({ name, input: JSON.parse(json) })),
})

describe.each(namedWays(WAYS))('an answer of %s', (_, way) => {
  it.each([true, false])('holds no value in any part, streamed: %s', async (stream) => {
    const code = someCode()
    const { parts, expected } = spoken(way, code)
    const script = await answerScript(way.upstream, parts)
    const answer = await callWay(way, redacting, script, { stream })
    expect(answer.status, answer.text).toBe(200)
    const told = stream ? toldBy(answer.text) : toldIn(jsonOf(answer))
    expect(answer.text).not.toContain(code)
    // Digits alone are looked for in the texts only: times and ids have digits of their own.
    for (const trace of tracesOf(code)) expect(JSON.stringify(told)).not.toContain(trace)
    expect(sorted(told)).toEqual(sorted(expected))
    if (stream) expect(answer.text.endsWith(endOf(way.route))).toBe(true)
    const recorded = await recordOf(redacting, answer)
    expect(recorded.dlp?.findings).toEqual({ code: hasParts(way) ? 8 : 2 })
    expect(recorded.record).toMatchObject({ provenance: 'reported', usage: { input: 3, output: 5 } })
    expect(expectBalance(recorded)).toEqual(['request', 'response'])
  })

  it('leaks nothing, whatever the pieces of its text', async () => {
    const codes = SIZES.map(() => someCode())
    // A stretch for each size of pieces, each with a value; what is left of a stretch is a piece as well.
    const stretches = codes.map(
      (code, index) => `${'word '.repeat(index % 7)}${'x'.repeat(index % 5)} ${code}, `,
    )
    const pieces = stretches.flatMap((stretch, index) => cut(stretch, [SIZES[index] ?? 1]))
    const lengths = pieces.map(({ length }) => length)
    const parts = [say(pieces.join(''))]
    const answer = await callWay(way, redacting, await answerScript(way.upstream, parts, lengths), {
      stream: true,
    })
    const whole = codes.reduce((text, code) => text.replace(code, HIDDEN), pieces.join(''))
    expect(toldBy(answer.text).text).toBe(whole)
    expectBalance(await recordOf(redacting, answer))
  })

  // Bytes are read by the protocol of the provider.
  it.runIf(way.route.name !== 'completions' || way.upstream === 'completions')(
    'leaks nothing, whatever the pieces of its bytes',
    async () => {
      const code = someCode()
      const { parts, expected } = spoken(way, code)
      const stream = framesOf(way.upstream, parts).join('').replaceAll('\n', '\r\n')
      const answer = await callWay(way, redacting, await bytesScript(stream, SIZES), { stream: true })
      expect(sorted(toldBy(answer.text.replaceAll('\r\n', '\n')))).toEqual(sorted(expected))
      expectBalance(await recordOf(redacting, answer))
    },
  )

  it('is sent byte for byte if nothing is found', async () => {
    const parts = hasParts(way) ? [think('hm. '), say('Well. ')] : [say('Well. ')]
    const script = await answerScript(way.upstream, parts, [2])
    const [one, other] = await Promise.all(
      [redacting, free].map((tenant) => callWay(way, tenant, script, { stream: true })),
    )
    const told = [one, other].map((answer) => (answer ? { ...toldBy(answer.text) } : null))
    expect(told[0]).toEqual(told[1])
  })
})

describe('order', () => {
  it.each(namedWays([CHAT_WAY, CHAT_TO_MESSAGES]))('%s ends with the finish reason', async (_, way) => {
    const { parts } = spoken(way, someCode())
    const answer = await callWay(way, redacting, await answerScript(way.upstream, parts), { stream: true })
    const chunks = payloadsOf(answer.text).flatMap(({ choices }) => choices as Array<Record<string, unknown>>)
    expect(chunks.map(({ finish_reason: reason }) => reason ?? null).filter(Boolean)).toEqual(['tool_calls'])
    expect(chunks.at(-1)?.finish_reason).toBe('tool_calls')
  })

  it('a messages caller gets the parts of a chat answer in theirs', async () => {
    // Held back at the end of each part: what could still become a value.
    const parts = [
      think('so KX-12'),
      say('then KX-99'),
      callTool('find', { a: 1 }),
      callTool('tell', { b: 2 }),
    ]
    const answer = await callWay(MESSAGES_TO_CHAT, redacting, await answerScript('chat', parts), {
      stream: true,
    })
    const blocks = payloadsOf(answer.text)
      .filter(({ type }) => type === 'content_block_start')
      .map(({ content_block: block }) => (block as { type: string }).type)
    expect(blocks).toEqual(['thinking', 'text', 'tool_use', 'tool_use'])
    expect(toldBy(answer.text)).toMatchObject({ reasoning: 'so KX-12', text: 'then KX-99' })
    expectBalance(await recordOf(redacting, answer))
  })

  it('also where one chunk holds the end of a part and the next', async () => {
    const head = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' }
    const frame = (delta: object, finish: string | null = null) =>
      `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
    const call = { index: 0, id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }
    const frames = [
      frame({ reasoning_content: 'so ' }),
      frame({ reasoning_content: 'KX-1', content: 'then ' }),
      frame({ content: 'KX-2', tool_calls: [call] }),
      frame({}, 'tool_calls'),
      'data: [DONE]\n\n',
    ]
    const answer = await callWay(
      MESSAGES_TO_CHAT,
      redacting,
      await registerScript(gateway(), [{ sse: frames }]),
      {
        stream: true,
      },
    )
    const blocks = payloadsOf(answer.text)
      .filter(({ type }) => type === 'content_block_start')
      .map(({ content_block: block }) => (block as { type: string }).type)
    expect(blocks).toEqual(['thinking', 'text', 'tool_use'])
    expect(toldBy(answer.text)).toMatchObject({ reasoning: 'so KX-1', text: 'then KX-2' })
  })
})
