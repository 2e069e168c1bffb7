import { describe, expect, it } from 'vitest'
import { upstreamError, waitInBody } from '../../../../src/gateway/translation/error-shapes.ts'
import {
  impliedStatus,
  isContextOverflow,
  isRouteFault,
  lacksModel,
  messagesErrorBody,
  refusesGateway,
} from '../../../../src/gateway/translation/upstream-errors.ts'

const bytes = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))
const inMessages = (status: number, body: unknown) =>
  JSON.parse(new TextDecoder().decode(messagesErrorBody(status, bytes(body), 'req_1'))).error

const QUOTA = {
  error: {
    code: 429,
    message: 'Quota exceeded.',
    status: 'RESOURCE_EXHAUSTED',
    details: [
      { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [] },
      { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.07s' },
    ],
  },
}

describe('the message of an error', () => {
  it.each<[vendor: string, body: unknown, error: Record<string, unknown>]>([
    [
      'OpenAI, Azure',
      { error: { code: 'x', message: 'No.', type: 't' } },
      { message: 'No.', code: 'x', type: 't' },
    ],
    ['Google, wrapped in a list', [QUOTA], { message: 'Quota exceeded.', code: 429 }],
    ['AWS', { message: 'Too many tokens.' }, { message: 'Too many tokens.' }],
    ['AWS IAM', { Message: 'User is not authorized.' }, { message: 'User is not authorized.' }],
    [
      'Mistral',
      {
        object: 'error',
        message: { detail: [{ type: 'extra_forbidden', loc: ['body', 'store'], msg: 'Extra inputs.' }] },
        type: 'invalid_request_error',
        code: 1_000,
      },
      { message: 'store: Extra inputs.', type: 'invalid_request_error', code: 1_000 },
    ],
    [
      'FastAPI',
      { detail: [{ loc: ['body', 'messages', 0], msg: 'Field required' }, { msg: 'Second' }] },
      { message: 'messages.0: Field required; Second' },
    ],
    ['FastAPI with a text', { detail: 'Not authenticated' }, { message: 'Not authenticated' }],
    ['an object of unknown form', { error: { message: { a: 1 } } }, { message: '{"a":1}' }],
    [
      'xAI',
      { code: 'Client specified an invalid argument', error: 'Argument not supported: stop' },
      { message: 'Argument not supported: stop', code: 'Client specified an invalid argument' },
    ],
    [
      'servers that name the error beside its message',
      { statusCode: 404, error: 'Not Found', message: 'Route not found' },
      { message: 'Route not found', type: 'Not Found' },
    ],
    [
      'OpenRouter',
      { error: { code: 502, message: 'Provider returned error', metadata: { raw: 'x' } } },
      { message: 'Provider returned error', code: 502 },
    ],
    [
      'vLLM',
      { object: 'error', message: 'No parser.', type: 'BadRequestError', param: null, code: 400 },
      { message: 'No parser.', type: 'BadRequestError', code: 400 },
    ],
    [
      'Groq',
      { error: { message: 'Failed to call.', type: 'invalid_request_error', code: 'tool_use_failed' } },
      { message: 'Failed to call.', code: 'tool_use_failed' },
    ],
  ])('is read as %s sends it', (_vendor, body, error) => {
    expect(upstreamError(bytes(body))).toMatchObject(error)
  })

  it('reaches callers of messages', () => {
    expect(inMessages(429, [QUOTA])).toEqual({
      type: 'rate_limit_error',
      message: "A limit of the model's provider is reached: Quota exceeded.",
    })
    expect(inMessages(424, { message: 'The model failed.' }).type).toBe('api_error')
    expect(inMessages(408, { message: 'The model took too long.' }).type).toBe('api_error')
  })

  it('is bounded where it is made of an object', () => {
    const message = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`name${index}`, index]))
    expect(String(upstreamError(bytes({ message })).message)).toHaveLength(1_000)
    const detail = Array.from({ length: 100 }, (_, index) => ({ msg: `fault ${index}` }))
    expect(String(upstreamError(bytes({ detail })).message).split('; ')).toHaveLength(10)
  })
})

describe('what an error means', () => {
  it.each<[text: string, isOverflow: boolean]>([
    ["This model's maximum context length is 8192 tokens.", true],
    ["This model's maximum prompt length is 131072 but the request contains 200000 tokens.", true],
    ['Input is too long for requested model.', true],
    ['The input token count (9) exceeds the maximum number of tokens allowed (8).', true],
    ['the request exceeds the available context size, try increasing it', true],
    ['max_tokens is too large', false],
  ])('%s: too long %s', (message, isOverflow) => {
    expect(isContextOverflow({ message })).toBe(isOverflow)
  })

  it.each<[status: number, body: unknown, isRefusal: boolean]>([
    [401, {}, true],
    [403, { error: { message: 'Forbidden' } }, true],
    [403, { error: { code: 403, message: 'No.', metadata: { flagged_input: 'x' } } }, false],
    [403, { error: { message: 'Input was flagged' } }, false],
    [403, { error: { message: 'No.', innererror: { code: 'ResponsibleAIPolicyViolation' } } }, false],
    [400, { error: { code: 'content_filter', message: 'No.' } }, false],
    [
      400,
      { error: { code: 400, status: 'INVALID_ARGUMENT', details: [{ reason: 'API_KEY_INVALID' }] } },
      true,
    ],
  ])('%i %j refuses the gateway: %s', (status, body, isRefusal) => {
    expect(refusesGateway(status, bytes(body))).toBe(isRefusal)
  })

  it.each<[status: number, error: unknown, isMissing: boolean, isFault: boolean]>([
    [404, { code: 'DeploymentNotFound' }, true, true],
    [404, {}, true, true],
    [400, { code: 'DeploymentNotFound' }, true, true],
    [400, { code: 'model_not_found' }, true, true],
    [400, { type: 'invalid_model' }, true, true],
    [400, { message: 'Model Not Exist' }, true, true],
    [400, { code: 'tool_use_failed' }, false, true],
    [400, { code: 'content_filter' }, false, false],
    [400, { code: 400, details: [{ reason: 'API_KEY_INVALID' }] }, false, true],
    [422, { code: 'model_not_found' }, false, false],
  ])('%i %j: the model is missing %s, the route is at fault %s', (status, error, isMissing, isFault) => {
    expect(lacksModel(status, bytes({ error }))).toBe(isMissing)
    expect(isRouteFault(status, bytes({ error }))).toBe(isFault)
  })

  it('is a status where it came with 200', () => {
    expect(impliedStatus(upstreamError(bytes({ error: { code: 402, message: 'credit' } })))).toBe(402)
    expect(impliedStatus(upstreamError(bytes({ object: 'error', message: 'x', code: 400 })))).toBe(400)
    expect(impliedStatus(upstreamError(bytes({ code: 'rate_limit_exceeded', error: 'x' })))).toBe(429)
  })
})

describe('the wait in the body of an error', () => {
  it('is that of Google', () => {
    expect(waitInBody(bytes(QUOTA))).toBe(34_070)
    expect(waitInBody(bytes([QUOTA]))).toBe(34_070)
  })

  it.each(['34', 's', '-1s', '1e3s', '9999999999s', null, 5])('is none for a delay of %j', (retryDelay) => {
    const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay }]
    expect(waitInBody(bytes({ error: { details } }))).toBeNull()
  })

  it.each([{}, [], { error: { message: 'google.rpc.RetryInfo' } }, null])('is none in %j', (body) => {
    expect(waitInBody(bytes(body))).toBeNull()
  })
})
