import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { jsonOf } from '../harness/send.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest } from '../harness/upstream.ts'
import { refusalBody } from '../matrices/envelopes.ts'
import { type Json, listItems } from './support/response-calls.ts'
import { bodyOf, CORNER_WAYS, postResponse, respond } from './support/response-streams.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const PAGE = Buffer.from('%PDF-1.4\n%%EOF').toString('base64')

const inputText = (text: string) => ({ type: 'input_text', text })
const message = (role: string, ...content: unknown[]) => ({
  id: expect.stringMatching(/^msg_/),
  type: 'message',
  role,
  content,
  status: 'completed',
})

/** Input items, their stored form, and their form for each upstream. */
const FORMS: Array<[name: string, input: (text: string) => unknown, kept: (text: string) => unknown[]]> = [
  ['a string', (text) => text, (text) => [message('user', inputText(text))]],
  [
    'a string with escapes',
    (text) => `"é" \\ \u2028 🦉\n${text}`,
    (text) => [message('user', inputText(`"é" \\ \u2028 🦉\n${text}`))],
  ],
  [
    'a bare message',
    (text) => [{ role: 'user', content: text }],
    (text) => [message('user', inputText(text))],
  ],
  [
    'messages of every role',
    (text) => [
      { role: 'system', content: 'Be brief.' },
      { role: 'developer', content: [inputText('Be kind.')] },
      { type: 'message', role: 'user', content: [inputText('One.'), inputText('Two.')] },
      { role: 'assistant', content: [{ type: 'output_text', text: 'Three.' }] },
      { role: 'user', content: text },
    ],
    (text) => [
      message('system', inputText('Be brief.')),
      message('developer', inputText('Be kind.')),
      message('user', inputText('One.'), inputText('Two.')),
      message('assistant', { type: 'output_text', text: 'Three.', annotations: [] }),
      message('user', inputText(text)),
    ],
  ],
  [
    'an image',
    (text) => [
      {
        role: 'user',
        content: [
          inputText(text),
          { type: 'input_image', image_url: `data:image/png;base64,${PIXEL}`, detail: 'auto' },
        ],
      },
    ],
    (text) => [
      message('user', inputText(text), {
        type: 'input_image',
        image_url: `data:image/png;base64,${PIXEL}`,
        detail: 'auto',
      }),
    ],
  ],
  [
    'an image elsewhere',
    (text) => [
      {
        role: 'user',
        content: [inputText(text), { type: 'input_image', image_url: 'https://example.com/a.png' }],
      },
    ],
    (text) => [
      message('user', inputText(text), { type: 'input_image', image_url: 'https://example.com/a.png' }),
    ],
  ],
  [
    'a file',
    (text) => [
      {
        role: 'user',
        content: [
          inputText(text),
          { type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${PAGE}` },
        ],
      },
    ],
    (text) => [
      message('user', inputText(text), {
        type: 'input_file',
        filename: 'a.pdf',
        file_data: `data:application/pdf;base64,${PAGE}`,
      }),
    ],
  ],
  [
    'a call and its output',
    (text) => [
      { role: 'user', content: text },
      { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{"city":"Paris"}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'sunny' },
    ],
    (text) => [
      message('user', inputText(text)),
      {
        id: expect.stringMatching(/^fc_/),
        type: 'function_call',
        call_id: 'call_1',
        name: 'f',
        arguments: '{"city":"Paris"}',
        status: 'completed',
      },
      {
        id: expect.stringMatching(/^fco_/),
        type: 'function_call_output',
        call_id: 'call_1',
        output: 'sunny',
        status: 'completed',
      },
    ],
  ],
  [
    'an output with an image',
    (text) => [
      { role: 'user', content: text },
      { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' },
      {
        type: 'function_call_output',
        call_id: 'call_1',
        output: [inputText('sunny'), { type: 'input_image', image_url: `data:image/png;base64,${PIXEL}` }],
      },
    ],
    () => [
      expect.anything(),
      expect.anything(),
      expect.objectContaining({
        output: [inputText('sunny'), { type: 'input_image', image_url: `data:image/png;base64,${PIXEL}` }],
      }),
    ],
  ],
]

describe.each(CORNER_WAYS)('input (%s)', (_, { model, stream }) => {
  it.each(FORMS)('%s', async (_name, input, kept) => {
    const text = marker()
    const { response } = await respond(tenant.key, { model, stream, input: input(text) })
    expect(response.status, JSON.stringify(response.error)).toBe('completed')
    const list = await listItems(tenant.key, `/v1/responses/${response.id}/input_items?order=asc`)
    expect(list.data).toEqual(kept(text))
    const seen = JSON.stringify(bodyOf(await seenRequest(gateway(), text)))
    // Supported items reach a model in the form of its protocol.
    for (const part of ['Be brief.', 'Be kind.', 'One.', 'Two.', 'Three.', PIXEL, PAGE, 'sunny']) {
      if (JSON.stringify(input(text)).includes(part)) expect(seen).toContain(part)
    }
    if (JSON.stringify(input(text)).includes('example.com'))
      expect(seen).toContain('https://example.com/a.png')
  })
})

/** Bodies that are refused, with the member that is to blame. */
const REFUSED: Array<[blamed: RegExp, body: Json]> = [
  [/^input: /, { input: null }],
  [/^input: /, { input: 7 }],
  [/^input: /, { input: {} }],
  [/^input: /, { input: [] }],
  [/^input\[0\]/, { input: [null] }],
  [/^input\[0\]\.role: /, { input: [{ content: 'x' }] }],
  [
    /^input\[1\]\.role: /,
    {
      input: [
        { role: 'user', content: 'x' },
        { role: 'robot', content: 'x' },
      ],
    },
  ],
  [/^input\[0\]\.content: /, { input: [{ role: 'user' }] }],
  [/^input\[0\]\.content\[0\]\.type: /, { input: [{ role: 'user', content: [{ type: 'odd' }] }] }],
  [/^input\[0\]\.content\[0\]\.text: /, { input: [{ role: 'user', content: [{ type: 'input_text' }] }] }],
  [/^input\[0\]\.type: /, { input: [{ type: 'odd' }] }],
  [/^input\[0\]\.call_id: /, { input: [{ type: 'function_call_output', output: 'x' }] }],
  [/^input\[0\]\.output: /, { input: [{ type: 'function_call_output', call_id: 'c' }] }],
  [/^input\[0\]\.id: /, { input: [{ type: 'item_reference' }] }],
  [/^model: /, { model: 7 }],
  [/^model: /, { model: '' }],
  [/^instructions: /, { instructions: {} }],
  [/^tools: /, { tools: {} }],
  [/^tools\[0\]\.type: /, { tools: [{}] }],
  [/^stream: /, { stream: 'yes' }],
  [/^store: /, { store: 1 }],
  [/^metadata: /, { metadata: 'x' }],
  [/^max_output_tokens: /, { max_output_tokens: 0 }],
  [/^temperature: /, { temperature: 3 }],
  [/^truncation: /, { truncation: 'maybe' }],
  [/^include: /, { include: 'reasoning.encrypted_content' }],
  [/^text/, { text: { format: {} } }],
]

it.each(REFUSED)('is refused with the member named: %s', async (message, body) => {
  const { stream = true } = body
  const answer = await postResponse(tenant.key, { ...body, stream })
  expect(jsonOf(answer)).toEqual(refusalBody('responses', { status: 400, code: 'invalid_body', message }))
  expect(answer.status).toBe(400)
})

it('an image for a model that sees none fails with what its provider says', async () => {
  const content = [inputText('Look.'), { type: 'input_image', image_url: `data:image/png;base64,${PIXEL}` }]
  for (const stream of [true, false]) {
    const body = { model: 'scripted-chat-plain', input: [{ role: 'user', content }], stream }
    const answer = await postResponse(tenant.key, body)
    expect(answer.status).toBe(400)
    expect(jsonOf(answer)).toMatchObject({ error: { message: expect.stringMatching(/image/i) } })
  }
})
