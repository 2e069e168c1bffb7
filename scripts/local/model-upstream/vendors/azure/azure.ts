import { toRecord, toText } from '../../json-value.ts'
import { askSelf, eventsIn, sendVendorJson, type VendorRequest } from '../vendor-request.ts'

// Azure OpenAI: the v1 API and the dated one, on top of the scripted chat completions, with what its content filters add.

export const SCRIPTED_AZURE = { key: 'scripted-azure-key', deployment: 'my-deployment' }

const V1_PATH = '/openai/v1/chat/completions'
const DATED_PATH = /^\/openai\/deployments\/([^/]+)\/chat\/completions$/
const VERSION = '2024-10-21'

const FILTERS = Object.fromEntries(
  ['hate', 'self_harm', 'sexual', 'violence'].map((kind) => [kind, { filtered: false, severity: 'safe' }]),
)
const PROMPT_RESULTS = [{ prompt_index: 0, content_filter_results: FILTERS }]
const BLANK = { id: '', object: '', created: 0, model: '' }

/** Answers a request to the scripted Azure. */
export async function answerAzure(request: VendorRequest): Promise<void> {
  const { incoming, response, path, body } = request
  const inPath = DATED_PATH.exec(path)?.[1]
  const version = new URL(incoming.url ?? '/', 'http://azure').searchParams.get('api-version')
  const isKnown = path === V1_PATH ? version === null : inPath !== undefined && version === VERSION
  if (!isKnown) return sendFault(response, 404, '404', 'Resource not found')
  if (incoming.headers['api-key'] !== SCRIPTED_AZURE.key) {
    return sendFault(
      response,
      401,
      '401',
      'Access denied due to invalid subscription key or wrong API endpoint.',
    )
  }
  const deployment = inPath === undefined ? toText(body?.model) : decodeURIComponent(inPath)
  if (deployment !== SCRIPTED_AZURE.deployment) {
    return sendFault(
      response,
      404,
      'DeploymentNotFound',
      'The API deployment for this resource does not exist.',
    )
  }
  if (JSON.stringify(body?.messages ?? []).includes('azure-filtered')) return sendFiltered(response)
  const answer = await askSelf(request, '/v1/chat/completions', { ...body, model: 'scripted-chat' }, {})
  if (answer.headers.get('content-type')?.includes('text/event-stream')) return sendStream(request, answer)
  const whole = toRecord(await answer.json())
  if (!answer.ok) return sendVendorJson(response, answer.status, whole, waitOf(answer))
  const choices = (whole.choices as unknown[]).map((choice) => ({
    ...toRecord(choice),
    content_filter_results: FILTERS,
  }))
  sendVendorJson(response, 200, { ...whole, choices, prompt_filter_results: PROMPT_RESULTS })
}

/** Its first chunk is about the prompt; its asynchronous filter sends chunks whose choices have no delta. */
async function sendStream({ response }: VendorRequest, answer: Response): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
  const send = (data: unknown) =>
    response.write(`data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`)
  send({ ...BLANK, choices: [], prompt_filter_results: PROMPT_RESULTS })
  try {
    for await (const { data } of eventsIn(answer)) {
      const filtered = {
        index: 0,
        finish_reason: null,
        content_filter_results: FILTERS,
        content_filter_offsets: { check_offset: 0, start_offset: 0, end_offset: 10 },
      }
      if (data === '[DONE]') send({ ...BLANK, choices: [filtered] })
      send(data)
    }
    response.end()
  } catch {
    // The scripted answer was cut off.
    response.destroy()
  }
}

/** Azure states waits in milliseconds as well. */
function waitOf(answer: Response): Record<string, string> {
  const seconds = answer.headers.get('retry-after')
  return seconds === null ? {} : { 'retry-after': seconds, 'retry-after-ms': `${Number(seconds) * 1_000}` }
}

const sendFault = (
  response: VendorRequest['response'],
  status: number,
  code: string,
  message: string,
): void => sendVendorJson(response, status, { error: { code, message } })

function sendFiltered(response: VendorRequest['response']): void {
  const innererror = { code: 'ResponsibleAIPolicyViolation', content_filter_result: FILTERS }
  const message =
    'The response was filtered due to the prompt triggering Azure OpenAI’s content management policy.'
  const error = { message, type: null, param: 'prompt', code: 'content_filter', status: 400, innererror }
  sendVendorJson(response, 400, { error })
}
