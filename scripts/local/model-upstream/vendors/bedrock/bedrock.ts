import { type JsonRecord, toRecord, toText } from '../../json-value.ts'
import { askSelf, forwardToSelf, recordIn, sendVendorJson, type VendorRequest } from '../vendor-request.ts'
import { authorizationFault } from './authorization.ts'
import { encoded, exceptionOf, sendEvents } from './binary-events.ts'
import { answerConverse, countConverse } from './converse.ts'
import { type AwsFault, faultOf, invalid, scriptedModel, sendFault } from './faults.ts'

// Amazon Bedrock: InvokeModel for Claude, Converse for all models, their streams and CountTokens, and its messages API, on
// top of the scripted messages protocol.

const MODEL_PATH =
  /^\/model\/([^/]+)\/(invoke|invoke-with-response-stream|converse|converse-stream|count-tokens)$/
const VERSION = 'bedrock-2023-05-31'
/** Bodies and answers below it are those of Claude direct. */
const MESSAGES_API = '/anthropic/v1/messages'

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
  if (request.path.startsWith(MESSAGES_API)) return passOn(request)
  if (model === undefined || incoming.method !== 'POST') {
    return sendFault(response, { status: 404, type: 'UnknownOperationException', message: 'Not Found' })
  }
  if (method === 'count-tokens') return countTokens(request)
  if (method?.startsWith('converse')) {
    return answerConverse(request, decodeURIComponent(model), method === 'converse-stream')
  }
  const invalid = bodyFault(request.body)
  if (invalid) return sendFault(response, invalid)
  const stream = method === 'invoke-with-response-stream'
  const answer = await askMessages(request, decodeURIComponent(model), toRecord(request.body), stream)
  if (answer.status !== 200) return sendFault(response, await faultOf(answer))
  if (!stream || !answer.headers.get('content-type')?.includes('event-stream')) {
    const bytes = Buffer.from(await answer.arrayBuffer())
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': bytes.length,
      'x-amzn-requestid': 'scripted',
    })
    response.end(bytes)
    return
  }
  await sendEvents(response, answer, messageOf)
}

function passOn(request: VendorRequest): Promise<void> {
  const { incoming, path, body } = request
  const names = ['anthropic-version', 'anthropic-beta']
  const given = names.flatMap((name) => {
    const value = toText(incoming.headers[name])
    return value === '' ? [] : [[name, value]]
  })
  const inner = { ...body, model: scriptedModel(toText(body?.model)) }
  return forwardToSelf(request, path.slice('/anthropic'.length), inner, Object.fromEntries(given))
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
  if (toRecord(input).converse !== undefined)
    return countConverse(request, toRecord(toRecord(input).converse))
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

function messageOf(event: string, data: string): Uint8Array[] {
  const json = recordIn(Buffer.from(data))
  if (event === 'error') return [exceptionOf(json)]
  const text =
    event === 'message_stop' ? JSON.stringify({ ...json, 'amazon-bedrock-invocationMetrics': METRICS }) : data
  return [encoded('event', 'chunk', { bytes: Buffer.from(text).toString('base64'), p: 'abcdefgh' })]
}

const METRICS = { inputTokenCount: 1, outputTokenCount: 1, invocationLatency: 5, firstByteLatency: 2 }
