import { describe, expect, it } from 'vitest'
import { Inspection, passAllEngine, type TextEngine } from '../../../src/dlp/inspection.ts'
import { chatCompletions, completions } from '../../../src/gateway/protocols/chat-completions.ts'
import { countTokens, messages } from '../../../src/gateway/protocols/messages.ts'
import type { Protocol } from '../../../src/gateway/protocols/protocol.ts'
import { requestEdits } from '../../../src/gateway/protocols/request-edits.ts'
import { inspectRequest } from '../../../src/gateway/protocols/request-inspection.ts'
import { applyEdits, joinBytes } from '../../../src/lib/byte-edits.ts'
import { drained } from '../../../src/lib/slices.ts'
import { randomJson, randomSpelling } from '../lib/random-json.ts'
import { SeededRandom } from '../lib/seeded-random.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const MESSAGES = '[{"role":"user","content":"hi"}]'

/** The body for an upstream, with the edits of an engine. */
function sent(
  protocol: Protocol,
  body: string,
  upstreamModel = 'm',
  engine: TextEngine = passAllEngine,
  capabilities: string[] = [],
) {
  const source = encoder.encode(body)
  const outline = drained(protocol.outline(source))
  const inspection = new Inspection(engine)
  const { edits: textEdits } = drained(inspectRequest(outline, protocol, inspection))
  const target = { upstreamModel, capabilities }
  const edited = applyEdits(source, [...drained(requestEdits(outline, protocol, target)).body, ...textEdits])
  expect(edited.released + edited.withheld).toBe(source.length)
  expect(inspection.counts.inspected + inspection.counts.uninspected).toBe(source.length)
  const text = decoder.decode(joinBytes(edited.pieces))
  expect(encoder.encode(text).length).toBe(edited.length)
  return text
}

describe('removed members', () => {
  const base = `"model":"m","messages":${MESSAGES}`
  it.each([
    ['first', `{"metadata":{"a":1},${base}}`, `{${base}}`],
    ['last', `{${base},"metadata":{"a":1}}`, `{${base}}`],
    ['middle', `{"model":"m","metadata":1,"messages":${MESSAGES}}`, `{${base}}`],
    [
      'all three at the start',
      `{"metadata":1,"litellm_metadata":2,"proxy_server_request":3,${base}}`,
      `{${base}}`,
    ],
    [
      'all three at the end',
      `{${base},"metadata":1,"litellm_metadata":2,"proxy_server_request":3}`,
      `{${base}}`,
    ],
    [
      'two in the middle',
      `{"model":"m","metadata":1,"litellm_metadata":2,"messages":${MESSAGES}}`,
      `{${base}}`,
    ],
    ['both ends', `{"metadata":1,${base},"litellm_metadata":[]}`, `{${base}}`],
    ['with space around', `{ "metadata" : 1 , ${base} }`, `{ ${base} }`],
    ['at the end with space', `{ ${base} ,\n "metadata" : 1 }`, `{ ${base} }`],
    ['with an escaped name', `{"\\u006d\\u0065tadata":1,${base}}`, `{${base}}`],
    ['null', `{"metadata":null,${base}}`, `{${base}}`],
  ])('%s', (_name, body, expected) => {
    expect(sent(chatCompletions, body)).toBe(expected)
  })

  it('are cut from an object that holds nothing else', () => {
    const source = encoder.encode('{ "metadata" : 1 , "litellm_metadata":{} }')
    const member = (name: string, memberStart: number, end: number) =>
      ({ name, kind: 'number', memberStart, start: end - 1, end }) as const
    const outline = { ...drained(chatCompletions.outline(encoder.encode(`{${base}}`))), body: source }
    outline.members = [member('metadata', 2, 16), member('litellm_metadata', 19, 40)]
    const edited = applyEdits(
      source,
      drained(requestEdits(outline, chatCompletions, { upstreamModel: 'm', capabilities: [] })).body,
    )
    expect(decoder.decode(joinBytes(edited.pieces))).toBe('{  }')
  })

  it('only at the top, and only those of the protocol', () => {
    const body = `{"model":"m","messages":[{"role":"user","content":"x","metadata":1}],"max_tokens":1,"extra":{"metadata":1,"cache_control":1},"tools":[{"name":"t","cache_control":{"type":"ephemeral"}}]`
    expect(sent(messages, `${body},"cache_control":{"type":"ephemeral"}}`)).toBe(`${body}}`)
    const counted = body.replace('"max_tokens":1,', '')
    const asked = `${body},"cache_control":{"type":"ephemeral"},"metadata":{},"stream":false}`
    expect(sent(countTokens, asked)).toBe(`${counted}}`)
    expect(sent(chatCompletions, `${body},"cache_control":{}}`)).toBe(`${body},"cache_control":{}}`)
  })

  it('not under a name that only looks alike', () => {
    const body = `{${base},"metadata ":2,"\ufeffmetadata":3,"meta\\u0000data":4}`
    expect(sent(chatCompletions, body)).toBe(body)
  })
})

