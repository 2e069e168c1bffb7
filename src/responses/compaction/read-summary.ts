import { TurnFailure } from '../../gateway/calls/turn-failure.ts'
import type { SentTurn } from '../../gateway/model-turn.ts'
import type { Usage } from '../../ledger/audit-record.ts'
import { isCut } from '../model/response-end.ts'

/** An answer that a model wrote so far. */
export interface SummaryAnswer {
  text: string
  /** Usage as far as the upstream has reported it. */
  usage: Usage | null
}

/**
 * Reads the answer of a model as a summary. Calls of tools are ignored.
 * @param answer to be filled while it is read.
 * @throws TurnFailure for an answer without a text, for a refusal, and as the batches do.
 */
export async function readSummary(
  sent: Extract<SentTurn, { kind: 'answered' }>,
  answer: SummaryAnswer,
): Promise<void> {
  let refused = false
  for await (const batch of sent.batches) {
    for (const event of batch) {
      if (event.type === 'text' && event.choice === 0) answer.text += event.text
      else if (event.type === 'usage' || event.type === 'start') answer.usage = event.usage ?? answer.usage
      else if (event.type === 'refusal') refused = true
      else if (event.type === 'stop') {
        refused ||= event.reason === 'refusal'
        if (isCut(event.reason)) answer.text += CUT
      }
    }
  }
  if (refused || answer.text.replace(CUT, '').trim() === '') throw noSummary()
}

const CUT = '\n[The summary was cut off here.]'

const noSummary = () =>
  new TurnFailure('The model did not write a summary of the conversation. Try again, or use another model.', {
    status: 502,
    code: 'upstream_empty_body',
  })
