import {
  type AnswerPlan,
  fitText,
  type PlannedToolCall,
  type PlanRequest,
  planAnswer,
  splitIntoPieces,
} from './answer-plan.ts'
import { type ChatUsage, chatUsageJson, createChatFrames, roleDelta, streamEnd } from './chat-frames.ts'
import { nextIdentifier, nowInSeconds } from './identifiers.ts'
import { instructedFormat } from './instructed-format.ts'
import {
  contentText,
  countCharacters,
  type JsonRecord,
  tokensOfCharacters,
  toList,
  toNumber,
  toRecord,
  toText,
} from './json-value.ts'
import type { ModelTraits } from './model-traits.ts'
import { cachedChatTokens } from './prompt-cache.ts'
import { jsonReply, type Reply, streamReply } from './reply.ts'

const reasoningTokensOfEffort: Record<string, number> = {
  minimal: 8,
  low: 16,
  medium: 32,
  high: 64,
  xhigh: 128,
}

interface PlannedAnswer {
  pieces: string[]
  calls: (PlannedToolCall & { id: string })[]
  finishReason: string
  usage: ChatUsage
  choices: number
  /** The number of alternatives for each token, or undefined when no logprobs were requested. */
  alternatives: number | undefined
}

/**
 * Answers a checked `POST /v1/chat/completions`, streamed when `stream` is true.
 * Shape: https://platform.openai.com/docs/api-reference/chat/object
 */
export function answerChat(body: JsonRecord, traits: ModelTraits): Reply {
  const turn = readTurn(body)
  const answer = finishAnswer(body, planAnswer(turn), turn, traits)
  return body.stream === true ? streamAnswer(body, answer) : wholeAnswer(body, answer)
}

function readTurn(body: JsonRecord): PlanRequest {
  const messages = toList(body.messages).map(toRecord)
  const last = toRecord(messages.at(-1))
  const instructions = messages.filter(({ role }) => role === 'system' || role === 'developer')
  return {
    userText: last.role === 'user' ? contentText(last.content) : '',
    instructions: contentText(messages.findLast(({ role }) => role === 'user')?.content),
    toolResult: last.role === 'tool' ? contentText(last.content) : undefined,
    tools: toList(body.tools).flatMap(readTool),
    choice: readChoice(body.tool_choice),
    parallelToolCalls: body.parallel_tool_calls !== false,
    format: readFormat(toRecord(body.response_format), instructions),
  }
}

function readTool(tool: unknown): PlanRequest['tools'] {
  const record = toRecord(tool)
  const kind = record.type === 'custom' ? 'custom' : 'function'
  const definition = toRecord(record[kind])
  if (typeof definition.name !== 'string') return []
  return [{ name: definition.name, kind, schema: definition.parameters }]
}

function readChoice(choice: unknown): PlanRequest['choice'] {
  if (choice === 'none' || choice === 'required') return { mode: choice }
  const record = toRecord(choice)
  if (record.type === 'allowed_tools') {
    return toRecord(record.allowed_tools).mode === 'required' ? { mode: 'required' } : { mode: 'auto' }
  }
  const named = toRecord(record.function ?? record.custom).name
  return typeof named === 'string' ? { mode: 'named', name: named } : { mode: 'auto' }
}

function readFormat(format: JsonRecord, instructions: JsonRecord[]): PlanRequest['format'] {
  if (format.type === 'json_schema') {
    return { type: 'json_schema', schema: toRecord(format.json_schema).schema }
  }
  if (format.type === 'json_object') return { type: 'json_object' }
  return instructedFormat(instructions.map(({ content }) => contentText(content)))
}

function finishAnswer(
  body: JsonRecord,
  plan: AnswerPlan,
  turn: PlanRequest,
  traits: ModelTraits,
): PlannedAnswer {
  const effort = toText(body.reasoning_effort, traits.reasoning ? 'medium' : 'none')
  const reasoning = reasoningTokensOfEffort[effort] ?? 0
  const maximum =
    toNumber(body.max_completion_tokens) ?? toNumber(body.max_tokens) ?? Number.POSITIVE_INFINITY
  const stops = typeof body.stop === 'string' ? [body.stop] : toList(body.stop).map((stop) => toText(stop))
  const fitted = fitText(plan.text, stops, maximum - reasoning)
  const choices = Math.min(Math.max(1, toNumber(body.n) ?? 1), 128)
  const messages = toList(body.messages)
  const prompt = tokensOfCharacters(countCharacters(messages) + countCharacters(body.tools))
  const callTokens = plan.calls.reduce((sum, call) => sum + 8 + splitIntoPieces(call.input).length, 0)
  return {
    pieces: fitted.pieces,
    calls: plan.calls.map((call) => ({ ...call, id: nextIdentifier('call_') })),
    finishReason: finishReason(plan, turn, fitted.end),
    usage: {
      prompt,
      cached: cachedChatTokens(toText(body.model), body.tools, messages, prompt),
      completion: (fitted.pieces.length + callTokens) * choices + Math.min(reasoning, maximum),
      reasoning: Math.min(reasoning, maximum),
    },
    choices,
    alternatives: body.logprobs === true ? (toNumber(body.top_logprobs) ?? 0) : undefined,
  }
}

