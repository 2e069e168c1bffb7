import { describe, expect, it } from 'vitest'
import type { ModelEvent } from '../../../src/gateway/translation/model-events.ts'
import type { OutputItem, ResponseObject } from '../../../src/wire/responses.ts'
import { checkResponseStream } from '../../harness/conformance.ts'
import { randomEvents } from '../gateway/translation/events/random-events.ts'
import { SeededRandom } from '../gateway/translation/events/seeded-random.ts'
import { PROPERTY_RUNS } from '../lib/property-runs.ts'
import { COMPLETED, Emitting, emitOne, say } from './emitting.ts'
import { RESPONSE_CLIENTS } from './official-clients.ts'

const SEEDS = Array.from({ length: PROPERTY_RUNS }, (_, index) => index + 1)
/** Official clients are slower. */
const FEW_SEEDS = SEEDS.slice(0, PROPERTY_RUNS / 5)

interface Made {
  emitting: Emitting
  turns: ModelEvent[][]
  calls: string[]
  response: ResponseObject
}

/** A response of one to three turns. @param cut whether it is broken off amid the last of them. */
function randomResponse(seed: number, cut = false): Made {
  const random = new SeededRandom(seed)
  const emitting = new Emitting({ seal: (secret) => (seed % 2 ? JSON.stringify(secret) : null) })
  const turns = Array.from({ length: 1 + random.below(3) }, () =>
    randomEvents(random, random.pick(['chat', 'messages'])),
  )
  const calls: string[] = []
  emitting.emitter.begin()
  for (const [index, turn] of turns.entries()) {
    const broken = cut && index === turns.length - 1
    if (broken) turn.splice(random.below(turn.length))
    emitting.feed(...turn)
    if (!broken) calls.push(...emitting.emitter.endTurn().calls.map((call) => call.arguments))
  }
  const error = { code: 'server_error', message: 'It broke.' }
  const end = random.pick([
    { status: 'incomplete' as const, reason: 'cancelled' },
    { status: 'failed' as const, error },
  ])
  const response = emitting.emitter.end({ ...COMPLETED, ...(cut && end) })
  emitting.emitter.terminate()
  return { emitting, turns, calls, response }
}

/** Text of the model of one kind, joined. */
const said = (turns: ModelEvent[][], type: 'text' | 'refusal' | 'reasoning') =>
  turns.flatMap((turn) => turn.map((event) => (event.type === type ? event.text : ''))).join('')

const partsOf = (output: OutputItem[]) =>
  output.flatMap((item) => (item.type === 'message' ? item.content : []))
const refusalOf = (output: OutputItem[]) =>
  partsOf(output).map((part) => (part.type === 'refusal' ? part.refusal : ''))
const summaryOf = (output: OutputItem[]) =>
  output.flatMap((item) => (item.type === 'reasoning' ? item.summary.map(({ text }) => text) : []))

/** Arguments of each call, by turn and number. */
function argumentsOf(turns: ModelEvent[][]): string[] {
  return turns.flatMap((turn) => {
    const calls = new Map<number, string>()
    for (const event of turn) {
      if (event.type === 'tool_call') calls.set(event.call, '')
      if (event.type === 'tool_arguments') calls.set(event.call, `${calls.get(event.call)}${event.json}`)
    }
    return [...calls.values()].map((json) => json || '{}')
  })
}

/** The explanation of a refusal is emitted as a refusal if the model sent none. */
const explained = (turns: ModelEvent[][]) =>
  turns.map((turn) => turn.map((event) => (event.type === 'stop' ? (event.explanation ?? '') : '')).join(''))

