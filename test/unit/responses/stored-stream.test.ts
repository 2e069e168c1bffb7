import { describe, expect, it } from 'vitest'
import { storedStream } from '../../../src/responses/emitter/stored-stream.ts'
import type { StoredNumbers } from '../../../src/responses/model/events.ts'
import { checkResponseStream } from '../../harness/conformance.ts'
import type { StreamEvent } from '../../harness/conformance-rules.ts'
import { readResponseStream } from '../../harness/response-stream-text.ts'
import { COMPLETED, Emitting, say } from './emitting.ts'
import { RESPONSE_CLIENTS } from './official-clients.ts'

/** A response with every type of item, made as live ones are. */
function made(end: Parameters<Emitting['emitter']['end']>[0] = COMPLETED): Emitting {
  const emitting = new Emitting({ seal: () => 'sealed' })
  emitting.emitter.begin()
  emitting.feed(
    say.reasoning('Let me think.'),
    say.signature('proof'),
    say.text('Hello, '),
    say.text('wörld 🦉\nand more'),
    say.refusal('Not that.'),
    say.call(0, 'look'),
    say.args(0, '{"at":'),
    say.args(0, '"it"}'),
    say.call(1, 'custom_look'),
    say.args(1, 'a line'),
    say.call(2, 'mcp_look'),
    say.args(2, '{}'),
    say.stop('tool_calls'),
  )
  emitting.emitter.endTurn()
  emitting.emitter.end(end)
  emitting.emitter.terminate()
  return emitting
}

const ENDS: Array<[name: string, end: Parameters<typeof made>[0]]> = [
  ['completed', COMPLETED],
  ['incomplete', { ...COMPLETED, status: 'incomplete', reason: 'tool_use' }],
  ['failed', { ...COMPLETED, status: 'failed', error: { code: 'server_error', message: 'It broke.' } }],
]

const numbersOf = ({ emitter }: Emitting): StoredNumbers => ({
  items: emitter.itemNumbers,
  last: emitter.lastSequence,
})
const textOf = (emitting: Emitting, after = 0) =>
  new Response(storedStream(emitting.emitter.response, numbersOf(emitting), after)).text()

const isDelta = ({ event }: StreamEvent) => event.endsWith('.delta')
const placeOf = ({ event, data }: StreamEvent) => [
  data.sequence_number,
  event,
  data.output_index,
  data.content_index ?? data.summary_index,
  data.text ?? data.arguments ?? data.input ?? data.annotation,
]

describe.each(ENDS)('a %s response', (status, end) => {
  it('is its live stream without the deltas, with the same numbers', async () => {
    const emitting = made(end)
    const stored = readResponseStream(await textOf(emitting))
    expect(checkResponseStream(stored, { condensed: true })).toEqual([])
    expect(stored.map(placeOf)).toEqual(emitting.stream.filter((event) => !isDelta(event)).map(placeOf))
  })

  it('repeats nothing to a client that resumes, after any number', async () => {
    const emitting = made(end)
    const live = emitting.stream
    const all = readResponseStream(await textOf(emitting))
    for (let after = 0; after < live.length + 2; after++) {
      const stored = readResponseStream(await textOf(emitting, after))
      const following = all.filter(({ data }) => Number(data.sequence_number) > after)
      expect(stored).toEqual(following.length > 0 ? following : all.slice(-1))
      expect(
        checkResponseStream(stored, { after: Math.min(after, live.length - 1), condensed: true }),
      ).toEqual([])
    }
  })

  it.runIf(status !== 'failed')(
    'is put together by the official clients, resumed after any number',
    async () => {
      const emitting = made(end)
      const response = JSON.parse(JSON.stringify(emitting.emitter.response))
      const frames = emitting.text.split(/(?<=\n\n)/)
      for (const [name, accumulate] of RESPONSE_CLIENTS) {
        for (let after = 0; after < frames.length; after++) {
          const text = frames.slice(0, after).join('') + (await textOf(emitting, after))
          expect(await accumulate(text), `${name} after ${after}`).toEqual(response)
        }
      }
    },
  )

  it('ends with the response as it is stored', async () => {
    const emitting = made(end)
    const { response } = emitting.emitter
    const last = readResponseStream(await textOf(emitting)).at(-1)
    expect(last?.event).toBe(status === 'failed' ? 'response.failed' : 'response.completed')
    expect(last?.data.response).toEqual(response)
  })
})

describe('the events of the items', () => {
  it('open without content, close with it, and have no deltas', async () => {
    const emitting = made()
    const { response } = emitting.emitter
    const events = readResponseStream(await textOf(emitting))
    expect(events.filter(({ event }) => event.endsWith('.delta'))).toEqual([])
    const added = events.filter(({ event }) => event === 'response.output_item.added')
    const empty: Record<string, object> = {
      reasoning: { summary: [] },
      message: { content: [] },
      function_call: { arguments: '' },
      custom_tool_call: { input: '' },
      mcp_call: { arguments: '' },
    }
    expect(added.map(({ data }) => data.item)).toEqual(
      response.output.map(({ type, id }) =>
        expect.objectContaining({ id, type, status: 'in_progress', ...empty[type] }),
      ),
    )
    expect(JSON.stringify(added)).not.toContain('sealed')
    const done = events.filter(({ event }) => event === 'response.output_item.done')
    expect(done.map(({ data }) => data.item)).toEqual(response.output)
  })

  it('begin with a response that has nothing of its end', async () => {
    const [created] = readResponseStream(await textOf(made(ENDS[2]?.[1])))
    expect(created?.data.response).toMatchObject({
      status: 'in_progress',
      output: [],
      output_text: '',
      error: null,
      incomplete_details: null,
      completed_at: null,
      usage: null,
    })
  })

  it('are none for a response without output', async () => {
    const emitting = new Emitting()
    emitting.emitter.begin()
    emitting.emitter.endTurn()
    emitting.emitter.end(COMPLETED)
    emitting.emitter.terminate()
    const events = readResponseStream(await textOf(emitting, 1))
    expect(events.map(({ id, event }) => [id, event])).toEqual([
      ['2', 'response.in_progress'],
      ['3', 'response.completed'],
    ])
  })
})

it('keeps the first and the last event of an item that has lost parts to a policy', async () => {
  const emitting = made()
  const { response } = emitting.emitter
  const output = response.output.map((item) => (item.type === 'message' ? { ...item, content: [] } : item))
  const stream = storedStream({ ...response, output, output_text: '' }, numbersOf(emitting), 0)
  const events = readResponseStream(await new Response(stream).text())
  expect(checkResponseStream(events, { condensed: true })).toEqual([])
  expect(events.filter(({ data }) => data.output_index === 1).map(({ event }) => event)).toEqual([
    'response.output_item.added',
    'response.output_item.done',
  ])
})

it('makes a frame only when it is read', async () => {
  const emitting = made()
  const reader = storedStream(emitting.emitter.response, numbersOf(emitting), 0).getReader()
  const { value } = await reader.read()
  expect(new TextDecoder().decode(value)).toMatch(/^event: response\.created\nid: 1\ndata: \{[^\n]*\}\n\n$/)
  await reader.cancel()
})
