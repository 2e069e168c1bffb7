import type { ServerResponse } from 'node:http'
import { EventStreamCodec } from '@smithy/eventstream-codec'
import { type JsonRecord, toRecord, toText } from '../../json-value.ts'
import { askSelf, eventsIn, recordIn, sendVendorJson, type VendorRequest } from '../vendor-request.ts'
import { type AwsFault, authorizationFault } from './authorization.ts'

// Amazon Bedrock for Claude: InvokeModel, its stream and CountTokens, on top of the scripted messages protocol.

const MODEL_PATH = /^\/model\/([^/]+)\/(invoke|invoke-with-response-stream|count-tokens)$/
const VERSION = 'bedrock-2023-05-31'

/** Members of a body for Claude. https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages-request-response.html */
const MEMBERS = new Set([
  'anthropic_beta',
  'anthropic_version',
  'context_management',
  'max_tokens',
  'messages',
  'output_config',
  'stop_sequences',
  'system',
  'temperature',
  'thinking',
  'tool_choice',
  'tools',
  'top_k',
  'top_p',
])

/** Answers a request to the scripted Bedrock. */
export async function answerBedrock(request: VendorRequest): Promise<void> {
  const { incoming, response, raw } = request
  const [, model, method] = MODEL_PATH.exec(request.path) ?? []
  const fault = await authorizationFault(incoming, raw)
  if (fault) return sendFault(response, fault)
  if (model === undefined || incoming.method !== 'POST') {
    return sendFault(response, { status: 404, type: 'UnknownOperationException', message: 'Not Found' })
  }
  if (method === 'count-tokens') return countTokens(request)
  const invalid = bodyFault(request.body)
  if (invalid) return sendFault(response, invalid)
  const stream = method === 'invoke-with-response-stream'
  const answer = await askMessages(request, decodeURIComponent(model), toRecord(request.body), stream)
  if (answer.status !== 200) return sendFault(response, await faultOf(answer))
  if (!stream || !answer.headers.get('content-type')?.includes('event-stream')) {
    response.writeHead(200, { 'content-type': 'application/json', 'x-amzn-requestid': 'scripted' })
    response.end(Buffer.from(await answer.arrayBuffer()))
    return
  }
  await sendStream(response, answer)
}

function bodyFault(body: JsonRecord | undefined): AwsFault | null {
  if (body === undefined) return invalid('Malformed input request, please reformat your input and try again.')
  if (body.anthropic_version !== VERSION) return invalid('anthropic_version: Field required')
  const unknown = Object.keys(body).find((name) => !MEMBERS.has(name))
  if (unknown) {
    return invalid(
      `Malformed input request: #: extraneous key [${unknown}] is not permitted, please reformat your input and try again.`,
    )
  }
  if (toRecord(body.output_config).format !== undefined) {
    return invalid('output_config.format: Extra inputs are not permitted')
  }
  return null
}

const invalid = (message: string): AwsFault => ({ status: 400, type: 'ValidationException', message })

/** The scripted models by which a model of Bedrock answers, from the end of its id. */
const scriptedModel = (model: string): string =>
  /scripted-messages[a-z-]*?(?=-v\d|$)/.exec(model)?.[0] ?? 'scripted-messages'

function askMessages(
  request: VendorRequest,
  model: string,
  body: JsonRecord,
  stream: boolean,
): Promise<Response> {
  const { anthropic_version: _, anthropic_beta: betas, ...rest } = body
  const headers = {
    'anthropic-version': '2023-06-01',
    ...(Array.isArray(betas) && { 'anthropic-beta': betas.join(',') }),
  }
  return askSelf(
    request,
    '/v1/messages',
    { ...rest, model: scriptedModel(model), ...(stream && { stream }) },
    headers,
  )
}

