import type { GovernedCall } from '../../calls/governed-call.ts'
import type { SentTurn } from '../../gateway/model-turn.ts'
import { readSummary, type SummaryAnswer } from '../compaction/read-summary.ts'
import type { ResponseEmitter } from '../emitter/emitter.ts'
import type { EngineProgress } from './engine-progress.ts'

/** A call of an engine that was sent, or could not be. */
export interface DispatchedCall {
  sent: SentTurn
  call: GovernedCall
}

/**
 * Emits the answer to a turn, and settles its call.
 *
 * @throws the error of a call that failed, and that of an answer that failed
 */
export async function emitAnswer(
  { sent, call }: DispatchedCall,
  emitter: ResponseEmitter,
  progress: EngineProgress,
): Promise<void> {
  try {
    if (sent.kind === 'failed') throw sent.error
    emitter.origin = sent.origin
    for await (const batch of sent.batches) {
      for (const event of batch) emitter.model(event)
    }
  } finally {
    await progress.settleAnswer(call, sent.outcome, () => emitter.turnUsage)
  }
}

/**
 * Reads the answer to a part of a compaction, and settles its call.
 *
 * @returns the summary so far
 * @throws the error of a call that failed, and that of an answer that has no summary
 */
export async function summaryOf({ sent, call }: DispatchedCall, progress: EngineProgress): Promise<string> {
  const answer: SummaryAnswer = { text: '', usage: null }
  const before = progress.current.usage?.output ?? 0
  try {
    if (sent.kind === 'failed') throw sent.error
    await readSummary(sent, answer)
    return answer.text
  } finally {
    await progress.settleAnswer(call, sent.outcome, () => answer.usage)
    progress.storeSummaryOutput((progress.current.usage?.output ?? 0) - before)
  }
}
