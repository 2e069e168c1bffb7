import { abortAllDurableObjects } from 'cloudflare:test'
import { beforeAll, expect, it } from 'vitest'
import { openResponsesFrames } from '../../src/responses/open-responses/rendered-events.ts'
import { openResponsesEvents } from '../harness/open-responses.ts'
import {
  lastOf,
  newCaller,
  newResponse,
  OBJECTS,
  query,
  requestOf,
  seedModel,
  until,
  useToolRuns,
} from './durable-response-harness.ts'
import { useScriptedModel } from './scripted-model.ts'
import { toolRuns } from './tool-response-stream.ts'

const model = useScriptedModel()
beforeAll(seedModel)
useToolRuns()

const asked = requestOf(model)

it('a response keeps the form of its request over a restart, with own names in all that is stored', async () => {
  const response = newResponse(await newCaller(), OBJECTS.tools, 'open_responses')
  const look = { type: 'function', name: 'look', parameters: { type: 'object' } }
  const note = { type: 'custom', name: 'note' }
  expect(await response.start({ tools: [look, note] })).toMatchObject({ compatibility: 'open_responses' })
  expect(await response.state()).toMatchObject({ compatibility: 'open_responses' })
  const first = await asked(1)
  first.call('hosted_read', '{"n":0}')
  first.finish('tool_calls')
  await until(() => expect(toolRuns.all).toHaveLength(1))
  toolRuns.answer = (run) => {
    run.result = { status: 'completed', members: { output: 'It is there.' } }
  }
  await abortAllDurableObjects()
  const reader = response.follow()
  const second = await asked(2)
  second.call('look', '{}')
  second.call('note', '{"input":"x"}', 1)
  second.finish('tool_calls')
  expect(await reader.done).toBe(true)

  expect(lastOf(reader.text)).toMatchObject({
    status: 'completed',
    compatibility: 'open_responses',
    tools: [look, note, { type: 'shell' }, { type: 'computer' }],
    output: [
      { type: 'mcp_call', output: 'It is there.' },
      { type: 'function_call', name: 'look' },
      { type: 'custom_tool_call', name: 'note' },
    ],
  })
  expect(await response.settle()).toBe('settled')
  const [row] = await query('SELECT * FROM responses WHERE id = $1', response.responseId)
  expect(row).toMatchObject({ status: 'completed', compatibility: 'open_responses' })
  expect(row?.body).not.toContain('compatibility')
  const items = await query('SELECT body FROM response_items WHERE response_id = $1', response.responseId)
  expect(JSON.stringify(items)).toContain('mcp_call')
  expect(JSON.stringify([items, second.body])).not.toContain('headgate:')

  const frames = new Response(reader.text).body as ReadableStream<Uint8Array>
  const events = openResponsesEvents(await new Response(openResponsesFrames(frames)).text())
  expect(events.at(-1)).toMatchObject({
    event: 'response.completed',
    data: {
      response: {
        tools: [{ ...look, description: null, strict: false }],
        output: [
          { type: 'mcp_call', output: 'It is there.' },
          { type: 'function_call' },
          { type: 'headgate:custom_tool_call' },
        ],
      },
    },
  })
})