describe('the model id', () => {
  it('is written where the upstream names it otherwise', () => {
    expect(sent(chatCompletions, `{"messages":${MESSAGES}, "model" : "m" }`, 'other "model" é')).toBe(
      `{"messages":${MESSAGES}, "model" : "other \\"model\\" é" }`,
    )
  })

  it('is left as it was spelled where both agree', () => {
    const body = `{"model":"\\u006d","messages":${MESSAGES}}`
    expect(sent(chatCompletions, body, 'm')).toBe(body)
  })
})

describe('stream_options', () => {
  const base = `"model":"m","messages":${MESSAGES},"stream":true`
  it.each([
    ['absent', `{${base}}`, `{"stream_options":{"include_usage":true},${base}}`],
    ['absent, with a space first', `{ ${base}}`, `{ "stream_options":{"include_usage":true},${base}}`],
    [
      'absent, a removal first',
      `{"metadata":1,${base}}`,
      `{"stream_options":{"include_usage":true},${base}}`,
    ],
    ['null', `{"stream_options": null ,${base}}`, `{"stream_options": {"include_usage":true} ,${base}}`],
    ['empty', `{${base},"stream_options":{ }}`, `{${base},"stream_options":{"include_usage":true }}`],
    [
      'without include_usage',
      `{${base},"stream_options":{ "x":12345678901234567890, "y":[1.0] }}`,
      `{${base},"stream_options":{"include_usage":true, "x":12345678901234567890, "y":[1.0] }}`,
    ],
    [
      'false',
      `{${base},"stream_options":{"a":{"include_usage":false},"include_usage" : false}}`,
      `{${base},"stream_options":{"a":{"include_usage":false},"include_usage" : true}}`,
    ],
    [
      'null inside, escaped',
      `{${base},"stream_options":{"\\u0069nclude_usage":null}}`,
      `{${base},"stream_options":{"\\u0069nclude_usage":true}}`,
    ],
  ])('are completed when they are %s', (_name, body, expected) => {
    expect(sent(chatCompletions, body)).toBe(expected)
  })

  it.each([
    ['usage was asked for', `{${base},"stream_options":{"include_usage":true}}`],
    ['there is no stream', `{"model":"m","messages":${MESSAGES}}`],
    ['stream is false', `{"model":"m","messages":${MESSAGES},"stream":false,"stream_options":null}`],
  ])('are left when %s', (_name, body) => {
    expect(sent(chatCompletions, body)).toBe(body)
  })

  it('are for chat completions and completions, not for messages', () => {
    expect(sent(completions, '{"model":"m","prompt":"p","stream":true}')).toBe(
      '{"stream_options":{"include_usage":true},"model":"m","prompt":"p","stream":true}',
    )
    const body = `{"model":"m","messages":${MESSAGES},"stream":true,"max_tokens":1}`
    expect(sent(messages, body)).toBe(body)
  })

  it('are completed in place even when they are large', () => {
    const large = `{${base},"stream_options":{"include_usage":false,"note":"${'x'.repeat(100_000)}"}}`
    expect(sent(chatCompletions, large)).toBe(large.replace('"include_usage":false', '"include_usage":true'))
    const asked = large.replace('"include_usage":false', '"include_usage":true')
    expect(drained(chatCompletions.outline(encoder.encode(asked))).usageRequested).toBe(true)
  })
})

