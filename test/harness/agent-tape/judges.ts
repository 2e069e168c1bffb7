import { judgement } from '../../http/support/agents.ts'
import { answered, slowed } from '../routed-model.ts'
import { uniqueName } from '../tenant.ts'
import type { ScriptStep } from '../upstream.ts'

/** How the steps of a run are judged: by a check that fails, or by a model that answers in one of these ways. */
export const JUDGES = ['checks', 'met', 'slow', 'unusable'] as const
export type Judge = (typeof JUDGES)[number]

const QUOTE = 'The step is done.'
const MET = answered('chat', judgement({ quote: QUOTE, met: true }), true)

/** The upstream's answer to a judge; null for a judge without a model. */
export const JUDGE_ANSWERS: Record<Judge, ScriptStep[] | null> = {
  checks: null,
  met: MET,
  slow: slowed(MET, 1_000),
  unusable: answered('chat', 'It is done.', true),
}

/** Names of the scripts of judges: the judge's request is the only one that has it. */
export type JudgeScripts = Readonly<Record<Judge, string>>

export const newJudgeScripts = (): JudgeScripts => ({
  checks: uniqueName('judge'),
  met: uniqueName('judge'),
  slow: uniqueName('judge'),
  unusable: uniqueName('judge'),
})

/** A text that no answer contains. */
const NEVER_SAID = 'never said'

/** The members of a step that say how it is judged. */
export const judgedBy = (judge: Judge, scripts: JudgeScripts) =>
  judge === 'checks'
    ? { objective: `The answer has "${NEVER_SAID}".`, checks: [{ type: 'contains', text: NEVER_SAID }] }
    : { objective: `${QUOTE} script:${scripts[judge]}` }
