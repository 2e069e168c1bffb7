/** Where a response stands in its object. */
export type Phase =
  /** Its request is read, and its first turn admitted. Not visible to anybody. */
  | 'admitting'
  /** A model call is open: its answer is streamed. */
  | 'generating'
  /** The turn has ended with calls of tools that run on this side; their intents and results are stored. */
  | 'running_tools'
  /** The turn is stored and another one follows. Nothing is under way. */
  | 'between_turns'
  /** What it became is stored; its last event is not told yet. */
  | 'ending'
  | 'ended'
  /** It is rolled back or deleted: its rows, content and events go. Not visible any more. */
  | 'removing'

interface PhaseRules {
  to: readonly Phase[]
  /** Whether its owner sees it. */
  visible: boolean
  /**
   * What the next life of the object does: `resume` goes on from what is stored, `fail` ends the response as interrupted,
   * `finish` tells the end that is stored, `roll_back` removes what there is.
   */
  restart: 'roll_back' | 'fail' | 'resume' | 'finish' | 'nothing'
}

/** Every phase with the phases that may follow it. A response that is removed is so from any phase. */
export const PHASES: Readonly<Record<Phase, PhaseRules>> = {
  admitting: { to: ['generating'], visible: false, restart: 'roll_back' },
  // What a model was saying cannot be continued, and its call may have been charged.
  generating: { to: ['running_tools', 'between_turns', 'ending'], visible: true, restart: 'fail' },
  running_tools: { to: ['between_turns', 'ending'], visible: true, restart: 'resume' },
  between_turns: { to: ['generating', 'ending'], visible: true, restart: 'resume' },
  ending: { to: ['ended'], visible: true, restart: 'finish' },
  ended: { to: [], visible: true, restart: 'nothing' },
  removing: { to: [], visible: false, restart: 'roll_back' },
}

/** @throws for a transition that the table does not have. */
export function checkTransition(from: Phase, to: Phase): void {
  if (from === to || to === 'removing' || PHASES[from].to.includes(to)) return
  throw new Error(`a response that is ${from} cannot become ${to}`)
}

/** Whether something is to be told of it yet. */
export const isUnderWay = (phase: Phase): boolean => PHASES[phase].visible && phase !== 'ended'
