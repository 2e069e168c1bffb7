import { describe, expect, it } from 'vitest'
import { definitionIssues } from '../../../src/agents/definitions/check-definition.ts'
import { cronFault } from '../../../src/agents/definitions/cron.ts'
import { referencesIn, renderTemplate } from '../../../src/agents/definitions/template.ts'
import { declaredInputs, inputValue } from '../../../src/agents/runs/run-inputs.ts'
import { schemaFault } from '../../../src/agents/runs/step-output.ts'
import { isSigned, newWebhookSecret, signature } from '../../../src/agents/triggers/webhook-signature.ts'
import { agentDefinition } from '../../../src/wire/agents.ts'

describe('a template', () => {
  const values: Record<string, string> = { city: 'Paris', 'Full name': '{{city}} $& $1' }
  const rendered = (template: string, longest = 1_000) =>
    renderTemplate(
      template,
      (reference) => (reference.kind === 'input' ? values[reference.name] : `output ${reference.step}`),
      longest,
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

  it('is not made where its values would make it too long', () => {
    expect(rendered('{{city}} {{city}}', 11)).toBe('Paris Paris')
    expect(rendered('{{city}} {{city}}', 10)).toBeNull()
    expect(rendered('\\{{ city', 7)).toBe('{{ city')
    expect(rendered('\\{{ city', 6)).toBeNull()
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

/** A schema of so many parts, each of which refers to the next one twice. */
function doubling(parts: number): Record<string, unknown> {
  const twice = (part: number) => ({ allOf: [1, 2].map(() => ({ $ref: `#/$defs/part_${part}` })) })
  const entries = Array.from({ length: parts }, (_, part) => [
    `part_${part}`,
    part + 1 < parts ? twice(part + 1) : {},
  ])
  return { ...twice(0), $defs: Object.fromEntries(entries) }
}

/** A schema that refers to itself twice for a member. */
const levels = { properties: { a: { anyOf: [{ $ref: '#' }, { $ref: '#' }] } }, required: ['b'] }

describe('a schema', () => {
  it('decides about outputs', () => {
    const schema = { type: 'array', items: { type: 'string' } }
    expect(schemaFault(schema, '["a"]')).toBeNull()
    expect(schemaFault(schema, '[1]')?.message).toMatch(/does not fit/)
    expect(schemaFault(schema, 'a')?.message).toMatch(/not JSON/)
    expect(schemaFault({ $ref: '#/nowhere' }, '1')?.code).toBe('invalid_output')
  })

  it.each<[string, Record<string, unknown>, unknown]>([
    ['references that double', doubling(40), {}],
    ['references that double at each level', levels, JSON.parse(`${'{"a":'.repeat(300)}1${'}'.repeat(300)}`)],
    ['items that are unique', { uniqueItems: true }, Array.from({ length: 10_000 }, (_, index) => index)],
  ])('with %s is compared up to a bound', (_what, schema, value) => {
    expect(schemaFault(schema, JSON.stringify(value))?.message).toMatch(/cannot be compared/)
  })

  it('is compared with a large output', () => {
    const item = { type: 'object', required: ['a'], properties: { a: { type: 'string' } } }
    const output = JSON.stringify(Array.from({ length: 10_000 }, (_, index) => ({ a: `value ${index}` })))
    expect(schemaFault({ type: 'array', items: item }, output)).toBeNull()
    expect(schemaFault({ type: 'array', items: { ...item, required: ['b'] } }, output)?.message).toMatch(
      /not fit/,
    )
  })

  it('has no format whose pattern never ends', () => {
    const schema = { properties: { format: { type: 'string', format: 'url' } } }
    const output = { format: 'json_schema', name: 'output', schema }
    const definition = agentDefinition.parse({
      name: 'a',
      steps: [{ instructions: 'a', model: 'm', output }],
    })
    expect(definitionIssues(definition)).toMatchObject([
      { path: 'steps.0.output.schema.properties.format.format', reason: expect.stringMatching(/uri$/) },
    ])
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
