import type { Random } from '../../faults/support/random.ts'
import { callTool, framesOf, type Part } from '../../http/support/dlp-answers.ts'
import { ANSWER_COST, answered, failed, slowed } from '../routed-model.ts'
import { uniqueName } from '../tenant.ts'
import type { ScriptStep } from '../upstream.ts'
import { JUDGES, type Judge } from './judges.ts'

/** An answer of the model, with its cost by `PRICES` in micro-credits if it is served whole. */
export interface ScriptedAnswer {
  steps: ScriptStep[]
  cost: number
}

/** A step of a run: how the model answers one request after the other, and what has to come of it. */
export interface PlannedStep {
  kind: StepKind
  /** Text that every request of this step has, and no other one. */
  mark: string
  /** The last answer repeats. */
  answers: ScriptedAnswer[]
  /** Model calls of an attempt that is not interrupted. */
  turns: number
  /** Its output; null for a step that fails. */
  output: string | null
  /** Texts of the calls of the tool `add`, and lines in the file `log`. */
  effects: string[]
}

const KINDS = [
  'text',
  'text',
  'slow',
  'tool',
  'two tools',
  'shell',
  'fails once',
  'fails',
  'fails after a tool',
] as const
export type StepKind = (typeof KINDS)[number]

/** Events of one run. */
export interface PlannedRun {
  steps: PlannedStep[]
  judge: Judge
  idempotencyKey: string
  /** How often it is requested, at the same time. */
  requests: number
  /** Milliseconds after its beginning; null: not cancelled. */
  cancelledAfter: number | null
  /** How often its failed step is repeated. */
  reruns: number
  /** Whether it is restarted when it has ended. */
  restarts: boolean
  /** Whether a client reads its stream from the beginning on. */
  watched: boolean
}

/** Cost of the usage of `framesOf`, by `PRICES`. */
const CALL_COST = 3 + 5 * 5

/** @param tool name of the tool `add` as models call it. */
export function plannedRun(random: Random, tool: string): PlannedRun {
  return {
    steps: Array.from({ length: random.integer(1, 3) }, () => plannedStep(random, tool)),
    judge: random.pick(JUDGES),
    idempotencyKey: uniqueName('key'),
    requests: random.pick([1, 1, 2, 3]),
    cancelledAfter: random.chance(0.12) ? random.integer(0, 2_500) : null,
    reruns: random.integer(0, 2),
    restarts: random.chance(0.1),
    watched: random.chance(0.3),
  }
}

function plannedStep(random: Random, tool: string): PlannedStep {
  const kind = random.pick(KINDS)
  const mark = uniqueName('step')
  const text = { steps: answered('chat', `Done ${mark}.`, true), cost: ANSWER_COST }
  const error = { steps: failed(400), cost: 0 }
  const step = (answers: ScriptedAnswer[], effects: string[] = []): PlannedStep => {
    const fails = kind === 'fails' || kind === 'fails after a tool'
    const turns = kind === 'fails' || kind === 'fails once' ? 1 : answers.length
    return { kind, mark, answers, turns, output: fails ? null : `Done ${mark}.`, effects }
  }
  const add = (effect: string) => callAnswer(callTool(tool, { text: effect }))
  switch (kind) {
    case 'text':
      return step([text])
    case 'slow':
      return step([{ ...text, steps: slowed(text.steps, random.integer(200, 2_500)) }])
    case 'tool':
      return step([add(mark), text], [mark])
    case 'two tools':
      return step([add(`${mark}.a`), add(`${mark}.b`), text], [`${mark}.a`, `${mark}.b`])
    case 'shell': {
      const commands = [`echo ${mark} >> log; sleep 0.05`]
      const call = callTool('shell', { commands, timeout_ms: null, max_output_length: null })
      return step([callAnswer(call), text], [mark])
    }
    case 'fails once':
      return step([error, text])
    case 'fails':
      return step([error])
    case 'fails after a tool':
      return step([add(mark), error], [mark])
  }
}

/** The id of its call is unique in the run, as those of models are. */
function callAnswer(call: Part): ScriptedAnswer {
  const id = JSON.stringify(uniqueName('call'))
  const sse = framesOf('chat', [call]).map((frame) => frame.replace('"call_0"', id))
  return { steps: [{ headers: { 'content-type': 'text/event-stream' } }, { sse }], cost: CALL_COST }
}
