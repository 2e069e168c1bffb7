import { jsonReply, vendorStreamHeaders } from '../reply.ts'
import type { ScriptRequest } from '../script-request.ts'
import type { Step } from '../script-steps.ts'

/** An answer in the forms of both protocols. */
export interface AnswerForms {
  /** The frames of the stream; the last one is its end. */
  frames: string[]
  /** JSON text of the whole answer. */
  body: string
}

/** Sends an answer in the requested form, whole or streamed. */
export function* sendAnswer(request: ScriptRequest, answer: AnswerForms): Iterable<Step> {
  if (request.stream) {
    yield { status: 200, headers: vendorStreamHeaders(request.dialect) }
    yield { sse: answer.frames }
  } else yield { status: 200, headers: jsonReply(request.dialect, 200, '').headers, body: answer.body }
}
