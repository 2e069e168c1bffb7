import { isRecord, type JsonRecord, toList, toRecord, toText } from '../json-value.ts'
import type { ModelTraits } from '../model-traits.ts'
import type { CheckedRequest, Fault } from './fault.ts'
import { firstFault } from './fault.ts'
import { betaMembers, countSchema, messagesSchema } from './messages-schema.ts'
import { findThinkingFault } from './messages-thinking.ts'
import { findTurnsFault, turnsOf } from './messages-turns.ts'
import { outputSchemaFault } from './schema-rules.ts'
import { type WordedIssue, wordIssues } from './vendor-words.ts'

/** The version of the protocol from which on there is no sampling any more. */
const versionWithoutSampling = '2026-10-21'
const samplingMembers = ['temperature', 'top_p', 'top_k']

export interface MessagesContext {
  traits: ModelTraits
  /** The headers `anthropic-version` and `anthropic-beta`. */
  version: string
  betas: string
  /** Whether it is a token count. */
  counting: boolean
  /** Whether members that the vendor does not document are accepted at the top level. */
  acceptUnknown: boolean
}

/** Checks a messages request, or a token count, as the vendor does. */
export function checkMessages(body: JsonRecord, context: MessagesContext): CheckedRequest {
  const { data, error } = (context.counting ? countSchema : messagesSchema).safeParse(body)
  const issues = data === undefined ? wordIssues(error.issues, body) : samplingIssues(body, context)
  const relevant = issues.filter((issue) => !isKnownToBeta(issue, context.betas))
  const unknown = relevant.filter(({ extra }) => extra !== undefined)
  const refused = relevant.find(
    (issue) => !(context.acceptUnknown && issue.extra !== undefined && issue.path.length === 0),
  )
  return {
    fault: refused === undefined ? findFault(body, context.traits) : { message: refused.message },
    unknownMembers: unknown.map(({ path, extra }) => [...path, extra].join('.')),
  }
}

function samplingIssues(body: JsonRecord, { version }: MessagesContext): WordedIssue[] {
  if (version < versionWithoutSampling) return []
  return samplingMembers
    .filter((name) => body[name] !== undefined)
    .map((name) => ({ path: [], extra: name, message: `${name}: Extra inputs are not permitted` }))
}

function isKnownToBeta({ extra, path }: WordedIssue, betas: string): boolean {
  return extra !== undefined && path.length === 0 && betaMembers.get(extra)?.test(betas) === true
}

function findFault(body: JsonRecord, traits: ModelTraits): Fault | undefined {
  return (
    limitsFault(body, traits) ??
    systemFault(body.system) ??
    findTurnsFault(toList(body.messages)) ??
    prefillFault(body, traits) ??
    toolsFault(body) ??
    findThinkingFault(body, traits) ??
    outputFault(body, traits) ??
    markersFault(body)
  )
}

function limitsFault(body: JsonRecord, traits: ModelTraits): Fault | undefined {
  const { max_tokens: maximum, temperature, top_p: topP } = body
  if (typeof maximum === 'number' && maximum > traits.maximumOutput) {
    return {
      message: `max_tokens: ${maximum} > ${traits.maximumOutput}, which is the maximum allowed number of output tokens for ${toText(body.model)}`,
    }
  }
  for (const sequence of toList(body.stop_sequences).map((item) => toText(item))) {
    if (sequence === '') return { message: 'stop_sequences: each stop sequence must be non-empty' }
    if (sequence.trim() === '') {
      return { message: 'stop_sequences: each stop sequence must contain non-whitespace' }
    }
  }
  const sampled = samplingMembers.find((name) => typeof body[name] === 'number')
  if (traits.sampling === 'none' && sampled !== undefined && body[sampled] !== 1) {
    return { message: `\`${sampled}\` is deprecated for this model.` }
  }
  if (traits.sampling === 'one' && typeof temperature === 'number' && typeof topP === 'number') {
    return {
      message: '`temperature` and `top_p` cannot both be specified for this model. Please use only one.',
    }
  }
  return undefined
}

