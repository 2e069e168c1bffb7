import { beforeAll, describe, expect, it } from 'vitest'
import { gateway, query } from '../harness/gateway.ts'
import type { Tenant } from '../harness/tenant.ts'
import { uniqueName } from '../harness/tenant.ts'
import { registerAnswers, registerScript, seenRequest } from '../harness/upstream.ts'
import { codePolicy, expectBalance, governedTenant, recordOf, someCode, tracesOf } from './support/dlp.ts'
import { callTool, framesOf, type Part, say, think } from './support/dlp-answers.ts'
import { ask, expectJson, type Json, type ToldResponse } from './support/response-calls.ts'
import {
  CORNER_WAYS,
  RESPONSE_WAYS,
  respond,
  STREAMED_WAYS,
  turnsScript,
} from './support/response-streams.ts'

let redacting: Tenant
let blocking: Tenant
const HIDDEN = '[REDACTED:CODE]'
const MESSAGE = 'A data-loss prevention policy blocks this call: it found code.'
const TOOLS = [
  { type: 'function', name: 'find', parameters: { type: 'object', properties: {} } },
  { type: 'custom', name: 'run' },
]

beforeAll(async () => {
  redacting = await governedTenant(codePolicy('redact'))
  blocking = await governedTenant(codePolicy('block', { directions: ['response', 'tool_arguments'] }))
})

const spoken = (value: string): Part[] => [
  think(`so "${value}"\n`),
  say(`Über ${value}, 🦉 ${value}`),
  callTool('find', { code: value, list: [value, 7], [value]: 'é' }),
  callTool('run', { input: `print("${value}")` }),
]

const rowsWith = (text: string) =>
  query(
    gateway(),
    'select id from response_items as t where t::text like $1 union select id from responses as t where t::text like $1',
    [`%${text}%`],
  )

describe.each(RESPONSE_WAYS)('an answer (%s)', (name, { upstream, model, stream }) => {
  // The findings of a policy in a turn do not depend on the form of the response.
  const isCorner = CORNER_WAYS.some(([corner]) => corner === name)
  const call = (tenant: Tenant, body: Json) =>
    respond(tenant.key, { model, stream, tools: TOOLS, include: ['reasoning.encrypted_content'], ...body })

  it('holds no value in any part, and none is kept', async () => {
    const code = someCode()
    const told = await call(redacting, { input: await turnsScript(upstream, [spoken(code)]) })
    const { id, output, status } = told.response
    expect(status).toBe('incomplete')
    expect(output).toMatchObject([
      { type: 'reasoning' },
      { type: 'message', content: [{ text: `Über ${HIDDEN}, 🦉 ${HIDDEN}` }] },
      { type: 'function_call', name: 'find' },
      { type: 'custom_tool_call', name: 'run', input: `print("${HIDDEN}")` },
    ])
    expect(JSON.parse(String(output[2]?.arguments))).toEqual({
      code: HIDDEN,
      list: [HIDDEN, 7],
      [HIDDEN]: 'é',
    })
    const read = await ask(redacting.key, 'GET', `/v1/responses/${id}?stream=true`)
    for (const text of [told.answer.text, read.text]) {
      for (const trace of tracesOf(code)) expect(text).not.toContain(trace)
    }
    expect(await rowsWith(code.slice(3))).toEqual([])
    const recorded = await recordOf(redacting, told.answer)
    expect(recorded.dlp?.findings).toEqual({ code: 7 })
    expect(expectBalance(recorded)).toEqual(['request', 'response'])
  })

  it('that must not pass fails the response, and nothing of it is sent', async () => {
    const code = someCode()
    const parts: Part[] = [say(`All is well. It is ${code} and more`)]
    const told = await call(blocking, { input: await turnsScript(upstream, [parts]) })
    expect(told.response).toMatchObject({ status: 'failed', error: { code: expect.any(String) } })
    expect((told.response.error as Json).message).toBe(MESSAGE)
    expect('All is well. It is '.startsWith(String(told.response.output_text))).toBe(true)
    for (const trace of tracesOf(code)) expect(told.answer.text).not.toContain(trace)
    expect(await rowsWith(code.slice(3))).toEqual([])
    const read = expectJson<ToldResponse>(await ask(blocking.key, 'GET', `/v1/responses/${told.response.id}`))
    expect(read).toEqual(told.response)
    const recorded = await recordOf(blocking, told.answer)
    expect(recorded.dlp?.findings).toEqual({ code: 1 })
    expect(recorded.entry.credits_settled).toBeGreaterThan(0)
    expectBalance(recorded)
  })

  it.runIf(isCorner)('that calls a tool with a blocked value is blocked as well', async () => {
    const code = someCode()
    const told = await call(blocking, { input: await turnsScript(upstream, [[callTool('find', { code })]]) })
    expect(told.response).toMatchObject({ status: 'failed', error: { message: MESSAGE } })
    for (const trace of tracesOf(code)) expect(told.answer.text).not.toContain(trace)
  })

  it.runIf(isCorner)('whose first event must not pass fails the response too', async () => {
    const code = someCode()
    const script = await registerAnswers(gateway(), [
      { steps: [{ sse: framesOf(upstream, [say(code)], [100]) }] },
    ])
    const told = await call(blocking, { input: script })
    expect(told.response).toMatchObject({ status: 'failed', error: { message: MESSAGE } })
    for (const trace of tracesOf(code)) expect(told.answer.text).not.toContain(trace)
  })
})

describe.each(STREAMED_WAYS)('a stream (%s)', (_, { upstream, model }) => {
  it('leaks nothing, whatever the pieces of its text', async () => {
    const sizes = Array.from({ length: 40 }, (_unused, index) => index + 1)
    const codes = sizes.map(() => someCode())
    const text = (values: string[]) =>
      values.map((value, index) => `${'word '.repeat(index % 7)}${value}, `).join('')
    const script = await registerAnswers(gateway(), [
      { steps: [{ sse: framesOf(upstream, [say(text(codes))], sizes) }] },
    ])
    const { response, answer } = await respond(redacting.key, { model, stream: true, input: script })
    expect(response.output_text).toBe(text(codes.map(() => HIDDEN)))
    for (const code of codes) expect(answer.text).not.toContain(code.slice(3))
  })

  it('ends where it must, and its upstream with it', async () => {
    const code = someCode()
    const frames = framesOf(upstream, [say(`All is well. ${code} and more`)], [5], false)
    const never = uniqueName('never')
    const script = await registerScript(gateway(), [{ sse: frames }, { waitForSignal: never }])
    const { events } = await respond(blocking.key, { model, stream: true, input: script })
    expect(events.slice(-2).map(({ event }) => event)).toEqual(['error', 'response.failed'])
    expect(events.at(-2)?.data.error).toMatchObject({ message: MESSAGE, type: 'server_error' })
    await seenRequest(gateway(), script, ({ clientClosedAt }) => clientClosedAt !== null)
  })
})
