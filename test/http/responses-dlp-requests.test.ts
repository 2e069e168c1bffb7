import { beforeAll, describe, expect, it } from 'vitest'
import { gateway, query } from '../harness/gateway.ts'
import { jsonOf } from '../harness/send.ts'
import { addKey, addMember, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest, seenRequests } from '../harness/upstream.ts'
import { refusalBody } from '../matrices/envelopes.ts'
import {
  addPolicy,
  codePolicy,
  expectBalance,
  governedTenant,
  recordOf,
  someCode,
  tracesOf,
} from './support/dlp.ts'
import { callTool, say } from './support/dlp-answers.ts'
import { ask, type Json, listItems } from './support/response-calls.ts'
import { CORNER_WAYS, postResponse, respond, turnsScript } from './support/response-streams.ts'

let redacting: Tenant
let blocking: Tenant
let tokenising: Tenant

beforeAll(async () => {
  ;[redacting, blocking, tokenising] = (await Promise.all([
    governedTenant(codePolicy('redact')),
    governedTenant(codePolicy('block')),
    governedTenant(codePolicy('tokenise', { directions: ['request', 'tool_result', 'tool_arguments'] })),
  ])) as [Tenant, Tenant, Tenant]
})

/** Everything that a request says, with a value in it. */
const everywhere = (text: string, code: string): Json => ({
  instructions: `Keep ${code}.`,
  metadata: { id: code, nested: { type: `of ${code}` } },
  prompt_cache_key: `key ${code}`,
  input: [
    { role: 'developer', content: `Mind ${code}.` },
    { role: 'user', content: [{ type: 'input_text', text: `${text} ${code}` }] },
    { role: 'assistant', content: `It is ${code}.` },
    { type: 'function_call', call_id: 'c', name: 'f', arguments: JSON.stringify({ code }) },
    { type: 'function_call_output', call_id: 'c', output: `found ${code}` },
    { type: 'custom_tool_call', call_id: 'd', name: 'g', input: `run ${code}` },
    {
      type: 'custom_tool_call_output',
      call_id: 'd',
      output: [{ type: 'input_text', text: `ran ${code}` }],
    },
    { role: 'user', content: 'Well?' },
  ],
  tools: [
    {
      type: 'function',
      name: 'f',
      description: `Of ${code}.`,
      parameters: { type: 'object', properties: {} },
    },
    { type: 'custom', name: 'g' },
  ],
})
/** How many values there are in it. */
const VALUES = 9

const rowsWith = (text: string) =>
  query(
    gateway(),
    'select id from response_items as t where t::text like $1 union select id from responses as t where t::text like $1',
    [`%${text}%`],
  )

describe.each(CORNER_WAYS)('a request (%s)', (_, { upstream, model, stream }) => {
  it('is sent and stored without the values that a policy redacts', async () => {
    const [text, code] = [marker(), someCode()]
    const told = await respond(redacting.key, { model, stream, ...everywhere(text, code) })
    expect(told.response.status, JSON.stringify(told.response.error)).toBe('completed')
    const seen = await seenRequest(gateway(), text)
    expect(seen.body.split('[REDACTED:CODE]').length - 1).toBe(VALUES)
    const paths = [
      `/v1/responses/${told.response.id}`,
      `/v1/responses/${told.response.id}?stream=true`,
      `/v1/responses/${told.response.id}/input_items`,
      `/v1/conversations/${told.response.conversation?.id}/items`,
    ]
    const read = await Promise.all(paths.map((path) => ask(redacting.key, 'GET', path)))
    for (const found of [told.answer.text, seen.body, ...read.map((answer) => answer.text)]) {
      for (const trace of tracesOf(code)) expect(found).not.toContain(trace)
    }
    expect(await rowsWith(code.slice(3))).toEqual([])
    const recorded = await recordOf(redacting, told.answer)
    // The cache key is found as well, which these models are not told.
    expect(recorded.dlp?.findings).toEqual({ code: VALUES + 1 })
    expectBalance(recorded)
  })

  it('is blocked before its stream, and nothing is left of it', async () => {
    const [text, code] = [marker(), someCode()]
    const answer = await postResponse(blocking.key, { model, stream, ...everywhere(text, code) })
    const message = 'A data-loss prevention policy blocks this call: it found code.'
    expect(jsonOf(answer)).toEqual(refusalBody('responses', { status: 400, code: 'dlp_blocked', message }))
    expect(answer.status).toBe(400)
    expect(answer.headers['x-should-retry']).toBe('false')
    expect(await seenRequests(gateway(), text)).toEqual([])
    expect(await rowsWith(text)).toEqual([])
    const { dlp, record } = await recordOf(blocking, answer)
    expect(dlp?.findings.code).toBeGreaterThan(0)
    expect(record).toMatchObject({ errorCode: 'dlp_blocked' })
  })

  it('is sent with tokens, which their user reads as values', async () => {
    const [text, code] = [marker(), someCode()]
    const probe = await respond(tokenising.key, { model, stream, input: `${text} ${code}` })
    const { body } = await seenRequest(gateway(), text)
    expect(body).not.toContain(code)
    const [token = ''] = body.match(/\[\[CODE_[0-9a-f]{12}\]\]/) ?? []
    expect(token).not.toBe('')
    // The local model repeats what it was told.
    expect(probe.response.output_text).toContain(code)
    expect(probe.answer.text).not.toContain(token)
    const script = await turnsScript(upstream, [
      [say(`For ${token}: `), callTool('f', { code: token })],
      [say(`Found ${token}.`)],
    ])
    const tools = [{ type: 'function', name: 'f', parameters: { type: 'object', properties: {} } }]
    const again = marker()
    const first = await respond(tokenising.key, { model, stream, input: `${script} ${again} ${code}`, tools })
    expect(first.response.output).toMatchObject([
      { type: 'message', content: [{ text: `For ${code}: ` }] },
      { type: 'function_call', arguments: JSON.stringify({ code }) },
    ])
    const output = { type: 'function_call_output', call_id: first.response.output[1]?.call_id, output: code }
    const next = { model, stream, previous_response_id: first.response.id, input: [output], tools }
    expect((await respond(tokenising.key, next)).response.output_text).toBe(`Found ${code}.`)
    for (const seen of await seenRequests(gateway(), again)) expect(seen.body).not.toContain(code)
    const items = await listItems(
      tokenising.key,
      `/v1/conversations/${first.response.conversation?.id}/items`,
    )
    expect(JSON.stringify(items.data)).not.toContain(token)
  })
})

