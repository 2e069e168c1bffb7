import { invalidRequest } from '../../../lib/api-error.ts'
import { isPresent, type Json, objectOf, present } from '../../protocols/json.ts'
import type { TargetModel } from '../target-model.ts'
import { canonicalConverters, type WrittenRequest } from './canonical-converters.ts'
import type { CanonicalFormat, CanonicalRequest, ExpressedFields, TextPart } from './canonical-request.ts'
import { conversationOf } from './converse-messages.ts'
import { effortFields, makerOf, topKFields } from './converse-models.ts'
import { toolConfigOf } from './converse-tools.ts'
import { messagesOutputFormat, type ToolsBeside } from './output-format.ts'

/**
 * @param instructsBesideTools see `ToolsBeside`.
 * @returns the body, which names neither the model nor the stream: both are in the address.
 * @throws ApiError invalid_request
 */
function writeConverse(
  request: CanonicalRequest,
  target: TargetModel,
  instructsBesideTools: boolean,
): WrittenRequest {
  const { turns, tools, toolChoice, format, choices } = request
  if (choices > 1) throw invalidRequest('n: only one choice is supported by this model.')
  const mayCallTools = tools.length > 0 && toolChoice.mode !== 'none'
  const beside = { mayCallTools, instructs: instructsBesideTools }
  const { outputConfig, instruction } = converseFormat(format, target, beside)
  const instructions: TextPart[] = instruction === null ? [] : [{ kind: 'text', text: instruction }]
  const { system, messages } = conversationOf([...request.system, ...instructions], turns, target)
  const settings = settingsOf(request, target)
  const body = present({
    messages,
    system: system.length > 0 ? system : undefined,
    inferenceConfig: given(settings.inferenceConfig),
    toolConfig: toolConfigOf(tools, toolChoice, turns),
    additionalModelRequestFields: given(settings.additional),
    outputConfig,
  })
  return {
    body,
    jsonByInstruction: instruction !== null && outputConfig === undefined,
    expressed: settings.expressed,
  }
}

const given = (members: Json): Json | undefined => (Object.keys(members).length > 0 ? members : undefined)

interface Settings {
  inferenceConfig: Json
  /** Members of the model's own request. */
  additional: Json
  expressed: ExpressedFields
}

/** There are neither seeds, nor penalties, nor a switch for parallel calls. */
function settingsOf(request: CanonicalRequest, target: TargetModel): Settings {
  const maker = makerOf(target.upstreamModel)
  const effort = effortFields(maker, request, target)
  const unbounded = effort?.unbounded === true
  const { temperature, topP, topK } = unbounded ? {} : request.sampling
  const maxTokens =
    request.maxTokens === undefined ? undefined : Math.min(request.maxTokens, target.maxOutputTokens)
  const inferenceConfig = present({
    maxTokens,
    temperature: temperature === undefined ? undefined : Math.min(Math.max(temperature, 0), 1),
    topP,
    stopSequences: request.stop.length > 0 ? request.stop : undefined,
  })
  const topKOf = topKFields(maker, topK)
  return {
    inferenceConfig,
    additional: { ...topKOf, ...effort?.fields },
    expressed: {
      choices: true,
      format: true,
      ...(temperature !== undefined && { temperature: true }),
      ...(topP !== undefined && { topP: true }),
      ...(topKOf && { topK: true }),
      ...(request.parallelCalls && { parallelCalls: true }),
      ...(effort && { effort: true }),
    },
  }
}

/** A schema needs the capability, and stands as a text in the body. There is no JSON mode without one. */
function converseFormat(
  format: CanonicalFormat | null,
  target: TargetModel,
  beside: ToolsBeside,
): { outputConfig: Json | undefined; instruction: string | null } {
  if (format === null) return { outputConfig: undefined, instruction: null }
  if (format.kind === 'json_object') {
    const { instruction } = messagesOutputFormat({ type: 'json_object' }, target, beside)
    return { outputConfig: undefined, instruction }
  }
  const { name, schema, place } = format
  const asked = { type: 'json_schema', json_schema: { name, schema } }
  const { format: native, instruction } = messagesOutputFormat(asked, target, beside, place)
  if (!isPresent(native)) return { outputConfig: undefined, instruction }
  const jsonSchema = { name, schema: JSON.stringify(objectOf(native).schema) }
  return {
    outputConfig: { textFormat: { type: 'json_schema', structure: { jsonSchema } } },
    instruction,
  }
}

/** Requests of all callers as Converse requests (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html). */
export const TO_CONVERSE = canonicalConverters(writeConverse)
