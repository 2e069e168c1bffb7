import { EventStreamCodec } from '@smithy/eventstream-codec'
import { beforeAll, describe, expect, it } from 'vitest'
import { Inspection, passAllEngine } from '../../../../src/dlp/inspection.ts'
import { converse } from '../../../../src/gateway/protocols/converse.ts'
import { EventStreamReader } from '../../../../src/gateway/providers/bedrock/event-stream.ts'
import { relayToHttp, streamOf } from '../http-relay.ts'
import { provideIdentityStream } from '../identity-stream.ts'
import {
  type CallOptions,
  converterOf,
  PROTOCOLS,
  resultOf,
  translatedCall,
} from '../translated-call-harness.ts'
import { assembled } from './fidelity/assemble.ts'
import {
  begin,
  CONVERSE_STREAMS,
  type ConverseEvent,
  end,
  text,
  USAGE,
  wholeOf,
} from './fixtures/converse-streams.ts'
import { bedrockModel } from './requests/converse.ts'
import { chunkings, meaning } from './split-streams.ts'

beforeAll(provideIdentityStream)

const CALLERS = [
  ['chat_completions', 'chat'],
  ['messages', 'messages'],
  ['completions', 'completions'],
] as const
type Caller = (typeof CALLERS)[number][0]

const NEVER_MS = 60_000
const TIMES = {
  commit: NEVER_MS,
  heartbeat: NEVER_MS,
  firstEvent: NEVER_MS,
  betweenEvents: NEVER_MS,
  gather: 0,
}
const optionsOf = (caller: Caller): CallOptions => ({ caller, upstream: 'converse', target: bedrockModel() })

const codec = new EventStreamCodec(
  (bytes) => new TextDecoder().decode(bytes),
  (value) => new TextEncoder().encode(value),
)

/** A stream in the vendor's framing. An exception has its name with `Exception` at its end. */
const binary = (events: readonly ConverseEvent[]): Uint8Array =>
  new Uint8Array(
    Buffer.concat(
      events.map(([name, payload]) => {
        const kind = name.endsWith('Exception') ? 'exception' : 'event'
        return codec.encode({
          headers: {
            [`:${kind}-type`]: { type: 'string', value: name },
            ':message-type': { type: 'string', value: kind },
          },
          body: new TextEncoder().encode(JSON.stringify(payload)),
        })
      }),
    ),
  )

/** The caller's stream for the pieces of a stream of Bedrock, as text. */
async function streamed(caller: Caller, pieces: readonly Uint8Array[]): Promise<string> {
  const inspection = new Inspection(passAllEngine)
  const context = { inspection, modelId: null, usageRequested: true, translatedTo: caller }
  const { body, start } = relayToHttp({
    upstream: streamOf(pieces),
    frames: new EventStreamReader(),
    reader: converse.streamReader(context),
    inspection,
    dialect: PROTOCOLS[caller].dialect,
    converter: converterOf(translatedCall(optionsOf(caller)), caller),
    times: TIMES,
    clock: () => 0,
  })
  const relay = await start
  if (!relay.started) throw new Error(`the stream never began: ${JSON.stringify(relay.end)}`)
  const sent = await new Response(body).text()
  await relay.ended
  return sent
}

/** Converse gives no ids, so that those of answers are made anew. */
const withoutIds = (value: string): string => value.replace(/"id":"(chatcmpl-|cmpl-|msg_)[^"]*"/g, '"id":""')

describe.each(CALLERS)('%s on Converse', (caller, wire) => {
  it.each(Object.entries(CONVERSE_STREAMS))(
    'sends the same for %s wherever its bytes are split, and as a whole answer',
    async (_name, stream) => {
      const source = binary(stream)
      const atOnce = await streamed(caller, [source])
      for (const pieces of chunkings(source)) {
        expect(withoutIds(await streamed(caller, pieces))).toBe(withoutIds(atOnce))
      }
      const answer = resultOf(optionsOf(caller), wholeOf(stream))
      const both = [assembled(wire, withoutIds(atOnce)), { ...answer, ended: true }].map((each) =>
        meaning(JSON.parse(withoutIds(JSON.stringify(each)))),
      )
      expect(both[0]).toEqual(both[1])
    },
  )

  it.each<[string, ConverseEvent[], string]>([
    ['an exception', [['modelStreamErrorException', { message: 'Broken.' }]], 'Broken.'],
    ['a malformed call', end('malformed_tool_use'), "The model's answer ended with malformed_tool_use."],
    ['a cut', [], 'The upstream ended its answer early.'],
    ['usage alone', [['metadata', { usage: USAGE }]], 'The upstream ended its answer early.'],
  ])('marks a stream with %s as failed', async (_name, failure, message) => {
    const sent = await streamed(caller, [binary([begin, text(0, 'Hel'), ...failure])])
    expect(assembled(wire, sent)).toMatchObject({ error: { message } })
    expect(sent).not.toContain('"finish_reason":"stop"')
  })
})

describe('a whole answer of Converse', () => {
  const answered = (answer: object) => {
    const call = translatedCall(optionsOf('messages'))
    return call.answer(new TextEncoder().encode(JSON.stringify(answer)))
  }

  it('that is malformed, or none, is an error', () => {
    const whole = wholeOf([begin, ...end('malformed_model_output')])
    expect(answered(whole)).toEqual({ error: "The model's answer ended with malformed_model_output." })
    expect(answered({})).toEqual({ error: 'The upstream sent JSON that is no answer.' })
  })

  it('has redacted reasoning for responses alone, which keep its origin', () => {
    const content = [{ reasoningContent: { redactedContent: 'AAAA' } }, { text: 'Hi' }]
    const body = new TextEncoder().encode(
      JSON.stringify({ output: { message: { content } }, stopReason: 'end_turn' }),
    )
    const typesFor = (caller: 'messages' | 'responses') => {
      const events = translatedCall({ ...optionsOf('messages'), caller }).answer(body)
      return Array.isArray(events) ? events.map(({ type }) => type) : []
    }
    expect(typesFor('responses')).toEqual(['start', 'redacted_reasoning', 'text', 'stop'])
    expect(typesFor('messages')).toEqual(['start', 'text', 'stop'])
  })

  it('without content is an empty answer', () => {
    const events = answered(wholeOf([begin, ...end()]))
    expect(events).toContainEqual(expect.objectContaining({ type: 'stop', reason: 'end' }))
  })
})
