import { describe, expect, it } from 'vitest'
import { storedStream } from '../../../src/responses/emitter/stored-stream.ts'
import type { ResponseObject } from '../../../src/wire/responses.ts'
import { checkResponseStream } from '../../harness/conformance.ts'
import { readResponseStream } from '../../harness/response-stream-text.ts'
import { COMPLETED, Emitting, say } from './emitting.ts'
import { RESPONSE_CLIENTS } from './official-clients.ts'

/** A response with every type of item, made as live ones are. */
function madeResponse(end: Parameters<Emitting['emitter']['end']>[0] = COMPLETED): ResponseObject {
  const emitting = new Emitting({ seal: () => 'sealed' }).feed(
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
  return emitting.emitter.end(end)
}

const ENDS: Array<[name: string, end: Parameters<typeof madeResponse>[0]]> = [
  ['completed', COMPLETED],
  ['incomplete', { ...COMPLETED, status: 'incomplete', reason: 'tool_use' }],
  ['failed', { ...COMPLETED, status: 'failed', error: { code: 'server_error', message: 'It broke.' } }],
]

const textOf = (response: ResponseObject, after = 0) => new Response(storedStream(response, after)).text()

describe.each(ENDS)('a %s response', (status, end) => {
  it.each([0, 1, 41, 2 ** 52])('is a valid stream after %d', async (after) => {
    const events = readResponseStream(await textOf(madeResponse(end), after))
    expect(checkResponseStream(events, { after, condensed: true })).toEqual([])
    expect(events.map(({ event }) => event).slice(0, 2)).toEqual(['response.created', 'response.in_progress'])
  })

  it('ends with the response as it is stored', async () => {
    const response = madeResponse(end)
    const last = readResponseStream(await textOf(response)).at(-1)
    expect(last?.event).toBe(status === 'failed' ? 'response.failed' : 'response.completed')
    expect(last?.data.response).toEqual(response)
  })

  it.runIf(status !== 'failed')('is the same to the official clients', async () => {
    const response = madeResponse(end)
    for (const [name, accumulate] of RESPONSE_CLIENTS) {
      expect(await accumulate(await textOf(response)), name).toEqual(JSON.parse(JSON.stringify(response)))
    }
  })
})

describe('the events of the items', () => {
  it('open without content, close with it, and have no deltas', async () => {
    const response = madeResponse()
    const events = readResponseStream(await textOf(response))
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
    const [created] = readResponseStream(await textOf(madeResponse(ENDS[2]?.[1])))
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
    emitting.emitter.endTurn()
    const events = readResponseStream(await textOf(emitting.emitter.end(COMPLETED), 7))
    expect(events.map(({ id, event }) => [id, event])).toEqual([
      ['8', 'response.created'],
      ['9', 'response.in_progress'],
      ['10', 'response.completed'],
    ])
  })
})

it('makes a frame only when it is read', async () => {
  const reader = storedStream(madeResponse(), 0).getReader()
  const { value } = await reader.read()
  expect(new TextDecoder().decode(value)).toMatch(/^event: response\.created\nid: 1\ndata: \{[^\n]*\}\n\n$/)
  await reader.cancel()
})
