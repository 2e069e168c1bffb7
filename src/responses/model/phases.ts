/** The phase of a response in its object. */
export type Phase =
  /** The request is being loaded, and the first turn admitted. Not visible to the owner. */
  | 'admitting'
  /** The first model call is open, and nothing was generated: a failure is an HTTP error. Not visible to the owner. */
  | 'dispatching'
  /** The context is summarized by model calls, one after the other, before the next turn. */
  | 'compacting'
  /** A model call is open, and its answer is streamed. */
  | 'generating'
  /** The turn has ended with calls of server-side tools. Their intents and results are stored. */
  | 'running_tools'
  /** The turn is stored and another one follows. No call is open. */
  | 'between_turns'
  /** The final response is stored. Its last event is not emitted yet. */
  | 'ending'
  | 'ended'
  /** The response is rolled back or deleted, with its rows, content and events. Not visible to the owner. */
  | 'removing'

interface PhaseRules {
  to: readonly Phase[]
  /** Whether the owner can read the response. */
  visible: boolean
  /**
   * What a restarted object does: `resume` continues from the stored state; `ask_again` continues before the
   * interrupted call if the response repeats turns (`interrupted-turn.ts`), and else ends as interrupted; `finish`
   * emits the stored end; `roll_back` deletes the response.
   */
  restart: 'roll_back' | 'ask_again' | 'resume' | 'finish' | 'nothing'
}

/** Every phase with the phases that may follow it. `removing` may follow any phase. */
export const PHASES: Readonly<Record<Phase, PhaseRules>> = {
  admitting: { to: ['dispatching'], visible: false, restart: 'roll_back' },
  // Calls that the request approves run before the first turn.
  dispatching: { to: ['generating', 'compacting', 'running_tools'], visible: false, restart: 'roll_back' },
  // The answer of a model cannot be continued, and its call may have been charged.
  compacting: { to: ['between_turns', 'ending'], visible: true, restart: 'ask_again' },
  generating: { to: ['running_tools', 'between_turns', 'ending'], visible: true, restart: 'ask_again' },
  running_tools: { to: ['between_turns', 'ending'], visible: true, restart: 'resume' },
  between_turns: { to: ['generating', 'compacting', 'ending'], visible: true, restart: 'resume' },
  ending: { to: ['ended'], visible: true, restart: 'finish' },
  ended: { to: [], visible: true, restart: 'nothing' },
  removing: { to: [], visible: false, restart: 'roll_back' },
}

/** @throws for a transition that the table does not have. */
export function checkPhaseTransition(from: Phase, to: Phase): void {
  if (from === to || to === 'removing' || PHASES[from].to.includes(to)) return
  throw new Error(`a response that is ${from} cannot become ${to}`)
}

/** Whether events of the response are still to be emitted. */
export const isUnfinished = (phase: Phase): boolean => PHASES[phase].visible && phase !== 'ended'

/** Whether the response is neither at its end nor being removed. */
export const isUnended = (phase: Phase): boolean => phase !== 'ended' && phase !== 'removing'