/** A random request: its text, the text of each member, and the object an upstream should read. */
function randomRequest(random: SeededRandom, protocol: Protocol) {
  const isMessages = protocol === messages
  const values = new Map<string, string>([
    ['model', randomSpelling(random, 'my model', 0.1)],
    ['messages', `[{"role":"user","content":${randomSpelling(random, 'text "quoted" é')}}]`],
    ['max_tokens', '5'],
  ])
  const optional: Array<[string, () => string]> = [
    ['stream', () => random.pick(['true', 'true', 'false', 'null'])],
    ['metadata', () => randomJson(random, 2)],
    ['litellm_metadata', () => randomJson(random, 2)],
    ['proxy_server_request', () => randomJson(random, 2)],
    ['cache_control', () => randomJson(random, 2)],
    ['extra', () => randomJson(random, 3)],
    ['__proto__', () => '{"x":1}'],
    ['constructor', () => '1'],
    ['\ufeffmodel', () => '"other"'],
    [
      'stream_options',
      () =>
        random.pick([
          'null',
          '{}',
          '{ }',
          '{"include_usage":true}',
          '{"include_usage": false, "a":1}',
          '{"a":{"include_usage":1}}',
        ]),
    ],
  ]
  for (const [name, value] of optional) if (random.chance(0.5)) values.set(name, value())
  if (isMessages) values.delete('stream_options')
  const order = [...values.keys()].sort(() => random.fraction() - 0.5)
  const space = () => random.pick(['', '', ' ', '\n\t'])
  const members = order.map((name) => ({
    name,
    text: `${randomSpelling(random, name, 0.1)}${space()}:${space()}${values.get(name)}`,
  }))
  const inside = members.map(({ text }) => `${space()}${text}${space()}`).join(',')
  return { body: `${space()}{${inside}}${space()}`, members }
}

function expectedObject(body: string, protocol: Protocol, upstreamModel: string) {
  const entries = Object.entries(JSON.parse(body) as Record<string, unknown>)
  const object = new Map(entries.filter(([name]) => !protocol.removals.includes(name)))
  object.set('model', upstreamModel)
  if (protocol.usageIsOptional && object.get('stream') === true) {
    object.set('stream_options', { ...(object.get('stream_options') as object | null), include_usage: true })
  }
  return object
}

describe('random requests', () => {
  it.each([
    ['chat completions', chatCompletions],
    ['messages', messages],
  ])(
    'of %s are edited to exactly the expected object, and every other byte stays in order',
    (_name, protocol) => {
      for (let seed = 1; seed <= 2000; seed++) {
        const random = new SeededRandom(seed)
        const { body, members } = randomRequest(random, protocol)
        const upstreamModel = random.pick(['my model', 'theirs/α'])
        const text = sent(protocol, body, upstreamModel)
        const where = `seed ${seed}: ${body}`
        expect(new Map(Object.entries(JSON.parse(text))), where).toEqual(
          expectedObject(body, protocol, upstreamModel),
        )
        let at = 0
        for (const { name, text: member } of members) {
          if (protocol.removals.includes(name)) continue
          if (name === 'stream_options' || name === 'model') continue
          at = text.indexOf(member, at)
          expect(at, where).toBeGreaterThanOrEqual(0)
          at += member.length
        }
        const again = sent(protocol, text, upstreamModel)
        expect(again, where).toBe(text)
      }
    },
  )

  it('take edits of their texts beside the others, whatever stands where', () => {
    const masks: TextEngine = {
      policyVersion: 'test',
      inspect: (_field, contents) => (contents.length === 0 ? null : encoder.encode('*')),
      findings: () => [],
    }
    for (let seed = 1; seed <= 1000; seed++) {
      const random = new SeededRandom(seed)
      const { body } = randomRequest(random, chatCompletions)
      const parsed = JSON.parse(sent(chatCompletions, body, 'theirs', masks)) as Record<string, unknown>
      expect(parsed.model).toBe('theirs')
      expect(parsed.messages).toEqual([{ role: 'user', content: '*' }])
    }
    const options = '{"include_usage":false,"note":"secret"}'
    const body = `{"model":"m","messages":${MESSAGES},"stream":true,"stream_options":${options}}`
    const parsed = JSON.parse(sent(chatCompletions, body, 'm', masks))
    expect(parsed.stream_options).toEqual({ include_usage: true, note: '*' })
  })
})

