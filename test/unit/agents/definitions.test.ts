import { describe, expect, it } from 'vitest'
import { definitionIssues } from '../../../src/agents/definitions/check-definition.ts'
import { referencesIn, renderTemplate } from '../../../src/agents/definitions/template.ts'
import { declaredInputs, inputValue } from '../../../src/agents/runs/run-inputs.ts'
import { schemaFault } from '../../../src/agents/runs/step-output.ts'
import { cronFault } from '../../../src/agents/triggers/cron.ts'
import { isSigned, newWebhookSecret, signature } from '../../../src/agents/triggers/webhook-signature.ts'
import { agentDefinition } from '../../../src/wire/agents.ts'

describe('a template', () => {
  const values: Record<string, string> = { city: 'Paris', 'Full name': '{{city}} $& $1' }
  const rendered = (template: string) =>
    renderTemplate(template, (reference) =>
      reference.kind === 'input' ? values[reference.name] : `output ${reference.step}`,
    )

  it('has inputs and outputs in place of its placeholders, once', () => {
    expect(rendered('{{city}}, {{ Full name }}, {{steps.12.output}}')).toBe(
      'Paris, {{city}} $& $1, output 12',
    )
    expect(rendered('{{unknown}} {{steps.0.output}} {{City}} {{}} {city} {{a}b}}')).toBe(
      '{{unknown}} {{steps.0.output}} {{City}} {{}} {city} {{a}b}}',
    )
    expect(rendered('\\{{city}} {{{city}}}')).toBe('{{city}} {Paris}')
  })

  it('names what it refers to', () => {
    expect(referencesIn('{{a}} \\{{b}} {{ steps.2.output }}')).toEqual([
      { kind: 'input', name: 'a' },
      { kind: 'output', step: 2 },
    ])
  })
})

describe('inputs', () => {
  const definition = agentDefinition.parse({
    name: 'a',
    inputs: [{ name: 'city' }, { name: 'tone', default: 'kind' }, { name: 'note', required: false }],
    steps: [{ instructions: '{{city}} {{tone}} {{note}}', model: 'm' }],
  })

  it('have defaults, drop unknown names and keep the last value', () => {
    const given = [
      { name: 'city', value: 'Paris' },
      { name: 'city', value: '' },
      { name: '__proto__', value: 'x' },
    ]
    const values = declaredInputs(definition, given)
    expect(values).toEqual({ city: '' })
    expect(['city', 'tone', 'note', 'other'].map((name) => inputValue(definition, values, name))).toEqual([
      '',
      'kind',
      '',
      undefined,
    ])
  })

  it('that are required and missing are named', () => {
    expect(() => declaredInputs(definition, [])).toThrow(/"city" missing/)
    expect(definitionIssues(definition)).toEqual([])
  })
})

describe('cron expressions', () => {
  it.each(['* * * * *', '*/5 0-6/2 1,15 JAN-mar 1-5', '0 9 * * MON', 'CRON_TZ=Europe/Berlin 0 9 * * 7'])(
    '%s is valid',
    (cron) => expect(cronFault(cron)).toBeNull(),
  )
  it.each([
    ['* * * *', /five fields/],
    ['60 * * * *', /minute/],
    ['* 24 * * *', /hour/],
    ['* * 0 * *', /day of the month/],
    ['* * * 13 *', /month/],
    ['* * * * funday', /day of the week/],
    ['5-1 * * * *', /minute/],
    ['*/0 * * * *', /minute/],
    ['1-2-3 * * * *', /minute/],
    ['CRON_TZ=Mars/Base * * * * *', /time zone/],
  ])('%s is not', (cron, reason) => expect(cronFault(cron)).toMatch(reason))
})

describe('a schema', () => {
  it('decides about outputs', () => {
    const schema = { type: 'array', items: { type: 'string' } }
    expect(schemaFault(schema, '["a"]')).toBeNull()
    expect(schemaFault(schema, '[1]')?.message).toMatch(/does not fit/)
    expect(schemaFault(schema, 'a')?.message).toMatch(/not JSON/)
    expect(schemaFault({ $ref: '#/nowhere' }, '1')?.code).toBe('invalid_output')
  })
})

describe('a webhook signature', () => {
  // https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
  const secret = `whsec_${Buffer.from('a key of thirty two bytes, as is').toString('base64')}`
  const at = { id: 'msg_1', timestamp: '1700000000' }
  const now = 1_700_000_000_000

  it('covers id, time and body', () => {
    const signatures = `v2,x ${signature(secret, at, '{}')}`
    expect(isSigned(secret, { ...at, signatures }, '{}', now)).toBe(true)
    expect(isSigned(secret, { ...at, signatures }, '{ }', now)).toBe(false)
    expect(isSigned(secret, { ...at, id: 'msg_2', signatures }, '{}', now)).toBe(false)
    expect(isSigned(secret, { ...at, timestamp: '1700000001', signatures }, '{}', now)).toBe(false)
    expect(isSigned(newWebhookSecret(), { ...at, signatures }, '{}', now)).toBe(false)
    expect(isSigned(secret, { ...at, signatures }, '{}', now + 301_000)).toBe(false)
    expect(isSigned(secret, { ...at, signatures }, '{}', now - 301_000)).toBe(false)
  })
})
