import type { Slices } from '../../lib/slices.ts'
import { HEARTBEAT_COMMENT } from '../../lib/sse.ts'
import { GenerateContentScan } from './generate-content-scan.ts'
import { GenerateContentStreamReader } from './generate-content-stream-reader.ts'
import type { AnswerContext, AnswerReading, Protocol } from './protocol.ts'
import { usageOfGenerateContent } from './reported-usage.ts'
import { CHAT_REQUEST_TEXTS } from './request-inspection.ts'

/**
 * Gemini's own protocol (https://ai.google.dev/api/generate-content). No caller speaks it, so that only answers are read;
 * requests are written by translation.
 */
export const generateContent: Protocol = {
  outline: notACallersProtocol,
  requestTexts: CHAT_REQUEST_TEXTS,
  removals: [],
  usageIsOptional: false,
  readAnswer,
  streamReader: (context) => new GenerateContentStreamReader(context),
  dialect: { heartbeat: HEARTBEAT_COMMENT, failure: notACallersProtocol },
}

function notACallersProtocol(): never {
  throw new Error('generateContent is not a protocol of callers')
}

function* readAnswer(body: Uint8Array, context: AnswerContext): Slices<AnswerReading> {
  const scan = new GenerateContentScan(body, context, false)
  yield* scan.read()
  scan.removeSignatures()
  context.inspection.endUnit(body.length)
  const isError = scan.error !== null && !scan.hasCandidates
  const usage = usageOfGenerateContent(scan.usageValue())
  return { edits: scan.edits, isError, usage, textBytes: scan.textBytes }
}