describe('random responses', () => {
  it('follow the rules of the surface', () => {
    for (const seed of SEEDS) expect(randomResponse(seed).emitting.violations, `seed ${seed}`).toEqual([])
  })

  it('follow them when they are broken off anywhere', () => {
    for (const seed of SEEDS) {
      const { emitting, response } = randomResponse(seed, true)
      expect(emitting.violations, `seed ${seed}`).toEqual([])
      expect(response.output.filter(({ status }) => status === 'in_progress')).toEqual([])
    }
  })

  it('follow them from any number on', () => {
    for (const seed of SEEDS.slice(0, PROPERTY_RUNS / 3)) {
      const { stream } = randomResponse(seed, seed % 3 === 0).emitting
      for (let after = 1; after < stream.length; after++) {
        const violations = checkResponseStream(stream.slice(after), { after })
        expect(violations, `seed ${seed} after ${after}`).toEqual([])
      }
    }
  })

  it('say what the model said', () => {
    for (const seed of SEEDS) {
      const { turns, calls, response } = randomResponse(seed)
      const { output } = response
      const told = output.flatMap((item) => (item.type === 'function_call' ? [item.arguments] : []))
      expect(response.output_text, `seed ${seed}`).toBe(said(turns, 'text'))
      expect(summaryOf(output).join('')).toBe(said(turns, 'reasoning'))
      expect(refusalOf(output).join('')).toBe(said(turns, 'refusal') + explained(turns).join(''))
      expect(told).toEqual(argumentsOf(turns))
      expect(calls).toEqual(told)
    }
  })

  it('keep all of the reasoning for storing', () => {
    for (const seed of SEEDS) {
      const { emitting, turns } = randomResponse(seed)
      const blocks = [...emitting.emitter.reasoningSecrets.values()].flat()
      const events = turns.flat()
      const signatures = events.filter(({ type }) => type === 'reasoning_signature')
      const redacted = events.filter(({ type }) => type === 'redacted_reasoning')
      expect(blocks.map(({ text }) => text).join(''), `seed ${seed}`).toBe(said(turns, 'reasoning'))
      expect(blocks.filter((block) => 'signature' in block)).toHaveLength(signatures.length)
      expect(blocks.filter((block) => 'redacted' in block)).toHaveLength(redacted.length)
    }
  })
})

describe.each(RESPONSE_CLIENTS)('the stream helper of %s', (_name, accumulate) => {
  it('ends with the response that is meant', async () => {
    for (const seed of FEW_SEEDS) {
      const { emitting, response } = randomResponse(seed)
      expect(await accumulate(emitting.text), `seed ${seed}`).toEqual(JSON.parse(JSON.stringify(response)))
    }
  })

  it('puts the same items together from their ends alone', async () => {
    for (const seed of FEW_SEEDS) {
      const { emitting, response } = randomResponse(seed)
      const made = await accumulate(without(emitting.text, ['response.completed']))
      expect(made.output, `seed ${seed}`).toEqual(JSON.parse(JSON.stringify(response.output)))
    }
  })

  it('puts the same content together from the deltas alone', async () => {
    for (const seed of FEW_SEEDS) {
      const { emitting, response } = randomResponse(seed)
      const made = await accumulate(without(emitting.text, ['response.completed', '.done']))
      expect(made.output_text, `seed ${seed}`).toBe(response.output_text)
      const meant = response.output.map((item) => ({
        ...item,
        status: 'in_progress',
        encrypted_content: undefined,
      }))
      expect(made.output).toEqual(JSON.parse(JSON.stringify(meant)))
    }
  })

  it('throws the error of a stream that failed', async () => {
    const error = { code: 'upstream_error', message: 'It broke.' }
    const { text } = emitOne([say.text('a')], { ...COMPLETED, status: 'failed', error })
    await expect(accumulate(text)).rejects.toMatchObject({
      code: 'stream_error',
      error: { message: 'It broke.' },
    })
  })
})

/** The frames of a stream but those of events whose names end so. */
const without = (text: string, endings: string[]) =>
  text
    .split('\n\n')
    .filter((frame) => !endings.some((ending) => frame.split('\n')[1]?.endsWith(ending)))
    .join('\n\n')
