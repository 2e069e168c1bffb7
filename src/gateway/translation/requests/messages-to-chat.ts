import { type Json, listOf, objectOf, present, textOf } from '../json.ts'
import type { TargetModel } from '../target-model.ts'
import { mediaPart } from './media.ts'
import { chatResponseFormat } from './output-format.ts'
import { effortOfMessages } from './reasoning.ts'
import { chatParallelCalls, chatToolChoice, chatTools } from './tools.ts'

/**
 * A messages request as a chat completion request. Cache markers, thinking blocks and their signatures stay behind: they
 * mean something to their own family only.
 * @throws ApiError invalid_request naming the block or tool that cannot be said.
 */
export function messagesToChat(request: Json, target: TargetModel): Json {
  const tools = chatTools(request)
  const reasons = target.capabilities.includes('reasoning')
  const maxTokens = Math.min(request.max_tokens as number, target.maxOutputTokens)
  return present({
    model: target.upstreamModel,
    messages: [...systemMessage(request.system), ...listOf(request.messages).flatMap(chatMessages)],
    // Reasoning models refuse the older name; other servers of the protocol know only that one.
    [reasons ? 'max_completion_tokens' : 'max_tokens']: maxTokens,
    stream: request.stream === true ? true : undefined,
    stream_options: request.stream === true ? { include_usage: true } : undefined,
    stop: request.stop_sequences,
    temperature: request.temperature,
    top_p: request.top_p,
    tools,
    tool_choice: tools && chatToolChoice(request),
    parallel_tool_calls: tools && chatParallelCalls(request),
    reasoning_effort: effortOfMessages(request, target),
    response_format: chatResponseFormat(request),
  })
}

function systemMessage(system: unknown): Json[] {
  const text =
    typeof system === 'string'
      ? system
      : listOf(system)
          .map((block) => textOf(block.text))
          .join('\n\n')
  return text === '' ? [] : [{ role: 'system', content: text }]
}

function chatMessages(message: Json, index: number): Json[] {
  if (typeof message.content === 'string') return [{ role: message.role, content: message.content }]
  const blocks = listOf(message.content)
  return message.role === 'assistant' ? assistantMessage(blocks) : userMessages(blocks, index)
}

function assistantMessage(blocks: Json[]): Json[] {
  const text = blocks
    .filter((block) => block.type === 'text')
    .map((block) => textOf(block.text))
    .join('')
  const calls = blocks
    .filter((block) => block.type === 'tool_use')
    .map((block) => ({
      id: block.id,
      type: 'function',
      function: { name: block.name, arguments: JSON.stringify(block.input ?? {}) },
    }))
  if (text === '' && calls.length === 0) return []
  return [
    present({
      role: 'assistant',
      content: text || (calls.length > 0 ? undefined : ''),
      tool_calls: calls.length > 0 ? calls : undefined,
    }),
  ]
}

/** Results answer the calls before anything else is said; what a result shows besides text follows as the user's. */
function userMessages(blocks: Json[], index: number): Json[] {
  const results: Json[] = []
  const parts: Json[] = []
  for (const [position, block] of blocks.entries()) {
    const place = `messages.${index}.content.${position}`
    if (block.type === 'tool_result') {
      const { text, media } = resultContent(block.content, place)
      results.push({ role: 'tool', tool_call_id: block.tool_use_id, content: text })
      parts.push(...media)
    } else if (block.type === 'text') parts.push({ type: 'text', text: textOf(block.text) })
    else parts.push(mediaPart(block, place))
  }
  return parts.length === 0 ? results : [...results, { role: 'user', content: plain(parts) }]
}

function resultContent(content: unknown, place: string): { text: string; media: Json[] } {
  if (typeof content === 'string') return { text: content, media: [] }
  const blocks = listOf(content)
  const text = blocks
    .filter((block) => block.type === 'text')
    .map((block) => textOf(block.text))
    .join('\n')
  const media = blocks.filter((block) => block.type !== 'text').map((block) => mediaPart(block, place))
  return { text, media }
}

/** One text alone is sent as text: some servers of the protocol take no parts. */
function plain(parts: Json[]): unknown {
  const [only] = parts
  return parts.length === 1 && objectOf(only).type === 'text' ? objectOf(only).text : parts
}
