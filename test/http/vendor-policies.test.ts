import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import type { Tenant } from '../harness/tenant.ts'
import { marker, seenRequests } from '../harness/upstream.ts'
import { codePolicy, expectBalance, governedTenant, recordOf, someCode, tracesOf } from './support/dlp.ts'
import { answerScript, callTool, type Part, say, think } from './support/dlp-answers.ts'
import { assembled, FORMS, postTo, requestOf, type Surface } from './support/vendor-calls.ts'
import { createVendorModel, namedVendors } from './support/vendor-kinds.ts'

// Data-loss prevention on every vendor as on the first two: in texts, arguments of tools and reasoning, both ways.

const HIDDEN = '[REDACTED:CODE]'
const MESSAGE = 'A data-loss prevention policy blocks this call: it found code.'

let redacting: Tenant
let blockingRequests: Tenant
let blockingAnswers: Tenant
beforeAll(async () => {
  redacting = await governedTenant(codePolicy('redact'))
  blockingRequests = await governedTenant(codePolicy('block', { directions: ['request', 'tool_result'] }))
  blockingAnswers = await governedTenant(codePolicy('block', { directions: ['response', 'tool_arguments'] }))
})

const spoken = (code: string): Part[] => [
  think(`so "${code}"\n`),
  say(`Über ${code}, 🦉 ${code}`),
  callTool('find', { code, list: [code, 7] }),
  callTool('tell', { code: `<${code}>` }),
]

/** A conversation with the value in each kind of input. */
function history(surface: Surface, code: string, last: string): object {
  const input = { code, list: [`<${code}>`] }
  const call = { id: 'call_abcdef012', name: 'find', arguments: JSON.stringify(input) }
  if (surface === 'responses') {
    const { id: call_id, ...made } = call
    return {
      instructions: `Keep ${code}.`,
      input: [
        { role: 'user', content: `Find ${code}` },
        { type: 'function_call', call_id, ...made },
        { type: 'function_call_output', call_id, output: `It is ${code}.` },
        { role: 'user', content: last },
      ],
    }
  }
  if (surface === 'messages') {
    const thinking = { type: 'thinking', thinking: `so ${code}`, signature: 'c2lnbmF0dXJl' }
    const result = { type: 'tool_result', tool_use_id: call.id, content: `It is ${code}.` }
    return {
      system: `Keep ${code}.`,
      messages: [
        { role: 'user', content: `Find ${code}` },
        { role: 'assistant', content: [thinking, { type: 'tool_use', id: call.id, name: 'find', input }] },
        { role: 'user', content: [result, { type: 'text', text: last }] },
      ],
    }
  }
  const { id, ...made } = call
  return {
    messages: [
      { role: 'system', content: `Keep ${code}.` },
      { role: 'user', content: `Find ${code}` },
      {
        role: 'assistant',
        content: null,
        reasoning_content: `so ${code}`,
        tool_calls: [{ id, type: 'function', function: made }],
      },
      { role: 'tool', tool_call_id: id, content: `It is ${code}.` },
      { role: 'user', content: last },
    ],
  }
}

describe.each(namedVendors)('%s', (_, vendor) => {
  let model: string
  beforeAll(async () => {
    model = (await createVendorModel(vendor)).model
  })

  describe.each(FORMS)('%s', (_form, { surface, stream }) => {
    const ask = (tenant: Tenant, text: string, more = {}) =>
      postTo(surface, tenant, requestOf(surface, model, text, { stream, ...more }))

    it('an answer holds no value in any part', async () => {
      const code = someCode()
      const answer = await ask(redacting, await answerScript(vendor.scripts, spoken(code)))
      const told = assembled(surface, stream, answer)
      expect(told.text).toBe(`Über ${HIDDEN}, 🦉 ${HIDDEN}`)
      expect(told.calls.map(({ name, json }) => [name, JSON.parse(json)])).toEqual([
        ['find', { code: HIDDEN, list: [HIDDEN, 7] }],
        ['tell', { code: `<${HIDDEN}>` }],
      ])
      expect(told.reasoning).toBe(`so "${HIDDEN}"\n`)
      for (const trace of tracesOf(code)) expect(answer.text).not.toContain(trace)
      const recorded = await recordOf(redacting, answer)
      expect(recorded.dlp?.findings).toEqual({ code: 6 })
      expect(expectBalance(recorded)).toEqual(['request', 'response'])
      expect(recorded.response?.withheld).toBeGreaterThan(0)
    })

    it.each([
      ['text', say('')],
      ['reasoning', think('')],
      ['arguments', callTool('find', {})],
    ])('an answer whose %s must not pass is blocked', async (kind, part) => {
      const code = someCode()
      const filled: Part =
        part.kind === 'call' ? callTool('find', { code }) : { ...part, text: `It is ${code} and more` }
      const parts = kind === 'reasoning' ? [filled, say('Done.')] : [filled]
      const answer = await ask(blockingAnswers, await answerScript(vendor.scripts, parts))
      expect(answer.text).toContain(MESSAGE)
      for (const trace of tracesOf(code)) expect(answer.text).not.toContain(trace)
      const recorded = await recordOf(blockingAnswers, answer)
      expect(recorded.dlp?.findings.code).toBeGreaterThan(0)
      expect(recorded.entry.credits_settled).toBeGreaterThan(0)
      expectBalance(recorded)
    })

    it('a request is sent without the value', async () => {
      const [code, text] = [someCode(), marker()]
      const more = history(surface, code, `script:canned ${code} ${text}`)
      const answer = await ask(redacting, '', { tools: undefined, ...more })
      assembled(surface, stream, answer)
      const [seen, ...others] = await seenRequests(gateway(), text)
      expect(others).toEqual([])
      expect(seen?.body).toContain(HIDDEN)
      for (const trace of tracesOf(code)) expect(seen?.body).not.toContain(trace)
      const recorded = await recordOf(redacting, answer)
      expect(recorded.dlp?.findings.code).toBeGreaterThanOrEqual(6)
      expectBalance(recorded)
    })

    it('a request that must not be sent is refused', async () => {
      const [code, text] = [someCode(), marker()]
      const answer = await ask(blockingRequests, `script:canned ${text} ${code}`)
      expect(answer.text).toContain(MESSAGE)
      expect(answer.text).not.toContain(code)
      expect(await seenRequests(gateway(), text)).toEqual([])
    })
  })
})
