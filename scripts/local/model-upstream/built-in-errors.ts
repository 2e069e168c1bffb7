import { jsonReply, vendorHeaders } from './reply.ts'
import type { ScriptRequest } from './script-request.ts'
import type { ScriptStep } from './script-steps.ts'
import { anthropicErrorBody, type OpenAiFault, openAiErrorBody } from './vendor-errors.ts'

type ErrorScript = (request: ScriptRequest) => ScriptStep[]

interface VendorFault {
  status: number
  openAi: OpenAiFault
  anthropic: { type: string; message: string }
  headers?: (request: ScriptRequest) => Record<string, string>
}

function answerFault(request: ScriptRequest, fault: VendorFault): ScriptStep[] {
  const { headers } = jsonReply(request.dialect, fault.status, '')
  const body =
    request.dialect === 'messages'
      ? anthropicErrorBody(fault.anthropic.type, fault.anthropic.message, headers['request-id'] ?? '')
      : openAiErrorBody(fault.openAi)
  return [{ status: fault.status, headers: { ...headers, ...fault.headers?.(request) }, body }]
}

function faultScript(fault: VendorFault): ErrorScript {
  return (request) => answerFault(request, fault)
}

/** Headers of limits that are used up; `after=SECONDS` sets the wait. */
function exhaustedLimits(request: ScriptRequest): Record<string, string> {
  const seconds = request.count('after', 1)
  const reset = new Date(Date.now() + seconds * 1000).toISOString().replace(/\.\d+Z$/, 'Z')
  if (request.dialect === 'messages') {
    return {
      'retry-after': String(seconds),
      'anthropic-ratelimit-requests-remaining': '0',
      'anthropic-ratelimit-requests-reset': reset,
      'anthropic-ratelimit-tokens-remaining': '0',
      'anthropic-ratelimit-tokens-reset': reset,
    }
  }
  return {
    'retry-after': String(seconds),
    'retry-after-ms': String(seconds * 1000),
    'x-ratelimit-remaining-requests': '0',
    'x-ratelimit-remaining-tokens': '0',
    'x-ratelimit-reset-requests': `${seconds}s`,
    'x-ratelimit-reset-tokens': `${seconds}s`,
  }
}

/** A provider that repeats the whole credential in the body and in two headers. */
function echoCredential(request: ScriptRequest): ScriptStep[] {
  const { credential } = request
  const visible = credential.replace(/[^\x21-\x7e]/g, '')
  return answerFault(request, {
    status: 401,
    openAi: { message: `Incorrect API key provided: ${credential}.`, code: 'invalid_api_key' },
    anthropic: { type: 'authentication_error', message: `invalid x-api-key: ${credential}` },
    headers: () => ({ 'x-presented-credential': visible, 'www-authenticate': `Bearer error="${visible}"` }),
  })
}

function htmlPage(request: ScriptRequest): ScriptStep[] {
  const headers = { ...vendorHeaders(request.dialect), 'content-type': 'text/html; charset=utf-8' }
  const body =
    '<!doctype html>\n<html><head><title>502</title></head><body><h1>Bad gateway</h1></body></html>\n'
  return [{ status: 502, headers, body }]
}

const serverFault: OpenAiFault = {
  message: 'The server had an error while processing your request. Sorry about that!',
  type: 'server_error',
}

/** Scripts that answer with a whole error, by name. */
export const errorScripts: [string, ErrorScript][] = [
  [
    'error-400',
    faultScript({
      status: 400,
      openAi: {
        message: "Unsupported value: 'temperature'.",
        param: 'temperature',
        code: 'unsupported_value',
      },
      anthropic: {
        type: 'invalid_request_error',
        message: 'temperature: Input should be less than or equal to 1',
      },
    }),
  ],
  ['error-401-echo', echoCredential],
  [
    'error-404',
    faultScript({
      status: 404,
      openAi: {
        message: 'The model does not exist or you do not have access to it.',
        code: 'model_not_found',
      },
      anthropic: { type: 'not_found_error', message: 'model: unknown' },
    }),
  ],
  [
    'error-429',
    faultScript({
      status: 429,
      openAi: { message: 'Rate limit reached for requests.', type: 'requests', code: 'rate_limit_exceeded' },
      anthropic: { type: 'rate_limit_error', message: 'This request would exceed your rate limit.' },
      headers: exhaustedLimits,
    }),
  ],
  [
    'error-500',
    faultScript({
      status: 500,
      openAi: serverFault,
      anthropic: { type: 'api_error', message: 'Internal server error' },
    }),
  ],
  [
    'error-529',
    faultScript({
      status: 529,
      openAi: { message: 'The engine is currently overloaded, please try again later', type: 'server_error' },
      anthropic: { type: 'overloaded_error', message: 'Overloaded' },
    }),
  ],
  ['error-html-502', htmlPage],
  [
    'redirect',
    (request) => [
      { status: 302, headers: { ...vendorHeaders(request.dialect), location: '/redirected' }, body: '' },
    ],
  ],
  [
    'empty-body',
    (request) => [{ status: 200, headers: jsonReply(request.dialect, 200, '').headers, body: '' }],
  ],
  [
    'not-json',
    (request) => [
      {
        status: 200,
        headers: { ...vendorHeaders(request.dialect), 'content-type': 'text/plain; charset=utf-8' },
        body: 'This is not JSON.',
      },
    ],
  ],
]