async function countTokens(request: VendorRequest): Promise<void> {
  const { input } = toRecord(request.body)
  const encoded = toText(toRecord(toRecord(input).invokeModel).body)
  const body = recordIn(Buffer.from(encoded, 'base64'))
  const fault = bodyFault(body)
  if (fault) return sendFault(request.response, fault)
  const { anthropic_version: _, anthropic_beta: __, max_tokens: ___, ...rest } = toRecord(body)
  const counted = { ...rest, model: 'scripted-messages' }
  const answer = await askSelf(request, '/v1/messages/count_tokens', counted, {
    'anthropic-version': '2023-06-01',
  })
  if (answer.status !== 200) return sendFault(request.response, await faultOf(answer))
  const { input_tokens: inputTokens } = (await answer.json()) as { input_tokens: number }
  sendVendorJson(request.response, 200, { inputTokens })
}

/** Exceptions by status (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html). */
const EXCEPTIONS: Record<number, string> = {
  400: 'ValidationException',
  401: 'AccessDeniedException',
  403: 'AccessDeniedException',
  404: 'ResourceNotFoundException',
  408: 'ModelTimeoutException',
  413: 'ValidationException',
  429: 'ThrottlingException',
  500: 'InternalServerException',
  503: 'ServiceUnavailableException',
  529: 'ServiceUnavailableException',
}

async function faultOf(answer: Response): Promise<AwsFault> {
  const text = await answer.text()
  const message = toText(toRecord(toRecord(recordIn(Buffer.from(text))).error).message) || text
  const status = answer.status === 529 ? 503 : answer.status === 401 ? 403 : answer.status
  return { status, type: EXCEPTIONS[answer.status] ?? 'ModelErrorException', message }
}

function sendFault(response: ServerResponse, { status, type, message }: AwsFault): void {
  // Errors of access have the member with a capital letter.
  const body = status === 403 ? { Message: message } : { message }
  sendVendorJson(response, status, body, {
    'x-amzn-errortype': `${type}:http://internal.amazon.com/coral/com.amazon.bedrock/`,
    'x-amzn-requestid': 'scripted',
  })
}

const codec = new EventStreamCodec(
  (bytes) => new TextDecoder().decode(bytes),
  (text) => new TextEncoder().encode(text),
)

/** Types of exceptions by types of errors in a stream of messages. */
const STREAM_EXCEPTIONS: Record<string, string> = {
  rate_limit_error: 'throttlingException',
  overloaded_error: 'serviceUnavailableException',
  invalid_request_error: 'validationException',
}

async function sendStream(response: ServerResponse, answer: Response): Promise<void> {
  response.writeHead(200, {
    'content-type': 'application/vnd.amazon.eventstream',
    'x-amzn-requestid': 'scripted',
    'x-amzn-bedrock-content-type': 'application/json',
  })
  response.flushHeaders()
  try {
    for await (const { event, data } of eventsIn(answer)) response.write(messageOf(event, data))
    response.end()
  } catch {
    // The scripted answer was cut off.
    response.destroy()
  }
}

function messageOf(event: string, data: string): Uint8Array {
  const json = recordIn(Buffer.from(data))
  if (event === 'error') {
    const { type, message } = toRecord(json?.error)
    return encoded('exception', STREAM_EXCEPTIONS[toText(type)] ?? 'internalServerException', { message })
  }
  const text =
    event === 'message_stop' ? JSON.stringify({ ...json, 'amazon-bedrock-invocationMetrics': METRICS }) : data
  return encoded('event', 'chunk', { bytes: Buffer.from(text).toString('base64'), p: 'abcdefgh' })
}

const METRICS = { inputTokenCount: 1, outputTokenCount: 1, invocationLatency: 5, firstByteLatency: 2 }

const encoded = (kind: 'event' | 'exception', type: string, payload: unknown): Uint8Array =>
  codec.encode({
    headers: {
      [`:${kind}-type`]: { type: 'string', value: type },
      ':content-type': { type: 'string', value: 'application/json' },
      ':message-type': { type: 'string', value: kind },
    },
    body: Buffer.from(JSON.stringify(payload)),
  })
