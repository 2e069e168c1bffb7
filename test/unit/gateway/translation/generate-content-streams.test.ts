import { beforeAll, describe, expect, it } from 'vitest'
import { Inspection, passAllEngine } from '../../../../src/dlp/inspection.ts'
import { generateContent } from '../../../../src/gateway/protocols/generate-content.ts'
import { type Json, listOf, objectOf } from '../../../../src/gateway/protocols/json.ts'
import { relayToHttp, streamOf } from '../http-relay.ts'
import { provideIdentityStream } from '../identity-stream.ts'
import { chunks } from '../stream-reading.ts'
import {
  type CallOptions,
  converterOf,
  encoder,
  PROTOCOLS,
  resultOf,
  translatedCall,
} from '../translated-call-harness.ts'
import { assembled } from './fidelity/assemble.ts'
import { chunk, GENERATE_CONTENT_STREAMS, last, text } from './fixtures/generate-content-streams.ts'
import { gemini } from './requests/generate-content.ts'
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
const optionsOf = (caller: Caller): CallOptions => ({
  caller,
  upstream: 'generate_content',
  target: gemini(),
})

/** The caller's stream for these chunks of Gemini's, as text. */
async function streamed(caller: Caller, pieces: readonly Uint8Array[]): Promise<string> {
  const inspection = new Inspection(passAllEngine)
  const context = { inspection, modelId: null, usageRequested: true, translatedTo: caller }
  const { body, start } = relayToHttp({
    upstream: streamOf(pieces),
    reader: generateContent.streamReader(context),
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

/** The whole answer that a stream stands for. */
function wholeOf(stream: readonly Json[]): Json {
  const parts = stream.flatMap(({ candidates }) => listOf(objectOf(listOf(candidates)[0]?.content).parts))
  const ending = stream.at(-1) ?? {}
  const [candidate] = listOf(ending.candidates)
  return candidate ? { ...ending, candidates: [{ ...candidate, content: { parts, role: 'model' } }] } : ending
}

describe.each(CALLERS)('%s on Gemini', (caller, wire) => {
  it.each(Object.entries(GENERATE_CONTENT_STREAMS))(
    'sends the same for %s wherever its bytes are split, and as a whole answer',
    async (_name, stream) => {
      const source = encoder.encode(chunks(...stream))
      const atOnce = await streamed(caller, [source])
      for (const pieces of chunkings(source)) expect(await streamed(caller, pieces)).toBe(atOnce)
      const carriageReturns = encoder.encode(chunks(...stream).replaceAll('\n', '\r\n'))
      expect(await streamed(caller, [carriageReturns])).toBe(atOnce)
      const answer = resultOf(optionsOf(caller), wholeOf(stream))
      expect(meaning(assembled(wire, atOnce))).toEqual(meaning({ ...answer, ended: true }))
    },
  )

  it.each([
    ['an error in it', { error: { code: 500, message: 'Internal.', status: 'INTERNAL' } }, 'Internal.'],
    [
      'a malformed call',
      last('MALFORMED_FUNCTION_CALL'),
      "The model's answer ended with MALFORMED_FUNCTION_CALL.",
    ],
  ])('marks a stream with %s as failed', async (_name, failure, message) => {
    const sent = await streamed(caller, [encoder.encode(chunks(chunk([text('Hel')]), failure))])
    expect(assembled(wire, sent)).toMatchObject({ error: { message } })
    expect(sent).not.toContain('"finish_reason":"stop"')
  })

  it('marks a stream that was cut off as failed', async () => {
    const sent = await streamed(caller, [encoder.encode(chunks(chunk([text('Hel')])))])
    expect(assembled(wire, sent)).toMatchObject({
      error: { message: 'The upstream ended its answer early.' },
    })
  })
})
