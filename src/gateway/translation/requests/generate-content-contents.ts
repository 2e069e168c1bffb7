import { type Json, present } from '../../protocols/json.ts'
import type { TargetModel } from '../target-model.ts'
import type {
  CallPart,
  CanonicalPart,
  CanonicalTurn,
  MediaPart,
  ReasoningPart,
  ResultPart,
  TextPart,
} from './canonical-request.ts'
import { geminiModel, takesThinkingLevels } from './generate-content-models.ts'
import { FOLLOWS } from './messages-conversation.ts'

/**
 * The value that stands for a signature that the caller no longer has, or that another model made. From Gemini 3 on a call
 * without one is refused (https://ai.google.dev/gemini-api/docs/thought-signatures).
 */
const NO_SIGNATURE = 'skip_thought_signature_validator'

/**
 * `contents` of a generateContent request. A signature stands on the part that had it; of parallel calls only the first has
 * one. Parts are never merged: the signature of one would sign the text of another.
 */
export function contentsOf(turns: readonly CanonicalTurn[], target: TargetModel): Json[] {
  return turns.map(({ role, parts }) =>
    role === 'user'
      ? { role: 'user', parts: userParts(parts, target) }
      : { role: 'model', parts: modelParts(parts, target) },
  )
}

/** Results stand first; media of them follow, because a result is an object. */
function userParts(parts: readonly CanonicalPart[], target: TargetModel): Json[] {
  const results = parts.filter((part) => part.kind === 'result')
  const shown = results.flatMap(({ content }) => content.filter(isMedia))
  return [
    ...results.map((result) => functionResponse(result, target)),
    ...[...shown, ...parts].flatMap((part) =>
      part.kind === 'text' ? [{ text: part.text }] : isMedia(part) ? [inlineDataOf(part)] : [],
    ),
  ]
}

const isMedia = (part: CanonicalPart): part is MediaPart =>
  part.kind === 'image' || part.kind === 'document' || part.kind === 'audio'

const inlineDataOf = ({ mediaType, data }: MediaPart): Json => ({ inlineData: { mimeType: mediaType, data } })

function functionResponse({ id, name, content, isError }: ResultPart, target: TargetModel): Json {
  const texts = content.filter((part): part is TextPart => part.kind === 'text').map(({ text }) => text)
  const text = texts.length === 0 && content.length > 0 ? FOLLOWS : texts.join('\n')
  const response = isError ? { error: text } : { output: text }
  return { functionResponse: { ...callId(id, target), name, response } }
}

/** Vertex refuses ids: it matches results to calls by their order. */
const callId = (id: string, { omitsCallIds }: TargetModel): Json => (omitsCallIds ? {} : { id })

/**
 * Readable thoughts are summaries, which the vendor does not take back. Their signature is that of the call that follows
 * them, and without one that of a part without text, as it is on streams.
 */
function modelParts(parts: readonly CanonicalPart[], target: TargetModel): Json[] {
  const written: Json[] = []
  const needsSignature = takesThinkingLevels(geminiModel(target.upstreamModel))
  let called = false
  for (const [index, part] of parts.entries()) {
    if (part.kind === 'text') written.push({ text: part.text })
    else if (part.kind === 'call') {
      const before = parts[index - 1]
      const found = part.signature ?? (before?.kind === 'reasoning' ? before.signature : null)
      const signature = found ?? (needsSignature && !called ? NO_SIGNATURE : null)
      called = true
      written.push(functionCall(part, signature, target))
    } else if (part.kind === 'reasoning' && !belongsToCall(part, parts[index + 1])) {
      if (part.signature !== null) written.push({ text: '', thoughtSignature: part.signature })
    }
  }
  return written
}

const belongsToCall = ({ signature }: ReasoningPart, next: CanonicalPart | undefined): boolean =>
  signature !== null && next?.kind === 'call' && next.signature === null

function functionCall({ id, name, input }: CallPart, signature: string | null, target: TargetModel): Json {
  return present({
    functionCall: { ...callId(id, target), name, args: input },
    thoughtSignature: signature ?? undefined,
  })
}
