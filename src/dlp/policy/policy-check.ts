import { DIRECTIONS, type PolicyBody } from '../../wire/dlp.ts'
import { compilePattern } from '../detectors/custom/patterns.ts'
import { BUILT_IN_DETECTORS, type BuiltInDetector } from '../detectors/registry.ts'

/** A fault of a policy, and its place. */
interface PolicyIssue {
  path: string
  reason: string
}

/** Capabilities of the engine: the detectors and patterns that policies can use. */
interface Capabilities {
  detectors: readonly BuiltInDetector[]
  /** @throws Error with a message for the author of a pattern that cannot be run in linear time. */
  checkPattern(source: string, ignoreCase: boolean): void
}

const ENGINE: Capabilities = {
  detectors: BUILT_IN_DETECTORS,
  checkPattern: (source, ignoreCase) => {
    compilePattern(source, ignoreCase ? 'i' : '')
  },
}

/**
 * The issues of a policy of the right shape: unknown detectors, and parts that could never have an effect. A misspelt
 * rule must not look like a protection.
 */
export function policyIssues(body: PolicyBody, capabilities: Capabilities = ENGINE): PolicyIssue[] {
  return [
    ...customIssues(body, capabilities),
    ...body.rules.flatMap((rule, index) => {
      const reason = ruleIssue(body, rule, capabilities.detectors)
      return reason === null ? [] : [{ path: `rules.${index}`, reason }]
    }),
    ...DIRECTIONS.filter(
      (direction) => body.uninspectable[direction] !== undefined && !body.directions.includes(direction),
    ).map((direction) => ({
      path: `uninspectable.${direction}`,
      reason: 'is not among the directions of the policy',
    })),
  ]
}

function customIssues(body: PolicyBody, { detectors, checkPattern }: Capabilities): PolicyIssue[] {
  const issues: PolicyIssue[] = []
  const seen = new Set(detectors.map(({ id }) => id))
  const all = body.rules.some(({ category }) => category === 'custom')
  for (const kind of ['patterns', 'dictionaries'] as const) {
    for (const [index, { id }] of body[kind].entries()) {
      const path = `${kind}.${index}.id`
      if (seen.has(id)) issues.push({ path, reason: 'is taken by another pattern, dictionary or detector' })
      else if (!all && !body.rules.some(({ custom }) => custom === id)) {
        issues.push({ path, reason: 'is used by no rule' })
      }
      seen.add(id)
    }
  }
  for (const [index, { pattern, ignore_case: ignoreCase }] of body.patterns.entries()) {
    try {
      checkPattern(pattern, ignoreCase)
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'cannot be used'
      issues.push({ path: `patterns.${index}.pattern`, reason })
    }
  }
  return issues
}

function ruleIssue(
  { patterns, dictionaries }: PolicyBody,
  { detector, category, custom, minimum_score: minimum = 0 }: PolicyBody['rules'][number],
  detectors: readonly BuiltInDetector[],
): string | null {
  if (detector !== undefined) {
    return detectors.some(({ id }) => id === detector) ? null : `there is no detector ${detector}`
  }
  const own = [...patterns, ...dictionaries]
  const meant = custom === undefined ? own : own.filter(({ id }) => id === custom)
  if (category === undefined || category === 'custom') {
    if (meant.length === 0) {
      return custom === undefined
        ? 'the policy has no pattern and no dictionary'
        : `the policy has no pattern or dictionary ${custom}`
    }
    return meant.every(({ score }) => score < minimum)
      ? 'minimum_score is above every score it can have'
      : null
  }
  return detectors.some((one) => one.category === category) ? null : `there is no detector of ${category}`
}
