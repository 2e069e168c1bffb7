import { hasChanges } from './plan.ts'
import type { DeploymentPlan, PlannedStep } from './plan-types.ts'
import type { DeploySettings } from './settings.ts'

const SIGNS = { create: '+', change: '~', same: '=' } as const

/** A longer line has each detail on one of its own. */
const LONGEST_LINE = 120

/** The plan as text: a line for each step, then what a failed test does not undo. */
export function renderPlan(settings: DeploySettings, accountName: string, plan: DeploymentPlan): string {
  const counted = (action: PlannedStep['action']) =>
    plan.steps.filter((step) => step.action === action).length
  const counts = `create ${counted('create')} · change ${counted('change')} · same ${counted('same')}`
  const width = Math.max(...plan.steps.map(({ step }) => step.length))
  const lines = plan.steps.map((step) => renderStep(step, width))
  const kept = plan.steps.filter(({ action, irreversible }) => action !== 'same' && irreversible !== null)
  return [
    `Plan for account ${accountName} (${settings.account.slice(0, 6)}…), stage ${settings.stage}   ${counts}`,
    ...lines,
    ...(kept.length > 0 ? ['Not undone by a failed test:'] : []),
    ...kept.map(({ step, name, irreversible }) => `  ! ${step} ${name}: ${irreversible}`),
    ...(plan.problems.length > 0 ? ['This cannot be applied:'] : []),
    ...plan.problems.map((problem) => `  ! ${problem}`),
    ...(hasChanges(plan) || plan.problems.length > 0 ? [] : ['no change']),
  ].join('\n')
}

function renderStep({ step, name, action, details }: PlannedStep, width: number): string {
  const start = `  ${SIGNS[action]} ${step.padEnd(width)}  `
  const line = start + [name, ...details].join('   ')
  return line.length <= LONGEST_LINE
    ? line.trimEnd()
    : start + [name, ...details].join(`\n${' '.repeat(start.length)}`)
}