describe('inspectRequest', () => {
  const seen = (protocol: Protocol, body: string): string[] => {
    const texts: string[] = []
    sent(protocol, body, 'm', {
      policyVersion: 'test',
      inspect: (field, contents) => {
        expect(field.partial).toBe(false)
        texts.push(`${field.path.join('.')}=${decoder.decode(contents)}`)
        return null
      },
      findings: () => [],
    })
    return texts
  }

  it('shows texts in source form, and nothing of members that do not leave', () => {
    const body = `{"metadata":{"a":"kept back"},"model":"m","messages":[{"role":"user","content":"line\\nnext \\u00e9"}],"user":"u-1"}`
    expect(seen(chatCompletions, body)).toEqual(['messages.0.content=line\\nnext \\u00e9', 'user=u-1'])
  })

  it('counts the bytes of texts as inspected and all others as uninspected', () => {
    const body = encoder.encode(`{"model":"m","messages":[{"role":"user","content":"12345"}]}`)
    const inspection = new Inspection(passAllEngine)
    drained(inspectRequest(drained(chatCompletions.outline(body)), chatCompletions, inspection))
    expect(inspection.counts).toEqual({
      inspected: 5,
      uninspected: body.length - 5,
      released: 0,
      withheld: 0,
    })
  })

  it.each([chatCompletions, messages])('counts without an engine what an engine is shown', (protocol) => {
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'iVBOR'.repeat(40)}` } }
    const content = [{ type: 'text', text: 'a \\u00e9 b', cache_control: { type: 'ephemeral' } }, image]
    const parameters = { type: 'object', properties: { role: { type: 'string', format: 'which role' } } }
    const tools = [{ type: 'function', function: { name: 'look', description: 'looks', parameters } }]
    const members = { metadata: { note: 'stays' }, user: 'u-1', tools, messages: [{ role: 'user', content }] }
    const body = encoder.encode(JSON.stringify({ model: 'm', max_tokens: 9, ...members }))
    const shown = new Inspection({ policyVersion: 'test', inspect: () => null, findings: () => [] })
    const counted = new Inspection(passAllEngine)
    for (const inspection of [shown, counted])
      drained(inspectRequest(drained(protocol.outline(body)), protocol, inspection))
    expect(counted.counts).toEqual(shown.counts)
    expect(counted.counts.inspected).toBeGreaterThan(0)
  })
})

describe('a JSON mode', () => {
  const body = `{"model":"m","messages":${MESSAGES},"response_format":{"type":"json_object"}}`
  const schema = body.replace('json_object', 'json_schema')
  it.each([
    ['of a model of which nothing is known passes', body, [], body],
    ['that the model has passes', body, ['vision', 'json_object'], body],
    ['that the model has not is left out', body, ['vision'], `{"model":"m","messages":${MESSAGES}}`],
    ['with a schema passes whole', schema, ['vision'], schema],
  ])('%s', (_name, asked, capabilities, expected) => {
    expect(sent(chatCompletions, asked, 'm', passAllEngine, capabilities)).toBe(expected)
  })
})
