import { describe, expect, it } from 'vitest'
import { estimateInputTokens } from '../../../src/gateway/token-count/input-tokens.ts'
import { tokenEstimate } from '../../../src/responses/context/context-tokens.ts'
import { StepCounter } from '../../harness/counted-steps.ts'

// Counting is free, so that its cost has to be that of reading the body, whatever it is made of.

const BYTES = 40_000
const TIMES = 4
const STEPS_PER_BYTE = 12
/** Steps of a slice of 64 KiB, in a body of several slices. */
const MOST_SLICE_STEPS = 20 * 64 * 1024

const repeated = (text: string, bytes: number) => text.repeat(Math.ceil(bytes / text.length))
const said = (content: unknown) => ({ messages: [{ role: 'user', content }] })
const source = (type: string, data: string) => ({ type, source: { type: 'base64', media_type: 'x', data } })

const BODIES: Record<string, (bytes: number) => unknown> = {
  ...Object.fromEntries(
    Object.entries({
      spaces: ' ',
      quotes: '"',
      backslashes: '\\',
      'line ends': '\n',
      'one letter': 'a',
      words: 'hello ',
      digits: '1',
      signs: '!?',
      ideographs: '世',
      'lone surrogates': '\ud800',
    }).map(([name, text]) => [name, (bytes: number) => said(repeated(text, bytes))]),
  ),
  blocks: (bytes) => said(Array.from({ length: bytes / 28 }, () => ({ type: 'text', text: 'x' }))),
  messages: (bytes) => ({
    messages: Array.from({ length: bytes / 30 }, () => ({ role: 'user', content: 'x' })),
  }),
  tools: (bytes) => ({
    ...said('x'),
    tools: Array.from({ length: bytes / 40 }, () => ({ name: 'x', input_schema: { type: 'object' } })),
  }),
  'one tool': (bytes) => ({ ...said('x'), tools: [{ name: 'x', description: repeated('"', bytes) }] }),
  'nested results': (bytes) => {
    let inner: unknown = repeated(' ', bytes)
    for (let depth = 0; depth < 40; depth++)
      inner = [{ type: 'tool_result', tool_use_id: 'x', content: inner }]
    return said(inner)
  },
  'nested input': (bytes) => {
    let inner: unknown = repeated('"', bytes)
    for (let depth = 0; depth < 100; depth++) inner = { input: inner }
    return said([{ type: 'tool_use', id: 'x', name: 'x', input: inner }])
  },
  'a file': (bytes) => said([source('document', `JVBERi0x${repeated('A', bytes)}`)]),
  'a file of marks': (bytes) =>
    said([source('document', Buffer.from(`%PDF-1 ${repeated('/Linearized ', bytes)}`).toString('base64'))]),
  'an image without a frame': (bytes) => said([source('image', `/9j/${repeated('/', bytes)}`)]),
}

const bodyOf = (make: (bytes: number) => unknown, bytes: number) =>
  new TextEncoder().encode(JSON.stringify(make(bytes)))

describe('the steps of an estimate', () => {
  it.each(Object.entries(BODIES))('are a few for each byte of %s', (_name, make) => {
    using counter = new StepCounter()
    const stepsOf = (body: Uint8Array) => {
      const estimate = estimateInputTokens(body, 'gpt-4o')
      return counter.stepsOf(() => {
        while (!estimate.next().done) {}
      })
    }
    // A cost that grew faster than the body would pass the bound at four times the size.
    for (const bytes of [BYTES, TIMES * BYTES]) {
      const body = bodyOf(make, bytes)
      stepsOf(body)
      expect(stepsOf(body)).toBeLessThan(STEPS_PER_BYTE * body.length + 10_000)
    }
  })

  it.each(['spaces', 'one tool', 'blocks', 'a file of marks'])('are taken in slices, of %s', (name) => {
    using counter = new StepCounter()
    const estimate = estimateInputTokens(
      bodyOf(BODIES[name] as (bytes: number) => unknown, 400_000),
      'gpt-4o',
    )
    let slices = 0
    const most = counter.mostStepsOf(() => {
      slices++
      return estimate.next().done === true
    })
    expect(slices).toBeGreaterThan(5)
    expect(most).toBeLessThan(MOST_SLICE_STEPS)
  })

  it.each(Object.entries(BODIES).slice(0, 10))(
    'are as few for the context of a response: %s',
    async (_name, make) => {
      using counter = new StepCounter()
      const estimate = await tokenEstimate('gpt-4o', [])
      const body = bodyOf(make, BYTES)
      estimate(body)
      expect(counter.stepsOf(() => void estimate(body))).toBeLessThan(STEPS_PER_BYTE * body.length + 10_000)
    },
  )
})
