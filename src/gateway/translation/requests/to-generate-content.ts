import { isPresent, type Json, present } from '../../protocols/json.ts'
import { can, type TargetModel } from '../target-model.ts'
import { canonicalConverters, type WrittenRequest } from './canonical-converters.ts'
import type {
  CanonicalRequest,
  CanonicalTool,
  CanonicalToolChoice,
  ExpressedFields,
  TextPart,
} from './canonical-request.ts'
import { contentsOf } from './generate-content-contents.ts'
import { geminiFormat } from './generate-content-format.ts'
import { checkedChoices, geminiModel, takesPenalties } from './generate-content-models.ts'
import { thinkingConfig } from './generate-content-thinking.ts'

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

/** Requests of all callers as generateContent requests (https://ai.google.dev/api/generate-content). */
export const TO_GENERATE_CONTENT = canonicalConverters(writeGenerateContent)
