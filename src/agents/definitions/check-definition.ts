import type { AgentDefinition } from '../../wire/agents.ts'
import { cronFault } from './cron.ts'
import { referencesIn } from './template.ts'

/** A part of a definition that cannot be run. */
export interface DefinitionIssue {
  path: string
  reason: string
}

/** Contradictions within a definition of the right form: a run would fail on each of them. */
export function definitionIssues(definition: AgentDefinition): DefinitionIssue[] {
  return [
    ...repeatedNames('inputs', definition.inputs),
    ...repeatedNames('triggers', definition.triggers),
    ...definition.steps.flatMap((_, index) => stepIssues(definition, index)),
    ...scheduleIssues(definition),
    ...visibilityIssues(definition),
  ]
}

function repeatedNames(member: string, entries: ReadonlyArray<{ name: string }>): DefinitionIssue[] {
  const names = entries.map(({ name }) => name)
  return names.flatMap((name, index) =>
    names.indexOf(name) === index ? [] : [{ path: `${member}.${index}.name`, reason: 'is used already' }],
  )
}

function stepIssues({ inputs, steps }: AgentDefinition, index: number): DefinitionIssue[] {
  const names = new Set(inputs.map(({ name }) => name))
  const { instructions = '', tools } = steps[index] ?? {}
  const path = `steps.${index}`
  const unknown = referencesIn(instructions).flatMap((reference): DefinitionIssue[] => {
    if (reference.kind === 'input') {
      const reason = `there is no input ${JSON.stringify(reference.name)}`
      return names.has(reference.name) ? [] : [{ path: `${path}.instructions`, reason }]
    }
    const reason = `the output of step ${reference.step} is not known before step ${index + 1}`
    return reference.step <= index ? [] : [{ path: `${path}.instructions`, reason }]
  })
  const slugs = tools?.integrations.map(({ integration }) => ({ name: integration })) ?? []
  const { output } = steps[index] ?? {}
  const schema = output?.format === 'json_schema' ? patternsIn(output.schema, `${path}.output.schema`) : []
  return [
    ...unknown,
    ...repeatedNames(`${path}.tools.integrations`, slugs),
    ...schema,
    ...checkIssues(steps[index], path),
  ]
}

/** Checks are part of an evaluation, which only a step with an objective has (interface: Run evaluation). */
function checkIssues(step: AgentDefinition['steps'][number] | undefined, path: string): DefinitionIssue[] {
  const checks = step?.checks ?? []
  const orphaned = checks.length > 0 && step?.objective === null
  return [
    ...(orphaned ? [{ path: `${path}.checks`, reason: 'must stand beside an objective' }] : []),
    ...checks.flatMap((check, index) =>
      check.type === 'json_schema' ? patternsIn(check.schema, `${path}.checks.${index}.schema`) : [],
    ),
  ]
}

/** Members of a schema whose members are names, and not keywords. */
const NAMED = new Set(['properties', '$defs', 'definitions', 'dependentSchemas'])

/**
 * Regular expressions in a schema: they would run on the output of a model without a bound of their time. The format
 * `url`, which is not of the standard, has such an expression in its validator.
 */
function patternsIn(schema: unknown, path: string): DefinitionIssue[] {
  if (typeof schema !== 'object' || schema === null) return []
  return Object.entries(schema).flatMap(([keyword, value]) => {
    const at = `${path}.${keyword}`
    if (keyword === 'enum' || keyword === 'const' || keyword === 'default') return []
    if (keyword === 'pattern' || keyword === 'patternProperties') {
      return [{ path: at, reason: 'regular expressions are not supported in schemas' }]
    }
    if (keyword === 'format' && value === 'url') {
      return [{ path: at, reason: 'url is not supported; the format of addresses is uri' }]
    }
    if (!NAMED.has(keyword) || typeof value !== 'object' || value === null) return patternsIn(value, at)
    return Object.entries(value).flatMap(([name, inner]) => patternsIn(inner, `${at}.${name}`))
  })
}

/** The inputs of a schedule's runs: nothing else can give them. */
function scheduleIssues({ inputs, triggers }: AgentDefinition): DefinitionIssue[] {
  return triggers.flatMap((trigger, index) => {
    if (trigger.kind !== 'schedule') return []
    const fault = cronFault(trigger.cron)
    const given = new Set(trigger.inputs.map(({ name }) => name))
    const known = new Set(inputs.map(({ name }) => name))
    const path = `triggers.${index}.inputs`
    const missing = inputs.filter((input) => isMissing(input, given))
    const unknown = [...given].filter((name) => !known.has(name))
    return [
      ...(fault === null ? [] : [{ path: `triggers.${index}.cron`, reason: fault }]),
      ...missing.map(({ name }) => ({ path, reason: `the input ${JSON.stringify(name)} is missing` })),
      ...unknown.map((name) => ({ path, reason: `there is no input ${JSON.stringify(name)}` })),
    ]
  })
}

/** Whether a run without this input cannot begin. */
export const isMissing = (
  { name, required, default: value }: AgentDefinition['inputs'][number],
  given: { has(name: string): boolean },
): boolean => required && value === undefined && !given.has(name)

function visibilityIssues({ visibility, group_ids: groups }: AgentDefinition): DefinitionIssue[] {
  if (visibility === 'groups' && groups.length === 0) {
    return [{ path: 'group_ids', reason: 'must name at least one group for the visibility groups' }]
  }
  if (visibility === 'groups' || groups.length === 0) return []
  return [{ path: 'group_ids', reason: 'goes with the visibility groups only' }]
}