it('a token of another user stays a token', async () => {
  const [text, code] = [marker(), someCode()]
  await respond(tokenising.key, { input: `${text} ${code}` })
  const [token = ''] = (await seenRequest(gateway(), text)).body.match(/\[\[CODE_[0-9a-f]{12}\]\]/) ?? []
  const { key } = await addKey(gateway(), tokenising.base, await addMember(gateway(), tokenising.base))
  for (const stream of [true, false]) {
    const { response } = await respond(key, { input: `What is ${token}?`, stream })
    expect(response.output_text).toContain(token)
    expect(response.output_text).not.toContain(code)
  }
})

describe('content that cannot be inspected', () => {
  const IMAGE = {
    type: 'input_image',
    image_url: `data:image/png;base64,${Buffer.alloc(90, 7).toString('base64')}`,
  }
  const FILE = {
    type: 'input_file',
    filename: 'a.pdf',
    file_data: `data:application/pdf;base64,${Buffer.alloc(90, 7).toString('base64')}`,
  }
  const ofUser = (part: Json) => [{ role: 'user', content: [{ type: 'input_text', text: 'x' }, part] }]
  const ofTool = (part: Json) => [
    { role: 'user', content: 'x' },
    { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c', output: [part] },
  ]
  let covering: Tenant
  let strict: Tenant

  beforeAll(async () => {
    const uninspectable = { request: 'block', tool_result: 'allow' }
    ;[covering, strict] = (await Promise.all([
      governedTenant(codePolicy('warn')),
      governedTenant(codePolicy('warn', { uninspectable })),
    ])) as [Tenant, Tenant]
  })

  const outcome = async (tenant: Tenant, input: unknown, stream: boolean) => {
    const answer = await postResponse(tenant.key, { input, stream })
    if (answer.status === 200) return 'passes'
    expect(jsonOf(answer)).toEqual(
      refusalBody('responses', { status: 400, code: 'dlp_blocked', message: /cannot be inspected/ }),
    )
    return 'blocked'
  }

  it.each([IMAGE, FILE])('passes from users, not from tools, unless a policy says so', async (part) => {
    for (const stream of [true, false]) {
      expect(await outcome(covering, ofUser(part), stream)).toBe('passes')
      expect(await outcome(covering, ofTool(part), stream)).toBe('blocked')
      expect(await outcome(strict, ofUser(part), stream)).toBe('blocked')
      expect(await outcome(strict, ofTool(part), stream)).toBe('passes')
    }
  })
})

it('items older than a policy are sent to the model under it', async () => {
  const tenant = await createTenant(gateway())
  const [text, code] = [marker(), someCode()]
  const { response } = await respond(tenant.key, { input: `Remember ${code}.`, instructions: 'x' })
  await addPolicy(tenant, codePolicy('redact'))
  for (const by of [{ conversation: response.conversation?.id }, { previous_response_id: response.id }]) {
    await respond(tenant.key, { input: 'Well?', instructions: text, stream: true, ...by })
  }
  const seen = await seenRequests(gateway(), text)
  expect(seen).toHaveLength(2)
  for (const { body } of seen) {
    expect(body).toContain('Remember [REDACTED:CODE].')
    expect(body).not.toContain(code)
  }
})