function systemFault(system: unknown): Fault | undefined {
  const empty = toList(system).some((block) => toText(toRecord(block).text) === '')
  return empty ? { message: 'system: text content blocks must be non-empty' } : undefined
}

/**
 * The fault of a conversation that ends with the assistant. With tools that the vendor runs, the last turn may be a
 * paused one, which is not a prefill.
 */
function prefillFault(body: JsonRecord, { prefill }: ModelTraits): Fault | undefined {
  const last = turnsOf(toList(body.messages)).at(-1)
  const pauses = toList(body.tools).some((tool) => toRecord(tool).input_schema === undefined)
  if (last?.role !== 'assistant' || pauses) return undefined
  if (last.blocks.some(({ type }) => type === 'server_tool_use')) return undefined
  const end = last.blocks.at(-1)
  if (end?.type === 'text' && /\s$/.test(toText(end.block.text))) {
    return { message: 'messages: final assistant content cannot end with trailing whitespace' }
  }
  if (prefill) return undefined
  return {
    message:
      'This model does not support assistant message prefill. The conversation must end with a user message.',
  }
}

function toolsFault(body: JsonRecord): Fault | undefined {
  const tools = toList(body.tools).map(toRecord)
  const names = tools.map((tool) => toText(tool.name)).filter((name) => name !== '')
  if (new Set(names).size < names.length) return { message: 'tools: Tool names must be unique.' }
  const { type, name } = toRecord(body.tool_choice)
  if (type !== undefined && tools.length === 0) {
    return { message: 'tool_choice: tool_choice may only be specified while providing tools.' }
  }
  if (type === 'tool' && !names.includes(toText(name))) {
    return { message: `tool_choice.tool.name: Tool '${toText(name)}' not found in provided tools` }
  }
  return firstFault(tools, (tool, index) => {
    const schema = toRecord(tool.input_schema)
    const combined = ['oneOf', 'allOf', 'anyOf'].some((keyword) => keyword in schema)
    if (combined) {
      const message = 'input_schema does not support oneOf, allOf, or anyOf at the top level'
      return { message: `tools.${index}.custom.input_schema: ${message}` }
    }
    const fault = tool.strict === true ? outputSchemaFault(schema) : undefined
    return fault === undefined ? undefined : { message: `tools.${index}.custom: ${fault}` }
  })
}

function outputFault(body: JsonRecord, traits: ModelTraits): Fault | undefined {
  const { effort, format } = toRecord(body.output_config)
  if (typeof effort === 'string' && traits.thinking === 'budget') {
    return { message: 'This model does not support the effort parameter.' }
  }
  if (!isRecord(format)) return undefined
  if (!traits.jsonSchema) return { message: `'${toText(body.model)}' does not support output format.` }
  const fault = outputSchemaFault(format.schema)
  return fault === undefined ? undefined : { message: `output_config.format.schema: ${fault}` }
}

const maximumMarkers = 4

function markersFault(body: JsonRecord): Fault | undefined {
  const messages = toList(body.messages).flatMap((message) => toList(toRecord(message).content))
  const blocks = [...toList(body.tools), ...toList(body.system), ...messages].map(toRecord)
  const markers = [...blocks.flatMap(markersWithin), ...[body.cache_control].filter(isRecord)]
  if (markers.length > maximumMarkers) {
    return {
      message: `A maximum of ${maximumMarkers} blocks with cache_control may be provided. Found ${markers.length}.`,
    }
  }
  const lifetimes = markers.map((marker) => marker.ttl ?? '5m')
  if (lifetimes.lastIndexOf('1h') > lifetimes.indexOf('5m') && lifetimes.includes('5m')) {
    return {
      message:
        "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
    }
  }
  return undefined
}

function markersWithin(block: JsonRecord): JsonRecord[] {
  const inner = block.type === 'tool_result' ? toList(block.content).map(toRecord).flatMap(markersWithin) : []
  return [...inner, ...[block.cache_control].filter(isRecord)]
}
