import { type JsonRecord, toRecord, toText } from '../../json-value.ts'
import { askSelf, recordIn, sendVendorJson, type VendorRequest } from '../vendor-request.ts'
import { encoded, exceptionOf, sendEvents } from './binary-events.ts'
import { converseFault, listIn, messagesOfConverse } from './converse-request.ts'
import { faultOf, scriptedModel, sendFault } from './faults.ts'

/** Answers a request to the scripted Converse. */
export async function answerConverse(request: VendorRequest, model: string, stream: boolean): Promise<void> {
  const { response, body } = request
  const fault = converseFault(body)
  if (fault) return sendFault(response, fault)
  const asked = {
    ...messagesOfConverse(toRecord(body)),
    model: scriptedModel(model),
    ...(stream && { stream }),
  }
  const answer = await askSelf(request, '/v1/messages', asked, VERSION)
  if (answer.status !== 200) return sendFault(response, await faultOf(answer))
  if (stream) return sendEvents(response, answer, converter())
  const message = recordIn(Buffer.from(await answer.arrayBuffer())) ?? {}
  sendVendorJson(response, 200, wholeAnswer(message), { 'x-amzn-requestid': 'scripted' })
}

const VERSION = { 'anthropic-version': '2023-06-01' }

/** Counts the tokens of a Converse request. */
export async function countConverse(request: VendorRequest, converse: JsonRecord): Promise<void> {
  const fault = converseFault(converse)
  if (fault) return sendFault(request.response, fault)
  const { max_tokens: _, ...rest } = messagesOfConverse(converse)
  const counted = { ...rest, model: 'scripted-messages' }
  const answer = await askSelf(request, '/v1/messages/count_tokens', counted, VERSION)
  if (answer.status !== 200) return sendFault(request.response, await faultOf(answer))
  const { input_tokens: inputTokens } = (await answer.json()) as { input_tokens: number }
  sendVendorJson(request.response, 200, { inputTokens })
}

const METRICS = { latencyMs: 5 }

function wholeAnswer({ content, stop_reason, usage }: JsonRecord): JsonRecord {
  return {
    output: { message: { role: 'assistant', content: listIn(content).flatMap(blockOf) } },
    stopReason: stopReasonOf(stop_reason),
    usage: usageOf(toRecord(usage)),
    metrics: METRICS,
  }
}

/** Converse has no reason for a refusal of the model itself. */
const stopReasonOf = (reason: unknown): string => (reason === 'refusal' ? 'content_filtered' : toText(reason))

function usageOf(usage: JsonRecord): JsonRecord {
  const [inputTokens, outputTokens] = [Number(usage.input_tokens ?? 0), Number(usage.output_tokens ?? 0)]
  const cacheReadInputTokens = Number(usage.cache_read_input_tokens ?? 0)
  const cacheWriteInputTokens = Number(usage.cache_creation_input_tokens ?? 0)
  const totalTokens = inputTokens + outputTokens + cacheReadInputTokens + cacheWriteInputTokens
  const { ephemeral_5m_input_tokens: short, ephemeral_1h_input_tokens: long } = toRecord(usage.cache_creation)
  const cacheDetails = [
    { ttl: '5m', inputTokens: Number(short ?? 0) },
    { ttl: '1h', inputTokens: Number(long ?? 0) },
  ].filter((detail) => detail.inputTokens > 0)
  const counts = { inputTokens, outputTokens, totalTokens, cacheReadInputTokens, cacheWriteInputTokens }
  return cacheDetails.length > 0 ? { ...counts, cacheDetails } : counts
}

/** Other blocks of messages have no equivalent. */
function blockOf({ type, text, thinking, signature, data, id, name, input }: JsonRecord): JsonRecord[] {
  if (type === 'text') return [{ text }]
  if (type === 'tool_use') return [{ toolUse: { toolUseId: id, name, input } }]
  if (type === 'thinking') return [{ reasoningContent: { reasoningText: { text: thinking, signature } } }]
  return type === 'redacted_thinking' ? [{ reasoningContent: { redactedContent: data } }] : []
}

/** Makes the events of Converse for those of a stream of messages. */
function converter(): (event: string, data: string) => Uint8Array[] {
  let usage: JsonRecord = {}
  const send = (type: string, payload: JsonRecord) => [encoded('event', type, { ...payload, p: 'abcd' })]
  const handlers: Record<string, (data: JsonRecord) => Uint8Array[]> = {
    message_start({ message }) {
      usage = { ...toRecord(toRecord(message).usage) }
      return send('messageStart', { role: 'assistant' })
    },
    // Only calls have a start; all other blocks begin with their first delta.
    content_block_start({ index, content_block }) {
      const { type, id, name, data } = toRecord(content_block)
      const contentBlockIndex = index as number
      if (type === 'tool_use') {
        return send('contentBlockStart', { contentBlockIndex, start: { toolUse: { toolUseId: id, name } } })
      }
      if (type !== 'redacted_thinking') return []
      const delta = { reasoningContent: { redactedContent: data } }
      return send('contentBlockDelta', { contentBlockIndex, delta })
    },
    content_block_delta({ index, delta }) {
      const converted = deltaOf(toRecord(delta))
      return converted ? send('contentBlockDelta', { contentBlockIndex: index, delta: converted }) : []
    },
    content_block_stop: ({ index }) => send('contentBlockStop', { contentBlockIndex: index }),
    message_delta({ delta, usage: more }) {
      usage = { ...usage, ...toRecord(more) }
      return send('messageStop', { stopReason: stopReasonOf(toRecord(delta).stop_reason) })
    },
    message_stop: () => send('metadata', { usage: usageOf(usage), metrics: METRICS }),
    error: (data) => [exceptionOf(data)],
  }
  return (event, data) => handlers[event]?.(recordIn(Buffer.from(data)) ?? {}) ?? []
}

function deltaOf({ type, text, thinking, signature, partial_json }: JsonRecord): JsonRecord | null {
  if (type === 'text_delta') return { text }
  if (type === 'input_json_delta') return { toolUse: { input: partial_json } }
  if (type === 'thinking_delta') return { reasoningContent: { text: thinking } }
  return type === 'signature_delta' ? { reasoningContent: { signature } } : null
}