function finishReason(plan: AnswerPlan, turn: PlanRequest, end: string): string {
  if (plan.calls.length === 0) return end === 'length' ? 'length' : 'stop'
  // A call forced by name ends with `stop`, not `tool_calls`.
  // https://platform.openai.com/docs/guides/structured-outputs (handling edge cases)
  return turn.choice.mode === 'named' ? 'stop' : 'tool_calls'
}

function wholeAnswer(body: JsonRecord, answer: PlannedAnswer): Reply {
  const choices = Array.from({ length: answer.choices }, (_, index) => ({
    index,
    message: {
      role: 'assistant',
      content: answer.calls.length > 0 ? null : answer.pieces.join(''),
      ...(answer.calls.length > 0 ? { tool_calls: answer.calls.map(wholeCall) } : {}),
      refusal: null,
      annotations: [],
    },
    logprobs: answer.alternatives === undefined ? null : logprobsOf(answer.pieces, answer.alternatives),
    finish_reason: answer.finishReason,
  }))
  const json =
    `{"id":"${nextIdentifier('chatcmpl-')}","object":"chat.completion","created":${nowInSeconds()},` +
    `"model":${JSON.stringify(body.model)},"choices":${JSON.stringify(choices)},` +
    `"usage":${chatUsageJson(answer.usage)},"service_tier":"default","system_fingerprint":"fp_local"}`
  return jsonReply('chat', 200, json)
}

function wholeCall(call: PlannedAnswer['calls'][number]): JsonRecord {
  if (call.kind === 'custom')
    return { id: call.id, type: 'custom', custom: { name: call.name, input: call.input } }
  return { id: call.id, type: 'function', function: { name: call.name, arguments: call.input } }
}

function streamAnswer(body: JsonRecord, answer: PlannedAnswer): Reply {
  const includeUsage = toRecord(body.stream_options).include_usage === true
  const frames = createChatFrames(toText(body.model), includeUsage)
  const output: string[] = []
  const indexes = Array.from({ length: answer.choices }, (_, index) => index)
  for (const index of indexes) {
    const start = answer.calls.length > 0 ? '{"role":"assistant","content":null,"refusal":null}' : roleDelta
    output.push(frames.choice(index, start))
  }
  for (const piece of answer.pieces) {
    const logprobs =
      answer.alternatives === undefined ? undefined : JSON.stringify(logprobsOf([piece], answer.alternatives))
    for (const index of indexes) output.push(frames.text(index, piece, logprobs))
  }
  for (const index of indexes) {
    answer.calls.forEach((call, callIndex) => {
      for (const delta of callDeltas(call, callIndex)) output.push(frames.choice(index, delta))
    })
  }
  for (const index of indexes) output.push(frames.finish(index, answer.finishReason))
  if (includeUsage) output.push(frames.usage(answer.usage))
  output.push(streamEnd)
  return streamReply('chat', output)
}

/** The first fragment carries identity with empty input; the later ones only input and the call's index. */
function callDeltas(call: PlannedAnswer['calls'][number], index: number): string[] {
  const member = call.kind === 'custom' ? 'custom' : 'function'
  const input = call.kind === 'custom' ? 'input' : 'arguments'
  const first = { index, id: call.id, type: call.kind, [member]: { name: call.name, [input]: '' } }
  const rest = splitIntoPieces(call.input).map((piece) => ({ index, [member]: { [input]: piece } }))
  return [first, ...rest].map((fragment) => JSON.stringify({ tool_calls: [fragment] }))
}

function logprobsOf(pieces: string[], alternatives: number): JsonRecord {
  const entry = (token: string, logprob: number): JsonRecord => ({
    token,
    logprob,
    bytes: [...Buffer.from(token)],
  })
  const content = pieces.map((token) => ({
    ...entry(token, -0.01),
    top_logprobs: Array.from({ length: alternatives }, (_, rank) =>
      rank === 0 ? entry(token, -0.01) : entry(` other${rank}`, -4 - rank),
    ),
  }))
  return { content, refusal: null }
}
