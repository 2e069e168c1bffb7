import { isPresent, type Json, present } from '../../protocols/json.ts'
import { can, type TargetModel } from '../target-model.ts'
import { CHAT_TO_CANONICAL, MESSAGES_TO_CANONICAL, RESPONSES_TO_CANONICAL } from './canonical-members.ts'
import { canonicalOfChat } from './canonical-of-chat.ts'
import { canonicalOfMessages } from './canonical-of-messages.ts'
import { canonicalOfResponses } from './canonical-of-responses.ts'
import type {
  CanonicalRequest,
  CanonicalTool,
  CanonicalToolChoice,
  ExpressedFields,
  TextPart,
} from './canonical-request.ts'
import { COMPLETION_MEMBERS } from './completion-members.ts'
import { completionToChat, defaultCompletionTokens } from './completions-to-chat.ts'
import { contentsOf } from './generate-content-contents.ts'
import { geminiFormat } from './generate-content-format.ts'
import { checkedChoices, geminiModel, takesPenalties } from './generate-content-models.ts'
import { thinkingConfig } from './generate-content-thinking.ts'
import { droppedMembers } from './member-rules.ts'
import type { ConvertedRequest } from './output-format.ts'
import type { OwnDefinitions } from './responses-tools.ts'

/** Requests of all callers as generateContent requests (https://ai.google.dev/api/generate-content). */

export function chatToGenerateContent(request: Json, target: TargetModel): ConvertedRequest {
  const { expressed, ...converted } = writeGenerateContent(canonicalOfChat(request, target), target, false)
  return { ...converted, dropped: droppedMembers(request, CHAT_TO_CANONICAL, expressed) }
}

/** A completion is plain text, so the model reasons as little as it can. */
export function completionToGenerateContent(request: Json, target: TargetModel): ConvertedRequest {
  const chat = completionMembers(request, target)
  const { expressed, ...converted } = writeGenerateContent(canonicalOfChat(chat, target), target, false)
  const dropped = [
    ...droppedMembers(request, COMPLETION_MEMBERS, chat),
    ...droppedMembers(chat, CHAT_TO_CANONICAL, expressed),
  ].filter((name) => isPresent(request[name]))
  return { ...converted, dropped: [...new Set(dropped)] }
}

function completionMembers(request: Json, target: TargetModel): Json {
  const chat = completionToChat(request)
  if (!can(target, 'reasoning')) return chat
  const maxTokens = request.max_tokens ?? defaultCompletionTokens(target.capabilities)
  return { ...chat, max_tokens: maxTokens, reasoning_effort: 'none' }
}

export function messagesToGenerateContent(request: Json, target: TargetModel): ConvertedRequest {
  const { expressed, ...converted } = writeGenerateContent(
    canonicalOfMessages(request, target),
    target,
    false,
  )
  return { ...converted, dropped: droppedMembers(request, MESSAGES_TO_CANONICAL, expressed) }
}

export function responsesToGenerateContent(
  request: Json,
  target: TargetModel,
  own: OwnDefinitions | null,
): ConvertedRequest {
  const canonical = canonicalOfResponses(request, target, own)
  const { expressed, ...converted } = writeGenerateContent(canonical, target, true)
  return { ...converted, dropped: droppedMembers(request, RESPONSES_TO_CANONICAL, expressed) }
}

interface WrittenRequest extends Omit<ConvertedRequest, 'dropped'> {
  expressed: ExpressedFields
}

/**
 * @param instructsBesideTools see `ToolsBeside`.
 * @returns the body, which names neither the model nor the stream: both are in the address.
 * @throws ApiError invalid_request
 */
function writeGenerateContent(
  request: CanonicalRequest,
  target: TargetModel,
  instructsBesideTools: boolean,
): WrittenRequest {
  const { system, turns, tools, toolChoice, format, sampling, stop, reasoning } = request
  const mayCallTools = tools.length > 0 && toolChoice.mode !== 'none'
  const { members, instruction } = geminiFormat(format, target, {
    mayCallTools,
    instructs: instructsBesideTools,
  })
  const maxTokens = Math.min(request.maxTokens ?? target.maxOutputTokens, target.maxOutputTokens)
  const choices = checkedChoices(request.choices, request.stream)
  const thinking = thinkingConfig(reasoning, target, maxTokens)
  const { presencePenalty, frequencyPenalty, ...others } = sampling
  const penalizes = takesPenalties(geminiModel(target.upstreamModel))
  const generationConfig = present({
    ...others,
    seed: isInt32(sampling.seed) ? sampling.seed : undefined,
    ...(penalizes && { presencePenalty, frequencyPenalty }),
    candidateCount: choices > 1 ? choices : undefined,
    maxOutputTokens: request.maxTokens === undefined ? undefined : maxTokens,
    stopSequences: stop.length > 0 ? stop : undefined,
    ...members,
    thinkingConfig: thinking,
  })
  const body = present({
    systemInstruction: systemInstruction(system, instruction),
    contents: contentsOf(turns, target),
    tools: tools.length > 0 ? [{ functionDeclarations: tools.map(declarationOf) }] : undefined,
    toolConfig: toolConfig(tools, toolChoice),
    generationConfig: Object.keys(generationConfig).length > 0 ? generationConfig : undefined,
  })
  return {
    body,
    jsonByInstruction: instruction !== null && !isPresent(generationConfig.responseMimeType),
    expressed: expressedFields(request, generationConfig, target),
  }
}

/** Fields whose members of `generationConfig` have their names. */
const SAMPLING_FIELDS = [
  'frequencyPenalty',
  'presencePenalty',
  'seed',
  'temperature',
  'topK',
  'topP',
] as const

function expressedFields(
  { parallelCalls, reasoning }: CanonicalRequest,
  generationConfig: Json,
  target: TargetModel,
): ExpressedFields {
  const sampling = SAMPLING_FIELDS.filter((name) => isPresent(generationConfig[name]))
  const thinks = can(target, 'reasoning') && (reasoning.effort ?? reasoning.budget) !== undefined
  return {
    ...Object.fromEntries(sampling.map((name) => [name, true])),
    choices: true,
    format: true,
    // There is no switch for parallel calls.
    ...(parallelCalls && { parallelCalls: true }),
    ...(thinks && { effort: true }),
  }
}

/** Larger seeds are refused. */
const isInt32 = (seed: number | undefined): boolean =>
  seed === Math.trunc(seed ?? Number.NaN) && (seed | 0) === seed

function systemInstruction(system: readonly TextPart[], instruction: string | null): Json | undefined {
  const texts = [...system.map(({ text }) => text), ...(instruction === null ? [] : [instruction])]
  return texts.length === 0 ? undefined : { parts: texts.map((text) => ({ text })) }
}

const declarationOf = ({ name, description, parameters }: CanonicalTool): Json =>
  present({ name, description, parametersJsonSchema: parameters })

/**
 * `VALIDATED` holds the model to the schemas of calls and, in contrast to `AUTO`, can be limited to some tools
 * (https://ai.google.dev/gemini-api/docs/function-calling#function-calling-modes).
 */
function toolConfig(tools: readonly CanonicalTool[], { mode, names }: CanonicalToolChoice): Json | undefined {
  if (tools.length === 0) return undefined
  const validates = names !== null || tools.some(({ strict }) => strict)
  const modes = { auto: validates ? 'VALIDATED' : 'AUTO', required: 'ANY', none: 'NONE' }
  if (modes[mode] === 'AUTO') return undefined
  return {
    functionCallingConfig: present({ mode: modes[mode], allowedFunctionNames: names ?? undefined }),
  }
}
