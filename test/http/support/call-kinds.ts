import { MODEL_ROUTES, type ModelRoute } from '../../matrices/routes.ts'

const [chat, completions, messages, countTokens] = MODEL_ROUTES as [
  ModelRoute,
  ModelRoute,
  ModelRoute,
  ModelRoute,
]

/** A way in which a call ends. */
export interface Kind {
  name: string
  route: ModelRoute | 'models'
  text?: string
  more?: Record<string, unknown>
  raw?: string
  key?: string
  headers?: Record<string, string>
  expected: Record<string, unknown>
}

const reported = { provenance: 'reported', usage: { input: 3, output: 11 } }
/** Every kind of end that a call can have, with what its record has to say. */
export function allKinds(keys: Record<'revoked' | 'limited' | 'scoped', string>): Kind[] {
  const generating = [chat, completions, messages].flatMap((route): Kind[] => [
    { name: `${route.name}, whole`, route, expected: { status: 200, ...reported } },
    {
      name: `${route.name}, streamed`,
      route,
      more: { stream: true },
      expected: { status: 200, ...reported },
    },
    {
      name: `${route.name}, error of the upstream`,
      route,
      text: 'script:error-529',
      expected: { status: 529, errorCode: 'upstream_error' },
    },
    {
      name: `${route.name}, no answer`,
      route,
      text: 'script:empty-body',
      expected: { status: 502, errorCode: 'upstream_empty_body' },
    },
    {
      name: `${route.name}, error in the stream`,
      route,
      more: { stream: true },
      text: 'script:mid-stream-error',
      expected: { status: 200, errorCode: 'stream_error', provenance: 'estimated' },
    },
    {
      name: `${route.name}, not granted`,
      route,
      more: { model: route.largeModel },
      expected: { status: 403, errorCode: 'model_access_denied', provider: null },
    },
    {
      name: `${route.name}, too dear`,
      route,
      more: { max_tokens: 16_000 },
      expected: { status: 429, errorCode: 'rate_limited', provider: null },
    },
  ])
  return [
    ...generating,
    { name: 'tokens counted', route: countTokens, expected: { status: 200 } },
    { name: 'models listed', route: 'models', expected: { status: 200 } },
    {
      name: 'models unchanged',
      route: 'models',
      headers: { 'if-none-match': '*' },
      expected: { status: 304 },
    },
    {
      name: 'not JSON',
      route: chat,
      raw: '{',
      expected: { status: 400, errorCode: 'invalid_body', modelId: null },
    },
    {
      name: 'invalid member',
      route: messages,
      more: { max_tokens: 0 },
      expected: { status: 400, errorCode: 'invalid_body', modelId: null },
    },
    {
      name: 'unknown model on chat',
      route: chat,
      more: { model: 'x' },
      expected: { status: 400, errorCode: 'model_not_found', modelId: 'x', provider: null },
    },
    {
      name: 'unknown model on messages',
      route: messages,
      more: { model: 'x' },
      expected: { status: 404, errorCode: 'model_not_found', modelId: 'x', provider: null },
    },
    {
      name: 'refused in translation',
      route: chat,
      more: { model: 'scripted-messages', n: 2 },
      expected: { status: 400, errorCode: 'invalid_body', modelId: 'scripted-messages', provider: null },
    },
    {
      name: 'revoked key',
      route: chat,
      key: keys.revoked,
      expected: { status: 401, errorCode: 'unauthorized', modelId: null },
    },
    {
      name: 'revoked key on models',
      route: 'models',
      key: keys.revoked,
      expected: { status: 401, errorCode: 'unauthorized' },
    },
    {
      name: 'scope',
      route: messages,
      key: keys.scoped,
      expected: { status: 403, errorCode: 'model_access_denied' },
    },
    {
      name: 'rate limit',
      route: chat,
      key: keys.limited,
      expected: { status: 429, errorCode: 'rate_limited' },
    },
  ]
}
