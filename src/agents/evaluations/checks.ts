import type { ReadBudget } from '../../lib/counted-reads.ts'
import type { StepCheck } from '../../wire/agents.ts'
import { schemaFault, schemaReads } from '../runs/step-output.ts'
import type { Evidence } from './evidence.ts'

/** A check of a step, and whether it passed: null where that cannot be known. */
interface CheckResult {
  type: StepCheck['type']
  passed: boolean | null
}

/** Checks a step without a model, in the order of its definition. */
export function checkStep(checks: readonly StepCheck[], evidence: Evidence): CheckResult[] {
  const budget = schemaReads()
  return checks.map((check) => ({ type: check.type, passed: passes(check, evidence, budget) }))
}

function passes(check: StepCheck, { output, toolCalls }: Evidence, budget: ReadBudget): boolean | null {
  switch (check.type) {
    case 'not_empty':
      return output.trim() !== ''
    case 'contains':
      return output.includes(check.text)
    case 'not_contains':
      return !output.includes(check.text)
    case 'json_schema':
      return schemaFault(check.schema, output, budget) === null
    case 'tool_called':
      return toolCalls?.some(({ name }) => name === check.tool) ?? null
    case 'tool_not_called':
      return toolCalls?.every(({ name }) => name !== check.tool) ?? null
  }
}

const LONGEST_TEXT = 200

/** Describes a check, for the explanation of a verdict. */
export function checkText(check: StepCheck): string {
  switch (check.type) {
    case 'not_empty':
      return 'the output is not empty'
    case 'contains':
      return `the output contains ${quoted(check.text)}`
    case 'not_contains':
      return `the output does not contain ${quoted(check.text)}`
    case 'json_schema':
      return 'the output is JSON that fits the schema'
    case 'tool_called':
      return `the tool ${quoted(check.tool)} was called`
    case 'tool_not_called':
      return `the tool ${quoted(check.tool)} was not called`
  }
}

const quoted = (text: string): string =>
  JSON.stringify(text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT).toWellFormed()}…` : text)
