import { invalidRequest } from '../../../lib/api-error.ts'
import { type Json, present, textOf } from '../../protocols/json.ts'
import type { TargetModel } from '../target-model.ts'
import { audioOfData, fileOfData, imageOfUrl } from './canonical-media.ts'
import type { CanonicalPart, CanonicalRequest, MediaPart, TextPart } from './canonical-request.ts'
import { canonicalSettings } from './canonical-settings.ts'
import { CanonicalTurns, textParts } from './canonical-turns.ts'
import { type AssistantPart, conversationOfResponses, type Thought } from './responses-conversation.ts'
import type { Part } from './responses-parts.ts'
import { settingsOfResponses } from './responses-settings.ts'
import { type OwnDefinitions, ResponsesTools } from './responses-tools.ts'

/**
 * A turn of the responses protocol as a canonical request. `RESPONSES_ITEMS` has the treatment of each item,
 * `RESPONSES_TO_CANONICAL` that of each member.
 * @param own tools of this service that are left out of the request.
 * @throws ApiError invalid_request naming the member or item that is invalid or has no equivalent.
 */
export function canonicalOfResponses(
  request: Json,
  target: TargetModel,
  own: OwnDefinitions | null,
): CanonicalRequest {
  const settings = settingsOfResponses(request)
  const offered = new ResponsesTools(request.tools, own)
  const chat = present({
    max_completion_tokens: settings.maxTokens,
    stream: settings.stream,
    ...settings.sampling,
    tools: offered.asFunctions('messages'),
    tool_choice: offered.choice(request.tool_choice),
    parallel_tool_calls: offered.parallel(request.parallel_tool_calls),
    reasoning_effort: settings.effort,
    response_format: settings.format,
  })
  const { reasoning, ...others } = canonicalSettings(chat, 'text.format.schema')
  const shows = settings.summary !== undefined && reasoning.effort !== 'none'
  return {
    ...conversationOf(request, offered, target),
    ...others,
    reasoning: { ...reasoning, shows },
  }
}

function conversationOf(
  request: Json,
  offered: ResponsesTools,
  target: TargetModel,
): Pick<CanonicalRequest, 'system' | 'turns'> {
  const turns = new CanonicalTurns()
  for (const step of conversationOfResponses(request, offered)) {
    if (step.role === 'system') turns.addSystem(step.texts.map((text) => ({ kind: 'text', text })))
    else if (step.role === 'user') turns.add('user', step.parts.flatMap(partsOf))
    else addStep(turns, step.parts, target)
  }
  return turns.finish('input: at least one item must have content.')
}

/** The results of a step follow its calls, wherever their outputs stood. */
function addStep(turns: CanonicalTurns, parts: readonly AssistantPart[], target: TargetModel): void {
  const results: CanonicalPart[] = []
  turns.ids.nextTurn()
  const written = parts.flatMap((part): CanonicalPart[] => {
    if (part.kind === 'thought') return reasoningOf(part.thought, target)
    if (part.kind !== 'call') return textParts(part.text)
    const { callId, name, arguments: json, output } = part.call
    const call = turns.call(callId, name, json, null)
    const result = turns.result(callId, output.flatMap(partsOf), false, undefined)
    if (result) results.push({ ...result, id: call.id, name })
    return [call]
  })
  turns.add('assistant', written)
  turns.add('user', results)
}

/** Thinking without proof that it is of the target's own origin is dropped. */
function reasoningOf({ text, signature, redacted, origin }: Thought, target: TargetModel): CanonicalPart[] {
  const isOwn = origin !== undefined && origin === target.origin
  if (!isOwn || (signature === undefined && redacted === undefined)) return []
  return [{ kind: 'reasoning', text, signature: signature ?? null, redacted: redacted ?? null }]
}

/** @throws ApiError for media by URL. */
function partsOf(part: Part): Array<TextPart | MediaPart> {
  if (part.kind === 'image') return [imageOfUrl(part.url, part.place)]
  if (part.kind === 'audio') {
    return [audioOfData(textOf(part.audio.data), textOf(part.audio.format), `${part.place}.input_audio`)]
  }
  if (part.kind !== 'file') return textParts(part.text)
  if (part.data) return [fileOfData(part.data, part.name, part.place)]
  throw invalidRequest(
    `${part.place}.file_url: files by URL are not supported by this model: send file_data.`,
  )
}
