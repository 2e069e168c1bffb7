import { beforeAll, describe, expect, it } from 'vitest'
import type { ProviderKind } from '../../src/gateway/providers/provider.ts'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import { jsonOf } from '../harness/send.ts'
import { createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { postTo, requestOf } from './support/vendor-calls.ts'
import { createVendorModel, rawPath, type Vendor, vendorNamed } from './support/vendor-kinds.ts'

// Errors in the form of each vendor, as callers of each surface receive them (interface: Errors).

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

interface VendorError {
  vendor: Vendor
  status: number
  body: unknown
  /** The error for callers of messages: the status where it is another, type, and message. */
  messages: { status?: number; type: string; message: string | RegExp }
  headers?: Record<string, string>
}

const [bedrock, converse, vertex, foundry, gemini, azure, dated, mistral] = [
  'Claude on Bedrock',
  'Converse',
  'Claude on Vertex',
  'Claude in Foundry',
  'Gemini',
  'Azure OpenAI v1',
  'Azure OpenAI dated',
  'Mistral',
].map(vendorNamed) as [Vendor, Vendor, Vendor, Vendor, Vendor, Vendor, Vendor, Vendor]
const maker = (kind: ProviderKind): Vendor => ({ ...mistral, name: kind, kind })

const invalid = 'invalid_request_error'
const refusesGateway = { status: 500, type: 'api_error', message: /refused the gateway/ }
const amazon = (type: string) => ({ 'x-amzn-errortype': `${type}:http://internal.amazon.com/coral/` })
const google = (code: number, status: string, message: string, details?: unknown[]) => ({
  error: { code, message, status, ...(details && { details }) },
})
const badRequest = [
  { '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: [{ field: 'x' }] },
]

const ERRORS: VendorError[] = [
  {
    vendor: bedrock,
    status: 400,
    body: { message: 'extraneous key [x] is not permitted' },
    headers: amazon('ValidationException'),
    messages: { type: invalid, message: 'extraneous key [x] is not permitted' },
  },
  {
    vendor: bedrock,
    status: 400,
    body: { Message: 'The provided model identifier is invalid.' },
    messages: { type: invalid, message: 'The provided model identifier is invalid.' },
  },
  {
    vendor: bedrock,
    status: 400,
    body: { message: 'Input is too long for requested model.' },
    messages: { type: invalid, message: /^prompt is too long: Input is too long/ },
  },
  {
    vendor: bedrock,
    status: 403,
    body: {
      Message: 'User: arn:aws:iam::123456789012:user/x is not authorized to perform: bedrock:InvokeModel',
    },
    headers: amazon('AccessDeniedException'),
    messages: refusesGateway,
  },
  {
    vendor: converse,
    status: 403,
    body: { message: 'The security token included in the request is expired' },
    headers: amazon('ExpiredTokenException'),
    messages: refusesGateway,
  },
  {
    vendor: converse,
    status: 404,
    body: { message: 'Could not resolve the foundation model' },
    headers: amazon('ResourceNotFoundException'),
    messages: { type: 'not_found_error', message: 'Could not resolve the foundation model' },
  },
  {
    vendor: converse,
    status: 408,
    body: { message: 'Model timed out.' },
    headers: amazon('ModelTimeoutException'),
    messages: { type: 'api_error', message: 'Model timed out.' },
  },
  {
    vendor: bedrock,
    status: 424,
    body: { message: 'The model failed.', originalStatusCode: 500, resourceName: 'x' },
    headers: amazon('ModelErrorException'),
    messages: { type: 'api_error', message: 'The model failed.' },
  },
  {
    vendor: converse,
    status: 503,
    body: { message: 'Unable to process your request.' },
    headers: amazon('ServiceUnavailableException'),
    messages: { type: 'api_error', message: 'Unable to process your request.' },
  },
  {
    vendor: vertex,
    status: 400,
    body: { type: 'error', error: { type: invalid, message: 'max_tokens: Field required' } },
    messages: { type: invalid, message: 'max_tokens: Field required' },
  },
  {
    vendor: vertex,
    status: 404,
    body: google(404, 'NOT_FOUND', 'Publisher Model was not found.'),
    messages: { type: 'not_found_error', message: 'Publisher Model was not found.' },
  },
  {
    vendor: vertex,
    status: 429,
    body: google(429, 'RESOURCE_EXHAUSTED', 'Quota exceeded.'),
    messages: { type: 'rate_limit_error', message: /provider is reached: Quota exceeded\.$/ },
  },
  {
    vendor: vertex,
    status: 403,
    body: google(403, 'PERMISSION_DENIED', 'Permission denied on resource project.'),
    messages: refusesGateway,
  },
  {
    vendor: vertex,
    status: 529,
    body: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
    messages: { type: 'overloaded_error', message: 'Overloaded' },
  },
  {
    vendor: gemini,
    status: 400,
    body: google(400, 'INVALID_ARGUMENT', 'Unknown name "x".', badRequest),
    messages: { type: invalid, message: 'Unknown name "x".' },
  },
  {
    vendor: gemini,
    status: 400,
    body: google(
      400,
      'INVALID_ARGUMENT',
      'The input token count exceeds the maximum number of tokens allowed 1048576.',
    ),
    messages: { type: invalid, message: /^prompt is too long: The input token count/ },
  },
  {
    vendor: gemini,
    status: 400,
    body: google(400, 'INVALID_ARGUMENT', 'API key not valid.', [{ reason: 'API_KEY_INVALID' }]),
    messages: refusesGateway,
  },
  {
    vendor: gemini,
    status: 500,
    body: [google(500, 'INTERNAL', 'An internal error has occurred.')],
    messages: { type: 'api_error', message: 'An internal error has occurred.' },
  },
  {
    vendor: gemini,
    status: 504,
    body: google(504, 'DEADLINE_EXCEEDED', 'Deadline expired.'),
    messages: { type: 'api_error', message: 'Deadline expired.' },
  },
  {
    vendor: maker('gemini-openai'),
    status: 400,
    body: [google(400, 'INVALID_ARGUMENT', 'Invalid value at reasoning_effort.')],
    messages: { type: invalid, message: 'Invalid value at reasoning_effort.' },
  },
  {
    vendor: azure,
    status: 400,
    body: {
      error: {
        code: 'content_filter',
        message: 'The response was filtered.',
        innererror: { code: 'ResponsibleAIPolicyViolation' },
      },
    },
    messages: { type: invalid, message: 'The response was filtered.' },
  },
  {
    vendor: azure,
    status: 401,
    body: { error: { code: '401', message: 'Access denied due to invalid subscription key.' } },
    messages: refusesGateway,
  },
  {
    vendor: dated,
    status: 404,
    body: { error: { code: 'DeploymentNotFound', message: 'The API deployment does not exist.' } },
    messages: { type: 'not_found_error', message: 'The API deployment does not exist.' },
  },
  {
    vendor: dated,
    status: 408,
    body: { error: { code: 'Timeout', message: 'The operation was timeout.' } },
    messages: { type: 'api_error', message: 'The operation was timeout.' },
  },
  {
    vendor: foundry,
    status: 404,
    body: { error: { code: 'DeploymentNotFound', message: 'The API deployment does not exist.' } },
    messages: { type: 'not_found_error', message: 'The API deployment does not exist.' },
  },
  {
    vendor: mistral,
    status: 422,
    body: { object: 'error', message: { detail: [{ loc: ['body', 'n'], msg: 'Too many' }] }, code: 1 },
    messages: { type: invalid, message: 'n: Too many' },
  },
  {
    vendor: mistral,
    status: 422,
    body: { detail: [{ loc: ['body', 'stream'], msg: 'Extra inputs are not permitted' }] },
    messages: { type: invalid, message: 'stream: Extra inputs are not permitted' },
  },
  {
    vendor: maker('xai'),
    status: 400,
    body: { code: 'Client specified an invalid argument', error: 'This model does not support `stop`.' },
    messages: { type: invalid, message: 'This model does not support `stop`.' },
  },
  {
    vendor: maker('groq'),
    status: 400,
    body: { error: { message: 'Failed to call a function.', type: invalid, code: 'tool_use_failed' } },
    messages: { type: invalid, message: 'Failed to call a function.' },
  },
  {
    vendor: maker('openrouter'),
    status: 402,
    body: { error: { code: 402, message: 'Insufficient credits' } },
    messages: refusesGateway,
  },
  {
    vendor: maker('openrouter'),
    status: 403,
    body: { error: { code: 403, message: 'Input was flagged', metadata: { flagged_input: 'x' } } },
    messages: { type: 'permission_error', message: 'Input was flagged' },
  },
  {
    vendor: maker('openrouter'),
    status: 502,
    body: { error: { code: 502, message: 'Provider returned error', metadata: { provider_name: 'x' } } },
    messages: { type: 'api_error', message: 'Provider returned error' },
  },
  {
    vendor: maker('vllm'),
    status: 400,
    body: {
      object: 'error',
      message: 'maximum context length is 10 tokens',
      type: 'BadRequestError',
      code: 400,
    },
    messages: { type: invalid, message: /^prompt is too long: maximum context length/ },
  },
  {
    vendor: maker('deepseek'),
    status: 402,
    body: {
      error: { message: 'Insufficient Balance', type: 'unknown_error', code: 'invalid_request_error' },
    },
    messages: refusesGateway,
  },
]

/** A model whose vendor answers with an error. */
async function failingModel({ vendor, status, body, headers }: VendorError): Promise<string> {
  const [script, tokens] = [uniqueName('raw'), uniqueName('tokens')]
  const control = upstreamControl(gateway())
  const error = {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  }
  await control.putScript(script, { steps: [error] })
  await control.putScript(tokens, {
    steps: [{ json: { access_token: uniqueName('token'), expires_in: 3_599 } }],
  })
  const url = gateway().standIns.modelUpstream
  const credential = vendor.credential(url)
  const given =
    typeof credential === 'object' && vendor.kind === 'vertex'
      ? { ...credential, token_uri: `${url}${rawPath(tokens)}/token` }
      : credential
  return (await createVendorModel(vendor, { rawScript: script, credential: given })).model
}

describe.each(
  ERRORS.map((error) => [error.vendor.name, error.status, JSON.stringify(error.body), error] as const),
)('an error of %s, %i %s', (_vendor, _status, text, error) => {
  let model: string
  beforeAll(async () => {
    model = await failingModel(error)
  })

  it.each([false, true])('is unchanged for callers of chat completions, streamed %s', async (stream) => {
    const answer = await postTo('chat', tenant, requestOf('chat', model, 'Hello', { stream }))
    expect([answer.status, answer.text]).toEqual([error.status, text])
    expect(answer.headers['content-type']).toBe('application/json')
    expect(answer.headers['x-headgate-error-source']).toBe('provider')
  })

  it.each([false, true])('has the envelope of messages for their callers, streamed %s', async (stream) => {
    const answer = await postTo('messages', tenant, requestOf('messages', model, 'Hello', { stream }))
    const { status = error.status, type, message } = error.messages
    expect([answer.status, jsonOf(answer)]).toMatchObject([
      status,
      {
        type: 'error',
        error: { type, message: typeof message === 'string' ? message : expect.stringMatching(message) },
      },
    ])
  })

  it('fails a response with its message', async () => {
    const answer = await postTo('responses', tenant, requestOf('responses', model, 'Hello'))
    const { error: told } = jsonOf(answer) as { error: { message: string } }
    const { status, message } = error.messages
    const words =
      typeof message === 'string'
        ? message
        : message.source.replace(/^\^?(prompt is too long: )?|\\|\$$/g, '')
    expect(told.message).toContain(words)
    if (status === 500) expect(told.message).toContain('Your API key is not the cause')
  })
})
