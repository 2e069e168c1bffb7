import type { Slices } from '../../lib/slices.ts'
import { HEARTBEAT_COMMENT } from '../../lib/sse.ts'
import { ConverseScan } from './converse-scan.ts'
import { ConverseStreamReader } from './converse-stream-reader.ts'
import type { AnswerContext, AnswerReading, Protocol } from './protocol.ts'
import { usageOfConverse } from './reported-usage.ts'
import { CHAT_REQUEST_TEXTS } from './request-inspection.ts'

/**
 * The protocol of Bedrock for all its models (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html).
 * No caller speaks it, so that only answers are read; requests are written by translation.
 */
export const converse: Protocol = {
  outline: notACallersProtocol,
  requestTexts: CHAT_REQUEST_TEXTS,
  removals: [],
  usageIsOptional: false,
  readAnswer,
  streamReader: (context) => new ConverseStreamReader(context),
  dialect: { heartbeat: HEARTBEAT_COMMENT, failure: notACallersProtocol },
}

function notACallersProtocol(): never {
  throw new Error('Converse is not a protocol of callers')
}

function* readAnswer(body: Uint8Array, context: AnswerContext): Slices<AnswerReading> {
  const scan = new ConverseScan(body, context, false)
  yield* scan.read()
  scan.removeSignatures()
  context.inspection.endUnit(body.length)
  const isError = scan.hasError && !scan.hasOutput
  return {
    edits: scan.edits,
    isError,
    usage: usageOfConverse(scan.parse('usage')),
    textBytes: scan.textBytes,
  }
}
