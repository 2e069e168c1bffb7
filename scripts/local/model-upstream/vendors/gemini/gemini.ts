import type { ServerResponse } from 'node:http'
import { type JsonRecord, toList, toRecord, toText } from '../../json-value.ts'
import { askSelf, eventsIn, sendVendorJson, type VendorRequest } from '../vendor-request.ts'
import { GeminiAnswers, thoughtsOf } from './gemini-answer.ts'
import { chatRequestOf, requestFault } from './gemini-request.ts'

// The Gemini API: generateContent, its stream and token counts, on top of the scripted chat completions.

export const SCRIPTED_GEMINI = { key: 'AIza-scripted-gemini', model: 'gemini-3-scripted' }

const METHOD = /^\/v1beta\/models\/([^/:]+):(generateContent|streamGenerateContent|countTokens)$/

const STATUSES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

/** Answers a request to the scripted Gemini. */
export async function answerGemini(request: VendorRequest): Promise<void> {
  const { incoming, response, path } = request
  const [, model, method = ''] = METHOD.exec(path) ?? []
  if (model === undefined || incoming.method !== 'POST') return sendError(response, 404, 'Not Found')
  if (incoming.headers['x-goog-api-key'] !== SCRIPTED_GEMINI.key) return sendInvalidKey(response)
  return answerModel(request, model, method, true)
}

/**
 * Answers a method of a model. @param model percent-encoded.
 * @param hasIds whether the API has ids of calls: Vertex refuses them.
 */
export async function answerModel(
  request: VendorRequest,
  model: string,
  method: string,
  hasIds: boolean,
): Promise<void> {
  const { response } = request
  const body = toRecord(request.body)
  if (decodeURIComponent(model) !== SCRIPTED_GEMINI.model) {
    return sendError(response, 404, `models/${model} is not found for API version v1beta.`)
  }
  if (method === 'countTokens') return sendVendorJson(response, 200, { totalTokens: countOf(body) })
  const fault = requestFault(body, hasIds)
  if (fault !== null) return sendError(response, 400, fault)
  const prompt = JSON.stringify(body.contents)
  if (prompt.includes('gemini-blocked')) return sendBlocked(response, method === 'streamGenerateContent')
  const { thinkingConfig } = toRecord(body.generationConfig)
  const showsThoughts = toRecord(thinkingConfig).includeThoughts === true
  const answers = new GeminiAnswers(SCRIPTED_GEMINI.model, showsThoughts, hasIds)
  const stream = method === 'streamGenerateContent'
  const answer = await askSelf(request, '/v1/chat/completions', chatRequestOf(body, stream), {})
  if (!answer.ok) return sendChatError(response, answer)
  if (prompt.includes('gemini-malformed')) {
    const malformed = answers.ending([], 'malformed', {})
    Object.assign(toRecord(toList(malformed.candidates)[0]), { finishReason: 'MALFORMED_FUNCTION_CALL' })
    await answer.body?.cancel()
    return stream ? sendStream(response, [malformed]) : sendVendorJson(response, 200, malformed)
  }
  if (!stream) return sendVendorJson(response, 200, answers.whole(toRecord(await answer.json())))
  return playStream(response, answer, answers)
}

/** Texts are sent as they come; calls are gathered, because they are sent whole. */
async function playStream(response: ServerResponse, answer: Response, answers: GeminiAnswers): Promise<void> {
  const calls: JsonRecord[] = []
  let finishReason = ''
  let usage: unknown
  const send = (data: JsonRecord) => response.write(`data: ${JSON.stringify(data)}\r\n\r\n`)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  try {
    if (answers.thoughts.length > 0) send(answers.chunk(answers.thoughts))
    for await (const { data } of eventsIn(answer)) {
      if (data === '[DONE]') continue
      const chunk = toRecord(JSON.parse(data))
      if (chunk.error !== undefined) {
        const message = toText(toRecord(chunk.error).message)
        send({ error: { code: 503, message, status: 'UNAVAILABLE' } })
        return void response.end()
      }
      const { delta, finish_reason } = toRecord(toList(chunk.choices)[0])
      const { content, refusal, tool_calls, reasoning_content } = toRecord(delta)
      const thoughts = thoughtsOf(reasoning_content)
      if (thoughts.length > 0) send(answers.chunk(thoughts))
      const text = toText(content) + toText(refusal)
      if (text !== '') send(answers.chunk([{ text }]))
      for (const call of toList(tool_calls).map(toRecord)) addFragment(calls, call)
      finishReason = toText(finish_reason, finishReason)
      usage = chunk.usage ?? usage
    }
    if (finishReason === '') throw new Error('the scripted answer has no end')
    send(answers.ending(answers.endingParts(calls), finishReason, usage))
    response.end()
  } catch {
    // The scripted answer was cut off.
    response.destroy()
  }
}

function addFragment(calls: JsonRecord[], { index, function: made }: JsonRecord): void {
  const { name, arguments: written } = toRecord(made)
  const at = Number(index ?? 0)
  const known = calls[at]
  if (known) known.arguments = toText(known.arguments) + toText(written)
  else calls[at] = { name, arguments: toText(written) }
}

const countOf = (body: JsonRecord): number => Math.ceil(JSON.stringify(body).length / 4)

function sendStream(response: ServerResponse, chunks: readonly JsonRecord[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const chunk of chunks) response.write(`data: ${JSON.stringify(chunk)}\r\n\r\n`)
  response.end()
}

/** A blocked prompt has no candidates, and the status of success. */
function sendBlocked(response: ServerResponse, stream: boolean): void {
  const usageMetadata = { promptTokenCount: 9, totalTokenCount: 9 }
  const blocked = { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, usageMetadata }
  if (stream) sendStream(response, [blocked])
  else sendVendorJson(response, 200, blocked)
}

/** The wait is in the body. */
async function sendChatError(response: ServerResponse, answer: Response): Promise<void> {
  const { error } = toRecord(await answer.json())
  const seconds = answer.headers.get('retry-after')
  const details = seconds
    ? [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${seconds}s` }]
    : undefined
  sendError(response, answer.status, toText(toRecord(error).message), details)
}

function sendInvalidKey(response: ServerResponse): void {
  const info = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' }
  sendError(response, 400, 'API key not valid. Please pass a valid API key.', [info])
}

function sendError(response: ServerResponse, code: number, message: string, details?: unknown[]): void {
  const status = STATUSES[code] ?? 'UNKNOWN'
  sendVendorJson(response, code, { error: { code, message, status, ...(details && { details }) } })
}
